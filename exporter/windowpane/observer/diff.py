"""How one message list became the next: what stayed, what was rewritten, what left, what came.

A pure function over the blocks of both lists from the first difference on. Agents delete, mask, summarise and
append; nobody says which. The rules below name what the result looks like, and no more than that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Final, NamedTuple, Protocol

from windowpane.core.events import BlocksEvicted, ContentCompressed, EvictedBlock, Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.protocols import Digester, TokenCounter
from windowpane.core.tracking import SessionTracker
from windowpane.core.vocabulary import COMPONENT_OF, STANDING_TYPES, Component, CountSource
from windowpane.core.window.blocks import Block
from windowpane.core.window.references import INDEXED_TYPES, ReferenceIndex
from windowpane.fidelity.probe import evaluate
from windowpane.observer.messages import BlockSpec, Key

SUMMARY_TYPES: Final = frozenset({"user_message", "assistant_response", "system_prompt", "memory_injection"})
"""What a summary is written as."""
CUT_RATIO: Final = 0.5
"""Arguments of a tool call that are shorter than this share of what they were have been cut."""


class Held(NamedTuple):
    """A block in the window, and what it was sent as."""

    spec: BlockSpec
    block_id: str
    replied: bool = False
    """The model wrote it and it was never sent back yet."""


class Rewrite(NamedTuple):
    """One block that stands in another's place."""

    held: Held
    at: int
    """Place of the new block in the new list."""


class Extension(NamedTuple):
    """A message that grew at its end: the blocks that were its text, and the part that is new."""

    held: tuple[Held, ...]
    at: int
    rest: str


class Summary(NamedTuple):
    """Several blocks that gave way to fewer tokens."""

    removed: tuple[Held, ...]
    places: tuple[int, ...]


@dataclass(slots=True)
class Alignment:
    """What became of the old blocks, and where the new ones come from; numbers are places in the new list."""

    kept: dict[int, Held] = field(default_factory=dict)
    rewritten: list[Rewrite] = field(default_factory=list)
    extended: list[Extension] = field(default_factory=list)
    summaries: list[Summary] = field(default_factory=list)
    dropped: list[Held] = field(default_factory=list)
    added: list[int] = field(default_factory=list)


def align(old: Sequence[Held], new: Sequence[BlockSpec], *, size: Callable[[BlockSpec], int]) -> Alignment:
    """How *old* became *new*; *size* counts the tokens of a block, and is asked only about what changed."""
    found = Alignment()
    matcher = SequenceMatcher(None, [held.spec.key for held in old], [spec.key for spec in new], autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            for held, index in zip(old[i1:i2], range(j1, j2), strict=True):
                _keep(found, held, new[index], index)
        elif tag == "insert":
            found.added += range(j1, j2)
        elif tag == "delete":
            found.dropped += old[i1:i2]
        else:
            _replace(found, list(old[i1:i2]), list(range(j1, j2)), new, size)
    found.added.sort()
    return found


def _keep(found: Alignment, held: Held, spec: BlockSpec, index: int) -> None:
    before, after = held.spec.text or "", spec.text or ""
    if spec.content_type == "tool_call":  # arguments are often written anew, with other spaces
        same = len(after) >= CUT_RATIO * len(before)
    else:
        same = before == after or spec.key.name == after.strip()
    if same:
        found.kept[index] = held
    else:  # the same call, result or definition with another text
        found.rewritten.append(Rewrite(held, index))


def _replace(
    found: Alignment, removed: list[Held], inserted: list[int], new: Sequence[BlockSpec],
    size: Callable[[BlockSpec], int],
) -> None:  # fmt: skip
    """Blocks gave way to others: a message grew or was rewritten, or a summary took their place."""
    sent = [held for held in removed if not held.replied]
    grown = _extension(sent, inserted[0], new)
    if grown is not None:
        found.extended.append(grown)
        found.dropped += removed[len(sent) :]
        found.added += inserted[1:]
        return
    if not sent:
        _pair(found, removed, inserted, new)
        return
    last = inserted[-1] == len(new) - 1
    writes = inserted[:1] if last else inserted
    before = sum(size(held.spec) for held in removed)
    if (
        len(removed) > len(writes)
        and all(new[index].content_type in SUMMARY_TYPES for index in writes)
        and sum(size(new[index]) for index in writes) < before
    ):
        found.summaries.append(Summary(tuple(removed), tuple(writes)))
        found.added += inserted[len(writes) :]
        return
    _pair(found, removed, inserted, new)


def _extension(removed: list[Held], index: int, new: Sequence[BlockSpec]) -> Extension | None:
    spec = new[index]
    if not spec.text or spec.media or any(held.spec.content_type != spec.content_type for held in removed):
        return None
    before = "".join(held.spec.text or "" for held in removed)
    if not before or not spec.text.startswith(before):
        return None
    return Extension(tuple(removed), index, spec.text[len(before) :])


def _pair(found: Alignment, removed: list[Held], inserted: list[int], new: Sequence[BlockSpec]) -> None:
    """Blocks of one type in the same place are the same thing rewritten; the rest left, or is new."""
    waiting = list(inserted)
    for held in removed:
        same = next((index for index in waiting if _rewrites(held.spec, new[index])), None)
        if same is None:
            found.dropped.append(held)
        else:
            waiting.remove(same)
            found.rewritten.append(Rewrite(held, same))
    found.added += waiting


def _rewrites(old: BlockSpec, new: BlockSpec) -> bool:
    if old.content_type != new.content_type or old.content_type in ("tool_call", "tool_result", "media"):
        return False
    return old.content_type in STANDING_TYPES or len(new.text or "") <= len(old.text or "")


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
        return self.tracker.make_replacement(
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
            block = tracker.make_replacement(
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
            self.tracker.mark_referenced(self._references.mentioned(block.text), block.id, at)
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
