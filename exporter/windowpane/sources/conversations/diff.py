"""The changes of a conversation recorded in its window: additions, evictions and compressions."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Protocol

from windowpane.core.events import BlocksEvicted, ContentCompressed, EvictedBlock, FidelityEvaluated, Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.protocols import Digester, TokenCounter
from windowpane.core.tracking import SessionTracker
from windowpane.core.vocabulary import PROVIDER, STATIC_TYPES, CacheBreakCause, CountSource
from windowpane.core.window.blocks import Block, tokens_by_component
from windowpane.core.window.references import INDEXED_TYPES, REFERRING_TYPES, ReferenceIndex
from windowpane.models.wire.messages import BlockSpec, Key
from windowpane.models.wire.replies import Compaction, ContextEdit
from windowpane.sources.conversations.alignment import Alignment, Rewrite, Summarization, TrackedBlock, align

POLICY: Final = "agent"
"""The policy of every reduction that the agent did itself."""


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """The counter, window and prices of one model."""

    counter: TokenCounter
    limits: WindowLimits | None = None
    media_tokens: int = 1_000
    """Flat cost of one image."""
    cost_of: Callable[[Usage], float | None] | None = None


class ModelProfiles(Protocol):
    """A function from model names to their profiles."""

    def __call__(self, model: str, /) -> ModelProfile:
        """Return the profile of *model*, without limits where its window is unknown."""
        ...


class ChangeRecorder:
    """Records in one session's tracker the changes of its blocks."""

    def __init__(self, tracker: SessionTracker, profile: ModelProfile, *, digest: Digester) -> None:
        self.tracker = tracker
        self.profile = profile
        self._digest = digest
        self._references = ReferenceIndex()
        self._call_ids = CallIds()
        self._cleared_by_provider: dict[str, int] = {}
        """Tool results, or turns of thinking, that the provider clears from each call, by kind of edit."""

    def apply(
        self, old: Sequence[TrackedBlock], new: Sequence[BlockSpec], at: float | None
    ) -> list[tuple[TrackedBlock, ...]]:
        """Record the changes from *old* to *new*; returns the blocks that hold each entry of *new*."""
        changes = align(old, new, size=lambda spec: self._count(spec)[0])
        blocks: dict[int, tuple[TrackedBlock, ...]] = {
            index: (tracked._replace(replied=False),) for index, tracked in changes.retained.items()
        }
        self._revise_reply(changes, new, blocks, at)
        self._evict(changes, new, blocks, at)
        for summary in changes.summaries:
            self._compress(summary, new, blocks, at)
        self._add_new(changes, new, blocks, at)
        self._record_order(old, changes, blocks)
        return [blocks[index] for index in range(len(new))]

    def apply_provider_edits(self, edits: Iterable[ContextEdit], at: float | None) -> None:
        """Record the content that the provider cleared from the call: its oldest tool results, or thinking.

        The agent sends it again with every call and the provider reports every time how much it cleared, so only
        what exceeds the report before is new.
        """
        for edit in edits:
            cleared = self._cleared_by_provider.get(edit.kind, 0)
            if edit.cleared_count <= cleared:
                continue
            self._cleared_by_provider[edit.kind] = edit.cleared_count
            content_type = "thinking" if "thinking" in edit.kind else "tool_result"
            candidates = (block for block in self.tracker.window if block.content_type == content_type)
            blocks = list(islice(candidates, edit.cleared_count - cleared))
            if not blocks:
                continue
            evicted = tuple(
                EvictedBlock(
                    block.id, block.content_type, block.tokens, "drop", f"cleared by the provider ({edit.kind})",
                    turn_added=block.turn, tool_name=block.tool_name,
                )
                for block in blocks
            )  # fmt: skip
            tokens = sum(block.tokens for block in blocks)
            self.tracker.evict(BlocksEvicted(PROVIDER, evicted, tokens, tokens), at=at)
            for block in blocks:
                self._references.discard(block.id)

    def compact_by_provider(
        self, compaction: Compaction, at: float | None, *, except_blocks: Iterable[str] = ()
    ) -> TrackedBlock | None:
        """Record that the provider replaced the conversation by a summary; returns the summary's block.

        What the compaction retained and *except_blocks* stay. None where nothing was replaced.
        """
        tracker, summary = self.tracker, compaction.summary
        if summary is None:
            used = tracker.gauge.account.used(tracker.window.tokens)
            reason = "the provider made no summary"
            tracker.compress(
                ContentCompressed("compaction", PROVIDER, "failed", used, used, method=PROVIDER, reason=reason),
                at=at,
            )
            return None
        retained = {spec.text for spec in compaction.retained if spec.text}
        excepted = frozenset(except_blocks)
        removed = [
            block
            for block in tracker.window
            if block.content_type not in STATIC_TYPES and block.id not in excepted and block.text not in retained
        ]
        if not removed:
            return None
        tokens, source = self._count(summary)
        if summary.text is None and compaction.usage is not None:
            tokens = compaction.usage.output_tokens - compaction.usage.reasoning_tokens
        result = tracker.make_replacement(
            "summary",
            summary.text,
            tokens,
            replaces=removed[0].id,
            count_source=source if summary.text else "estimate",
        )
        self._record_compaction(removed, [result], at, author=PROVIDER)
        return TrackedBlock(summary, result.id, replied=True)

    def add(self, spec: BlockSpec, at: float | None, *, replied: bool = False) -> TrackedBlock:
        """Record a block that entered the window."""
        call_id = self._call_ids.id_of(spec)
        tokens, source = self._count(spec)
        digest = ""
        if spec.content_type == "tool_call":
            digest = self._digest(f"{spec.tool_name}\0{spec.text}")
        block = self.tracker.add(
            spec.content_type,
            spec.text,
            tokens,
            count_source=source,
            digest=digest,
            tool_call_id=call_id,
            tool_name=spec.tool_name,
            at=at,
        )
        self._update_references(block, at)
        return TrackedBlock(spec, block.id, replied)

    # -- inside -----------------------------------------------------------------------------------------------

    def _record_order(
        self, old: Sequence[TrackedBlock], changes: Alignment, blocks: dict[int, tuple[TrackedBlock, ...]]
    ) -> None:
        """Record content that was added or moved in front of content that was sent already."""
        order = {tracked.block_id: index for index, tracked in enumerate(old)}
        remaining = [tracked.block_id for tracked in old if not tracked.replied]
        sent = {blocks[index][0].block_id for index in changes.retained} & set(remaining)
        following = iter([block_id for block_id in remaining if block_id in sent])
        next_sent = next(following, None)
        for index in range(len(blocks)):
            block_id = blocks[index][0].block_id
            if next_sent is None:
                return
            if block_id == next_sent:
                next_sent = next(following, None)
            elif index in changes.added or (block_id in sent and order[block_id] > order[next_sent]):
                cause: CacheBreakCause = "added" if index in changes.added else "reordered"
                self.tracker.record_change(cause, (next_sent,), block_id)
                return

    def _add_new(
        self, changes: Alignment, new: Sequence[BlockSpec], blocks: dict[int, tuple[TrackedBlock, ...]],
        at: float | None,
    ) -> None:  # fmt: skip
        """Add new blocks in the order of the list."""
        extensions = {extension.position: extension for extension in changes.extended}
        for index in sorted([*changes.added, *extensions]):
            extension = extensions.get(index)
            if extension is None:
                blocks[index] = (self.add(new[index], at),)
                continue
            retained = tuple(tracked._replace(replied=False) for tracked in extension.tracked)
            if not extension.rest.strip():
                blocks[index] = retained
                continue
            content_type = new[index].content_type
            rest = BlockSpec(content_type, extension.rest, Key(content_type, extension.rest.strip()))
            blocks[index] = (*retained, self.add(rest, at))

    def _revise_reply(
        self, changes: Alignment, new: Sequence[BlockSpec], blocks: dict[int, tuple[TrackedBlock, ...]],
        at: float | None,
    ) -> None:  # fmt: skip
        """Replace what came back of the reply with another text, and remove what did not come back."""
        for revision in changes.revised:
            spec = new[revision.position]
            tokens, source = self._count(spec)
            block = self.tracker.make_replacement(
                spec.content_type, spec.text, tokens, replaces=revision.tracked.block_id, count_source=source
            )
            self.tracker.revise(block, at)
            self._references.discard(revision.tracked.block_id)
            self._update_references(block, at)
            blocks[revision.position] = (TrackedBlock(spec, block.id),)
        discarded = [tracked.block_id for tracked in changes.discarded if self._block(tracked) is not None]
        if discarded:
            self.tracker.discard_reply(discarded, at)
        for block_id in discarded:
            self._references.discard(block_id)

    def _evict(
        self, changes: Alignment, new: Sequence[BlockSpec], blocks: dict[int, tuple[TrackedBlock, ...]],
        at: float | None,
    ) -> None:  # fmt: skip
        """Record one eviction of all blocks that were dropped or rewritten.

        Another system prompt or tool definition replaces the earlier one, or removes it: nothing is evicted.
        """
        dropped = [tracked for tracked in changes.dropped if self._block(tracked) is not None]
        static = [tracked.block_id for tracked in dropped if tracked.spec.content_type in STATIC_TYPES]
        evicted = [self._evicted(tracked) for tracked in dropped if tracked.block_id not in static]
        if static:
            self.tracker.remove_static(static, at)
        for block_id in static:
            self._references.discard(block_id)
        replacements: list[Block] = []
        for rewrite in changes.rewritten:
            replacement = self._replacement(rewrite, new[rewrite.position])
            if replacement is None:
                evicted.append(self._evicted(rewrite.tracked))
                changes.added.append(rewrite.position)
                continue
            if replacement.content_type in STATIC_TYPES:
                self.tracker.revise(replacement, at)
                self._references.discard(rewrite.tracked.block_id)
                blocks[rewrite.position] = (TrackedBlock(new[rewrite.position], replacement.id),)
                continue
            replacements.append(replacement)
            evicted.append(self._evicted(rewrite.tracked, replacement))
            blocks[rewrite.position] = (TrackedBlock(new[rewrite.position], replacement.id),)
        if not evicted:
            return
        removed = sum(block.tokens for block in evicted)
        freed = max(0, removed - sum(block.tokens for block in replacements))
        self.tracker.evict(BlocksEvicted(POLICY, tuple(evicted), removed, freed), replacements, at)
        for block in evicted:
            self._references.discard(block.block_id)

    def _replacement(self, rewrite: Rewrite, spec: BlockSpec) -> Block | None:
        """Return the block that replaces a rewritten one; None where it grew, so that it counts as added."""
        tokens, source = self._count(spec)
        is_result = spec.content_type == "tool_result"
        if is_result and tokens >= self._tokens(rewrite.tracked):
            return None
        return self.tracker.make_replacement(
            "placeholder" if is_result else spec.content_type,
            spec.text,
            tokens,
            replaces=rewrite.tracked.block_id,
            count_source=source,
        )

    def _evicted(self, tracked: TrackedBlock, replacement: Block | None = None) -> EvictedBlock:
        block = self._block(tracked)
        if replacement is None:
            reason = "left out by the agent"
        else:
            is_placeholder = replacement.content_type == "placeholder"
            reason = "cleared by the agent" if is_placeholder else "rewritten by the agent"
        return EvictedBlock(
            tracked.block_id,
            tracked.spec.content_type if block is None else block.content_type,
            self._tokens(tracked),
            "drop" if replacement is None else "mask",
            reason,
            replacement=None if replacement is None else replacement.id,
            replacement_tokens=0 if replacement is None else replacement.tokens,
            turn_added=None if block is None else block.turn,
            tool_name=tracked.spec.tool_name,
        )

    def _compress(
        self, summary: Summarization, new: Sequence[BlockSpec], blocks: dict[int, tuple[TrackedBlock, ...]],
        at: float | None,
    ) -> None:  # fmt: skip
        tracker = self.tracker
        removed = [block for tracked in summary.removed if (block := self._block(tracked)) is not None]
        replaces = removed[0].id if removed else None
        results: list[Block] = []
        for index in summary.positions:
            tokens, source = self._count(new[index])
            block = tracker.make_replacement(
                "summary", new[index].text, tokens, replaces=replaces, count_source=source
            )
            results.append(block)
            blocks[index] = (TrackedBlock(new[index], block.id),)
        self._record_compaction(removed, results, at, author=POLICY)

    def _record_compaction(
        self, removed: Sequence[Block], results: Sequence[Block], at: float | None, *, author: str
    ) -> None:
        """Record a compaction, and the facts of the removed content that its results still state."""
        tracker = self.tracker
        seen, after = sum(block.tokens for block in removed), sum(block.tokens for block in results)
        used = tracker.gauge.account.used(tracker.window.tokens)
        is_seen = any(block.text for block in results)
        event = tracker.compress(
            ContentCompressed(
                strategy="compaction",
                trigger=author,
                outcome="accepted",
                tokens_before=seen if is_seen else used,
                tokens_after=after if is_seen else max(0, used - seen + after),
                scope="content" if is_seen else "window",
                removed=tuple(block.id for block in removed),
                results=tuple(block.id for block in results),
                removed_by_component=tokens_by_component(removed),
                method=author,
            ),
            results,
            at,
        )
        for block in removed:
            self._references.discard(block.id)
        if not is_seen:
            coverage = sum(block.tokens for block in removed if block.text) / seen if seen else 0.0
            reason = "the text of the summary was not recorded"
            tracker.record(FidelityEvaluated("probe", None, coverage, of=event.event_id, reason=reason), at)
            return
        from windowpane.fidelity.probe import evaluate  # few conversations are compacted

        tracker.record(evaluate(removed, list(tracker.window), digest=self._digest, of=event.event_id), at)

    def _update_references(self, block: Block, at: float | None) -> None:
        """Mark the blocks that a reply mentions as used; index other content for later mentions."""
        if not block.text:
            return
        if block.content_type in REFERRING_TYPES:
            self.tracker.mark_referenced(self._references.referenced(block.text), block.id, at)
        elif block.content_type in INDEXED_TYPES:
            self._references.add(block.id, block.text)

    def _block(self, tracked: TrackedBlock) -> Block | None:
        window = self.tracker.window
        return window.slot(tracked.block_id).block if tracked.block_id in window else None

    def _tokens(self, tracked: TrackedBlock) -> int:
        block = self._block(tracked)
        return 0 if block is None else block.tokens

    def _count(self, spec: BlockSpec) -> tuple[int, CountSource]:
        counter = self.profile.counter
        source = counter.source  # before counting: a vocabulary may finish loading in between
        tokens = counter.count(spec.text) if spec.text else 0
        if spec.content_type == "tool_call" and spec.tool_name:
            tokens += counter.count(spec.tool_name)
        if spec.media:
            return tokens + spec.media * self.profile.media_tokens, "estimate"
        return tokens, source


class CallIds:
    """Gives ids to the calls of one session that have none, and finds the calls that results without one answer.

    Ids are given when content enters the window and do not depend on its position there. Calls are answered in
    order: a result answers the earliest open call of its tool since the last user message.
    """

    def __init__(self) -> None:
        self._given: Counter[str] = Counter()
        self._open: defaultdict[str, deque[str]] = defaultdict(deque)

    def id_of(self, spec: BlockSpec) -> str | None:
        """Return the id of a call or of the call that a result answers; None for other content."""
        if spec.content_type == "user_message":
            self._open.clear()
        if spec.tool_call_id is not None or not spec.tool_name:
            return spec.tool_call_id
        if spec.content_type == "tool_call":
            self._given[spec.tool_name] += 1
            call_id = f"{spec.tool_name}-{self._given[spec.tool_name]}"
            self._open[spec.tool_name].append(call_id)
            return call_id
        waiting = self._open.get(spec.tool_name) if spec.content_type == "tool_result" else None
        return waiting.popleft() if waiting else None
