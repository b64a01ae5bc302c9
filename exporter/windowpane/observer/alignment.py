"""How one message list became the next: what stayed, what was rewritten, what left, what came.

A pure function over the blocks of both lists from the first difference on. Agents delete, mask, summarise and
append; nobody says which. The rules below name what the result looks like, and no more than that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Final, NamedTuple

from windowpane.core.vocabulary import STANDING_TYPES
from windowpane.observer.messages import BlockSpec

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
