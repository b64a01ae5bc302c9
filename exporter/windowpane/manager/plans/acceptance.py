"""The acceptance check that every compression passes before it is applied."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from windowpane.core.window.blocks import Block
from windowpane.fidelity.facts import names_kept
from windowpane.fidelity.passages import MAXIMUM_CHARACTERS, WRITTEN_TYPES, Passage
from windowpane.fidelity.probe import MINIMUM_COVERAGE, coverage_of
from windowpane.manager.plans.summary import HEADINGS, Section

MINIMUM_PROGRESS: Final = 0.10
"""Share of the window's tokens a compression has to free when it misses its target."""
FACTS_FLOOR: Final = 0.5
"""Share of the facts of a replaced conversation that has to be visible, or to be fetched by a visible handle."""
FIDELITY_FLOOR: Final = 0.5
"""Share of the names, for notes, which are written without access to the content."""
MODEL_FIDELITY_FLOOR: Final = 0.15
"""Share of the names, for text that a model wrote from the content: with less, it is a summary of something else.
Nine in ten summaries of recorded compactions reach it."""
NOT_SMALLER: Final = "not smaller"
TOO_LITTLE: Final = "too little progress"
TOO_LONG: Final = frozenset({NOT_SMALLER, TOO_LITTLE})
"""Reasons for which a shorter summary of the same content may be accepted."""
SAMPLE_CHARACTERS: Final = 12_000
"""Removed text that the check of one step reads: it decides at once, on the agent's path, and the whole
is measured afterwards. Of 42 recorded compactions it accepts 39, of 126 with the summary of another session 1."""
REPLACEMENT_CHARACTERS: Final = 4 * SAMPLE_CHARACTERS
MINIMUM_TERMS: Final = 3
"""A shorter reply without a name or number states nothing."""
_CALL_MARKS: Final = ("<tool_call>", "<function_calls>", '"tool_calls":', "<invoke ")


@dataclass(frozen=True, slots=True)
class ProposedSummary:
    """A compression that could be applied; tokens as counted at ingest."""

    text: str
    tokens_before: int
    """Tokens of the content that the text replaces."""
    tokens_after: int
    window_before: int
    """Tokens of the window without the static content that is sent with every call."""
    target_tokens: int
    """Tokens to reach, without the static content as well."""
    required_sections: Sequence[Section] = ()
    pinned: Sequence[str] = ()
    """Texts that it must contain word for word, such as the goal."""
    fidelity: float | None = None
    fidelity_floor: float = MODEL_FIDELITY_FLOOR
    facts: float | None = None
    """Share of the facts that is visible or fetched by a handle; None if it is not measured."""


def sampled_fidelity(removed: Sequence[Block], replacement: Block, *, checks: int = 1) -> float | None:
    """Return the share of the newest names that a replacement still has; None if the content has no text.

    Of content without names it is the share of the replacement's words that the content has. The text is shared
    among so many *checks* of one step.
    """
    if coverage_of(removed) < MINIMUM_COVERAGE:
        return None
    limit = SAMPLE_CHARACTERS // checks
    read = sample(removed, characters=limit)
    visible = sample([replacement], characters=REPLACEMENT_CHARACTERS // checks)
    share = names_kept(read, visible)
    return terms_in_common(read, visible) if share is None else share


def sample(blocks: Sequence[Block], *, characters: int) -> tuple[Block, ...]:
    """Return the newest content of *blocks* in at most so many characters, for an evaluation in a short time.

    Half of it is what the model and the user wrote, as far as there is, since most facts are theirs. Of the block
    that does not fit, lines from start to end are read. Blocks without text are skipped.
    """
    texts = [block for block in blocks if block.text]
    written = [block for block in texts if block.content_type in WRITTEN_TYPES]
    others = [block for block in texts if block.content_type not in WRITTEN_TYPES]
    room = max(characters // 2, characters - sum(len(block.text or "") for block in others))
    chosen = _newest(written, room)
    chosen |= _newest(others, characters - sum(len(block.text or "") for block in chosen.values()))
    return tuple(chosen[block.id] for block in texts if block.id in chosen)


def _newest(blocks: Sequence[Block], characters: int) -> dict[str, Block]:
    chosen: dict[str, Block] = {}
    for block in reversed(blocks):
        text = block.text or ""
        part = text if len(text) <= characters else _part(text, characters)
        if part == text:
            chosen[block.id] = block
        elif part:
            tokens = math.ceil(block.tokens * len(part) / len(text))
            chosen[block.id] = replace(block, text=part, tokens=tokens)
        characters -= len(part)
    return chosen


def _part(text: str, characters: int) -> str:
    """Return every second line, third line or so on of a text; its start where a line is long."""
    return "\n".join(text.split("\n")[:: math.ceil(len(text) / characters)])[:characters] if characters else ""


def terms_in_common(removed: Sequence[Block], visible: Sequence[Block]) -> float | None:
    """Return the share of the terms in *visible* that *removed* has, 0 to 1; None without any."""
    own, others = (
        Passage("\n".join(block.text or "" for block in blocks)).positions.keys() for blocks in (visible, removed)
    )
    return len(own & others) / len(own) if own and others else None


def states_nothing(text: str) -> bool:
    """Return whether *text* has neither a name or number nor a sentence: `ok`, `Done.`, `I understand`."""
    passage = Passage(text[: 4 * MAXIMUM_CHARACTERS])
    return not passage.exact and len(passage.positions) < MINIMUM_TERMS


def reply_rejection_reason(reply: str, proposed: ProposedSummary) -> str:
    """Return why a model's *reply* may not be applied as *proposed*, which frames it; empty if it may."""
    if not reply.strip():
        return "empty"
    return "states nothing" if states_nothing(reply) else rejection_reason(proposed)


class _Fault(NamedTuple):
    wrong: bool
    reason: str


def rejection_reason(proposed: ProposedSummary) -> str:
    """Return why *proposed* may not be applied; empty if it may."""
    return next((reason for wrong, reason in _faults(proposed) if wrong), "")


def _faults(proposed: ProposedSummary) -> Iterator[_Fault]:
    yield _Fault(not proposed.text.strip(), "empty")
    yield _Fault(proposed.tokens_after >= proposed.tokens_before, NOT_SMALLER)
    yield _Fault(any(mark in proposed.text for mark in _CALL_MARKS), "calls a tool")
    for section in proposed.required_sections:
        yield _Fault(HEADINGS[section] not in proposed.text, f"section missing: {section}")
    yield _Fault(any(pinned not in proposed.text for pinned in proposed.pinned), "pinned text missing")
    saved = proposed.tokens_before - proposed.tokens_after
    missed = proposed.window_before - saved > proposed.target_tokens
    yield _Fault(missed and saved < MINIMUM_PROGRESS * proposed.window_before, TOO_LITTLE)
    if proposed.fidelity is not None:
        yield _Fault(
            proposed.fidelity < proposed.fidelity_floor,
            f"fidelity {proposed.fidelity:.2f} is below {proposed.fidelity_floor}",
        )
    if proposed.facts is not None:
        reason = f"{proposed.facts:.2f} of the facts are visible or have a handle, below {FACTS_FLOOR}"
        yield _Fault(proposed.facts < FACTS_FLOOR, reason)
