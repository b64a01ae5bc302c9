"""The life of one block in plain sentences, one per step, each with its turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from windowpane.core.events import EvictedBlock
from windowpane.store.reads.block_life import BlockLife, BlockRemoval, BlockUse
from windowpane.store.records import BlockRow
from windowpane.text.formats import count, ratio, tokens
from windowpane.text.labels import CONTENT_LABELS, content_name

LISTED_USES: Final = 8
"""Uses with a separate sentence; one more sentence counts the others."""
LISTED_CANDIDATES: Final = 3

Step = Literal["added", "used", "removed", "replaced", "needed again", "in the window"]

_CAUSES: Final = {
    "eviction": "Removed",
    "compression": "Compacted",
    "roll": "Removed when the session continued in a new window",
    "replaced": "Replaced by a newer version",
    "discarded": "Not sent back by the agent",
}


_UNCOUNTED: Final = ("content", "media", "thinking")
"""Starts of the names that have no article."""


@dataclass(frozen=True, slots=True)
class LifeStep:
    """One step of a block's life."""

    step: Step
    turn: int
    at: float | None
    text: str
    block_id: str | None = None
    """The other block of the step: the user, the replacement, what needed it again."""


def block_name(block: BlockRow) -> str:
    """Return the type of a block and its tool: `tool result of read`."""
    return content_name(block.content_type, block.tool_name)


def life_steps(life: BlockLife) -> list[LifeStep]:
    """Return the steps in order: added, used, removed, replaced, needed again."""
    return list(_steps(life))


def _steps(life: BlockLife) -> Iterator[LifeStep]:
    block = life.block
    size = tokens(block.tokens, estimated=block.count_source == "estimate")
    origin = "" if life.called_by is None else f", the result of a {block_name(life.called_by)}"
    caller = None if life.called_by is None else life.called_by.block_id
    text = f"Added as {block_name(block)} of {size} tokens{origin}."
    yield LifeStep("added", block.turn_added, life.added_at, text, caller)
    for use in life.uses[:LISTED_USES]:
        yield LifeStep("used", use.turn, use.at, f"Used by {_user(use)}.", use.by)
    if len(life.uses) > LISTED_USES:
        last = life.uses[-1]
        more = count(len(life.uses) - LISTED_USES, "more use")
        yield LifeStep("used", last.turn, last.at, f"{more}, the last by {_user(last)}.", last.by)
    removal = life.removal
    if removal is None:
        yield LifeStep("in the window", block.turn_added, None, "Never removed; it is still in the window.")
        return
    if removal.kind != "replaced" or removal.reason or life.replacement is None:
        yield LifeStep("removed", removal.turn, removal.at, _removal(removal))
    yield _replacement(life, removal)
    for again in life.fetched_again:
        text = f"Needed again by {_user(again)}: {size} tokens."
        yield LifeStep("needed again", again.turn, again.at, text, again.by)


def _user(use: BlockUse) -> str:
    return use.by if use.block is None else f"{block_name(use.block)} of turn {use.block.turn_added}"


def _removal(removal: BlockRemoval) -> str:
    cause = _CAUSES.get(removal.kind, removal.kind.capitalize())
    policy = f" by {removal.policy.replace('_', ' ')}" if removal.policy not in ("", "compaction") else ""
    together = f" with {count(removal.removed_blocks - 1, 'other item')}" if removal.removed_blocks > 1 else ""
    reason = f": {removal.reason}" if removal.reason else ""
    return f"{cause}{policy}{together}{reason}.{_scores(removal)}"


def _scores(removal: BlockRemoval) -> str:
    """Return the score of the block next to the scores that it was compared with."""
    evicted = removal.evicted
    if evicted is None or evicted.score is None:
        return ""
    terms = ", ".join(f"{name.replace('_', ' ')} {ratio(value)}" for name, value in evicted.terms.items())
    text = f" Score {ratio(evicted.score)}" + (f" ({terms})" if terms else "")
    if removal.candidates:
        compared = ", ".join(
            f"{CONTENT_LABELS[one.content_type]} {one.block_id} {ratio(one.score)}"
            for one in removal.candidates[:LISTED_CANDIDATES]
        )
        text += f"; retained against it: {compared}"
        if len(removal.candidates) > LISTED_CANDIDATES:
            text += f" and {count(len(removal.candidates) - LISTED_CANDIDATES, 'other')}"
    elif removal.others:
        text += f"; removed with it at {_range(removal.others)}"
    return f"{text}. 0 is removed first, 1 last."


def _range(others: tuple[EvictedBlock, ...]) -> str:
    scores = [one.score for one in others if one.score is not None]
    if not scores:
        return "no score"
    low, high = min(scores), max(scores)
    return ratio(low) if low == high else f"{ratio(low)} to {ratio(high)}"


def _replacement(life: BlockLife, removal: BlockRemoval) -> LifeStep:
    replacement, evicted = life.replacement, removal.evicted
    if replacement is None:
        text = "Replaced by nothing."
        if evicted is not None and evicted.handle:
            text = f"Replaced by nothing; the original can be retrieved as {evicted.handle}."
        return LifeStep("replaced", removal.turn, removal.at, text)
    handle = f"; the original can be retrieved as {evicted.handle}" if evicted and evicted.handle else ""
    name = block_name(replacement)
    article = "" if name.startswith(_UNCOUNTED) else "an " if name[0] in "aeiou" else "a "
    text = f"Replaced by {article}{name} of {tokens(replacement.tokens)} tokens{handle}."
    return LifeStep("replaced", replacement.turn_added, removal.at, text, replacement.block_id)
