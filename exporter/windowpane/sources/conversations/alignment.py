"""The difference between two consecutive message lists, as a pure function over their blocks.

`align` looks at both lists from the first difference on. Agents delete, mask, summarize and append without
reporting it; its rules name what the new list looks like, and nothing beyond that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Final, NamedTuple

from windowpane.core.vocabulary import STATIC_TYPES
from windowpane.models.wire.messages import BlockSpec, Key, same_rendering

SUMMARY_TYPES: Final = frozenset({"user_message", "assistant_response", "system_prompt", "memory_injection"})
"""Content types that agents write a summary as."""
CUT_RATIO: Final = 0.5
"""A tool call whose arguments shrink below this share of their length has been cut."""
MERGED_CHARACTERS: Final = 20
"""A text of at least this length within another one is the same content."""
MAXIMUM_COMPARISONS: Final = 40_000


class TrackedBlock(NamedTuple):
    """A block in the window, with the content it was sent as."""

    spec: BlockSpec
    block_id: str
    replied: bool = False
    """The model wrote it and it has not been sent back yet."""


class Rewrite(NamedTuple):
    """One block that replaces another."""

    tracked: TrackedBlock
    position: int
    """Position of the new block in the new list."""


class Extension(NamedTuple):
    """A message that grew at its end: the blocks of its earlier text, and the new rest."""

    tracked: tuple[TrackedBlock, ...]
    position: int
    rest: str


class Summarization(NamedTuple):
    """Several blocks that were replaced by fewer tokens."""

    removed: tuple[TrackedBlock, ...]
    positions: tuple[int, ...]


@dataclass(slots=True)
class Alignment:
    """The changes that make the new list from the old blocks; numbers are positions in the new list."""

    retained: dict[int, TrackedBlock] = field(default_factory=dict)
    rewritten: list[Rewrite] = field(default_factory=list)
    extended: list[Extension] = field(default_factory=list)
    summaries: list[Summarization] = field(default_factory=list)
    dropped: list[TrackedBlock] = field(default_factory=list)
    """Blocks that were sent and are not sent again."""
    revised: list[Rewrite] = field(default_factory=list)
    """Blocks of the reply that come back with another text."""
    discarded: list[TrackedBlock] = field(default_factory=list)
    """Blocks of the reply that do not come back, and so were never sent."""
    added: list[int] = field(default_factory=list)


def align(
    old: Sequence[TrackedBlock], new: Sequence[BlockSpec], *, size: Callable[[BlockSpec], int]
) -> Alignment:
    """Return the changes from *old* to *new*; *size* counts the tokens of one block."""
    changes = Alignment()
    old_keys = [tracked.spec.key for tracked in old]
    if old_keys == [spec.key for spec in new[: len(old)]]:  # the usual case: nothing but additions
        for index, tracked in enumerate(old):
            _match(changes, tracked, new[index], index)
        changes.added += range(len(old), len(new))
        return _settled(changes, new)
    matcher = SequenceMatcher(None, old_keys, [spec.key for spec in new], autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            for tracked, index in zip(old[i1:i2], range(j1, j2), strict=True):
                _match(changes, tracked, new[index], index)
        elif tag == "insert":
            changes.added += range(j1, j2)
        elif tag == "delete":
            _drop(changes, old[i1:i2])
        else:
            _replace(changes, list(old[i1:i2]), list(range(j1, j2)), new, size)
    return _settled(changes, new)


def _settled(changes: Alignment, new: Sequence[BlockSpec]) -> Alignment:
    """Return the changes without those of content that is only elsewhere now."""
    _find_moved(changes, new)
    _find_merged(changes, new)
    changes.added.sort()
    return changes


def _drop(changes: Alignment, removed: Iterable[TrackedBlock]) -> None:
    for tracked in removed:
        (changes.discarded if tracked.replied else changes.dropped).append(tracked)


def _match(changes: Alignment, tracked: TrackedBlock, spec: BlockSpec, index: int) -> None:
    before, after = tracked.spec.text or "", spec.text or ""
    if spec.content_type == "tool_call":  # arguments are often written anew, with other spaces
        same = len(after) >= CUT_RATIO * len(before)
    else:
        same = before == after or spec.key.name == after.strip()
    if same:
        changes.retained[index] = tracked
    else:  # the same call, result or definition with another text
        changes.rewritten.append(Rewrite(tracked, index))


def _replace(
    changes: Alignment, removed: list[TrackedBlock], inserted: list[int], new: Sequence[BlockSpec],
    size: Callable[[BlockSpec], int],
) -> None:  # fmt: skip
    """Align replaced blocks: a message grew or was rewritten, or a summary replaced several."""
    sent = [tracked for tracked in removed if not tracked.replied]
    extension = _extension(sent, inserted[0], new)
    if extension is not None:
        changes.extended.append(extension)
        removed, inserted, sent = removed[len(sent) :], inserted[1:], []
    replied = _pair_replies(changes, [one for one in removed if one.replied], inserted, new)
    if not inserted or not sent:
        _drop(changes, [*sent, *replied])
        changes.added += inserted
        return
    removed = [*sent, *replied]
    last = inserted[-1] == len(new) - 1
    summary = inserted[:1] if last else inserted
    before = sum(size(tracked.spec) for tracked in removed)
    if (
        len(removed) > len(summary)
        and any(tracked.spec.content_type not in STATIC_TYPES for tracked in removed)
        and all(new[index].content_type in SUMMARY_TYPES for index in summary)
        and sum(size(new[index]) for index in summary) < before
    ):
        changes.summaries.append(Summarization(tuple(removed), tuple(summary)))
        changes.added += inserted[len(summary) :]
        return
    _drop(changes, replied)
    _pair(changes, sent, inserted, new)


def _pair_replies(
    changes: Alignment, replied: list[TrackedBlock], inserted: list[int], new: Sequence[BlockSpec]
) -> list[TrackedBlock]:
    """Find the blocks of a reply that come back changed; takes them from *inserted* and returns the others."""
    unpaired: list[TrackedBlock] = []
    for tracked in replied:
        rendered = next((index for index in inserted if same_rendering(tracked.spec, new[index])), None)
        if rendered is not None:
            inserted.remove(rendered)
            changes.retained[rendered] = tracked
            continue
        index = next((index for index in inserted if new[index].content_type == tracked.spec.content_type), None)
        if index is None or tracked.spec.content_type != "assistant_response":
            unpaired.append(tracked)
            continue
        inserted.remove(index)
        extension = _extension([tracked], index, new)
        if extension is not None:
            changes.extended.append(extension)
        else:
            changes.revised.append(Rewrite(tracked, index))
    return unpaired


def _find_moved(changes: Alignment, new: Sequence[BlockSpec]) -> None:
    """Retain content that stands elsewhere in the new list: it is still sent."""
    positions: dict[Key, list[int]] = {}
    for index in changes.added:
        positions.setdefault(new[index].key, []).append(index)

    def moved(tracked: TrackedBlock) -> bool:
        indexes = positions.get(tracked.spec.key)
        if not indexes:
            return False
        index = indexes.pop(0)
        changes.added.remove(index)
        changes.retained[index] = tracked
        return True

    if positions:
        changes.dropped = [tracked for tracked in changes.dropped if not moved(tracked)]
        changes.discarded = [tracked for tracked in changes.discarded if not moved(tracked)]
        changes.summaries = [
            summary._replace(removed=tuple(tracked for tracked in summary.removed if not moved(tracked)))
            for summary in changes.summaries
        ]
        for rewrite in [rewrite for rewrite in changes.rewritten if moved(rewrite.tracked)]:
            changes.rewritten.remove(rewrite)
            changes.added.append(rewrite.position)


def _find_merged(changes: Alignment, new: Sequence[BlockSpec]) -> None:
    """Retain content that is now part of a longer message: it is still sent."""
    if len(changes.added) * (len(changes.dropped) + len(changes.discarded)) > MAXIMUM_COMPARISONS:
        return
    for index in list(changes.added):
        rest = new[index].text or ""
        merged: list[TrackedBlock] = []
        for tracked in (*changes.dropped, *changes.discarded):
            text = (tracked.spec.text or "").strip()
            if len(text) >= MERGED_CHARACTERS and text in rest:
                rest = rest.replace(text, "", 1)
                merged.append(tracked)
        if not merged:
            continue
        changes.added.remove(index)
        changes.extended.append(Extension(tuple(merged), index, rest))
        changes.dropped = [tracked for tracked in changes.dropped if tracked not in merged]
        changes.discarded = [tracked for tracked in changes.discarded if tracked not in merged]


def _extension(removed: list[TrackedBlock], index: int, new: Sequence[BlockSpec]) -> Extension | None:
    spec = new[index]
    if not spec.text or spec.media or any(tracked.spec.content_type != spec.content_type for tracked in removed):
        return None
    before = "".join(tracked.spec.text or "" for tracked in removed)
    if not before or not spec.text.startswith(before):
        return None
    return Extension(tuple(removed), index, spec.text[len(before) :])


def _pair(changes: Alignment, removed: list[TrackedBlock], inserted: list[int], new: Sequence[BlockSpec]) -> None:
    """Pair blocks of one type as rewrites; the others are dropped or new."""
    unpaired = list(inserted)
    for tracked in removed:
        index = next((index for index in unpaired if _rewrites(tracked.spec, new[index])), None)
        if index is None:
            changes.dropped.append(tracked)
        else:
            unpaired.remove(index)
            changes.rewritten.append(Rewrite(tracked, index))
    changes.added += unpaired


def _rewrites(old: BlockSpec, new: BlockSpec) -> bool:
    if old.content_type != new.content_type or old.content_type in ("tool_call", "tool_result", "media"):
        return False
    return old.content_type in STATIC_TYPES or len(new.text or "") <= len(old.text or "")
