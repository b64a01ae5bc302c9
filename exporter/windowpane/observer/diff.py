"""What an alignment means for the window: additions, evictions and compressions that the agent did itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from windowpane.core.events import BlocksEvicted, ContentCompressed, EvictedBlock, Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.protocols import Digester, TokenCounter
from windowpane.core.tracking import SessionTracker
from windowpane.core.vocabulary import COMPONENT_OF, Component, CountSource
from windowpane.core.window.blocks import Block
from windowpane.core.window.references import INDEXED_TYPES, ReferenceIndex
from windowpane.fidelity.probe import evaluate
from windowpane.observer.alignment import Alignment, Held, Rewrite, Summary, align
from windowpane.observer.messages import BlockSpec, Key

POLICY: Final = "agent"
"""Named as the policy of every reduction that the agent did itself."""
REFERRING_TYPES: Final = frozenset({"assistant_response", "tool_call"})


@dataclass(frozen=True, slots=True)
class ModelView:
    """What is known of the model a call goes to."""

    counter: TokenCounter
    limits: WindowLimits | None = None
    media_tokens: int = 1_000
    """Flat cost of one image."""
    cost_of: Callable[[Usage], float | None] | None = None


class ModelViews(Protocol):
    """Model names to what is known of them."""

    def __call__(self, model: str, /) -> ModelView:
        """What is known of *model*; a view without limits where its window is unknown."""
        ...


class _Count(NamedTuple):
    tokens: int
    source: CountSource


class Facts:
    """Tells one session's tracker what happened to its blocks."""

    def __init__(self, tracker: SessionTracker, view: ModelView, *, digest: Digester) -> None:
        self.tracker = tracker
        self.view = view
        self._digest = digest
        self._references = ReferenceIndex()

    def take(self, old: Sequence[Held], new: Sequence[BlockSpec], at: float | None) -> list[tuple[Held, ...]]:
        """Make *new* of *old* in the window; returns the blocks that hold each of *new*."""
        found = align(old, new, size=self._size)
        places: dict[int, tuple[Held, ...]] = {
            index: (held._replace(replied=False),) for index, held in found.kept.items()
        }
        self._evict(found, new, places, at)
        for summary in found.summaries:
            self._compress(summary, new, places, at)
        self._enter(found, new, places, at)
        return [places[index] for index in range(len(new))]

    def add(self, spec: BlockSpec, at: float | None, *, replied: bool = False) -> Held:
        """A block entered."""
        size = self._count(spec)
        digest = ""
        if spec.content_type == "tool_call":
            digest = self._digest(f"{spec.tool_name}\0{spec.text}")
        block = self.tracker.add(
            spec.content_type,
            spec.text,
            size.tokens,
            count_source=size.source,
            digest=digest,
            tool_call_id=spec.tool_call_id,
            tool_name=spec.tool_name,
            at=at,
        )
        self._relate(block, at)
        return Held(spec, block.id, replied)

    # -- inside -----------------------------------------------------------------------------------------------

    def _enter(
        self, found: Alignment, new: Sequence[BlockSpec], places: dict[int, tuple[Held, ...]], at: float | None
    ) -> None:
        """Add what is new, in the order in which it stands in the list."""
        rests = {extension.at: extension for extension in found.extended}
        for index in sorted([*found.added, *rests]):
            grown = rests.get(index)
            if grown is None:
                places[index] = (self.add(new[index], at),)
                continue
            kept = tuple(held._replace(replied=False) for held in grown.held)
            spec = new[index]
            rest = BlockSpec(spec.content_type, grown.rest, Key(spec.content_type, grown.rest.strip()))
            places[index] = (*kept, self.add(rest, at))

    def _evict(
        self, found: Alignment, new: Sequence[BlockSpec], places: dict[int, tuple[Held, ...]], at: float | None
    ) -> None:
        """One eviction for everything that left without being summarised, or was written anew."""
        evicted = [self._gone(held) for held in found.dropped]
        stand_ins: list[Block] = []
        for rewrite in found.rewritten:
            stand_in = self._stand_in(rewrite, new[rewrite.at])
            if stand_in is None:
                evicted.append(self._gone(rewrite.held))
                found.added.append(rewrite.at)
                continue
            stand_ins.append(stand_in)
            evicted.append(self._gone(rewrite.held, stand_in))
            places[rewrite.at] = (Held(new[rewrite.at], stand_in.id),)
        if not evicted:
            return
        removed = sum(block.tokens for block in evicted)
        freed = max(0, removed - sum(block.tokens for block in stand_ins))
        self.tracker.evict(BlocksEvicted(POLICY, tuple(evicted), removed, freed), stand_ins, at)
        for block in evicted:
            self._references.forget(block.block_id)

    def _stand_in(self, rewrite: Rewrite, spec: BlockSpec) -> Block | None:
        """What takes the place of a rewritten block; None where it grew, so that it counts as added."""
        held = rewrite.held
        size = self._count(spec)
        is_result = spec.content_type == "tool_result"
        if is_result and size.tokens >= self._tokens(held):
            return None
        return self.tracker.stand_in(
            "placeholder" if is_result else spec.content_type,
            spec.text,
            size.tokens,
            replaces=held.block_id,
            count_source=size.source,
        )

    def _gone(self, held: Held, stand_in: Block | None = None) -> EvictedBlock:
        block = self._block(held)
        if stand_in is None:
            reason = "not sent back by the agent" if held.replied else "left out by the agent"
        else:
            reason = (
                "cleared by the agent" if stand_in.content_type == "placeholder" else "rewritten by the agent"
            )
        return EvictedBlock(
            held.block_id,
            held.spec.content_type if block is None else block.content_type,
            self._tokens(held),
            "drop" if stand_in is None else "mask",
            reason,
            replacement=None if stand_in is None else stand_in.id,
            replacement_tokens=0 if stand_in is None else stand_in.tokens,
            turn_added=None if block is None else block.turn,
            tool_name=held.spec.tool_name,
        )

    def _compress(
        self, summary: Summary, new: Sequence[BlockSpec], places: dict[int, tuple[Held, ...]], at: float | None
    ) -> None:
        tracker = self.tracker
        removed = [block for held in summary.removed if (block := self._block(held)) is not None]
        results: list[Block] = []
        for index in summary.places:
            spec, size = new[index], self._count(new[index])
            replaces = removed[0].id if removed else None
            block = tracker.stand_in(
                "summary", spec.text, size.tokens, replaces=replaces, count_source=size.source
            )
            results.append(block)
            places[index] = (Held(spec, block.id),)
        event = tracker.compress(
            ContentCompressed(
                strategy="compaction",
                trigger=POLICY,
                outcome="accepted",
                tokens_before=sum(block.tokens for block in removed),
                tokens_after=sum(block.tokens for block in results),
                removed=tuple(block.id for block in removed),
                results=tuple(block.id for block in results),
                removed_by_component=_by_component(removed),
                method=POLICY,
            ),
            results,
            at,
        )
        for block in removed:
            self._references.forget(block.id)
        judged = evaluate(removed, list(tracker.window), digest=self._digest, of=event.event_id)
        tracker.record(judged, at)

    def _relate(self, block: Block, at: float | None) -> None:
        """What a reply mentions is still in use; other content may be referred to later."""
        if not block.text:
            return
        if block.content_type in REFERRING_TYPES:
            self.tracker.refer(self._references.mentioned(block.text), block.id, at)
        elif block.content_type in INDEXED_TYPES:
            self._references.add(block.id, block.text)

    def _block(self, held: Held) -> Block | None:
        window = self.tracker.window
        return window.slot(held.block_id).block if held.block_id in window else None

    def _tokens(self, held: Held) -> int:
        block = self._block(held)
        return 0 if block is None else block.tokens

    def _size(self, spec: BlockSpec) -> int:
        return self._count(spec).tokens

    def _count(self, spec: BlockSpec) -> _Count:
        counter = self.view.counter
        source = counter.source
        tokens = counter.count(spec.text) if spec.text else 0
        if spec.content_type == "tool_call" and spec.tool_name:
            tokens += counter.count(spec.tool_name)
        if spec.media:
            return _Count(tokens + spec.media * self.view.media_tokens, "estimate")
        return _Count(tokens, source)


def _by_component(blocks: Iterable[Block]) -> dict[Component, int]:
    sums: dict[Component, int] = {}
    for block in blocks:
        component = COMPONENT_OF[block.content_type]
        sums[component] = sums.get(component, 0) + block.tokens
    return sums
