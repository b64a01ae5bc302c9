"""Before and after of a compression as lines that went, stayed or came, facts marked; without Streamlit."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

State = Literal["same", "gone", "new"]

LINES: Final = 400
"""Lines of one side that are shown."""
LINE_LENGTH: Final = 400
"""Characters of one line that are shown; the middle is left out where it is longer."""
SCANNED: Final = 400_000
"""Characters of one side that are looked through."""
FACTS: Final = 500
MINIMUM_FACT: Final = 3
"""Shorter facts would be found everywhere."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of characters; *outcome* says which fact it is, if any."""

    text: str
    outcome: str | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One line of one side."""

    state: State
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """One side, as far as it is shown."""

    lines: tuple[Line, ...]
    left_out: int
    """Lines that are not shown."""

    @property
    def changed(self) -> int:
        """Lines that the other side does not have."""
        return sum(line.state != "same" for line in self.lines)


@dataclass(frozen=True, slots=True)
class Difference:
    """Both sides."""

    before: Shown
    after: Shown


def difference(before: Sequence[str], after: Sequence[str], facts: Mapping[str, str]) -> Difference:
    """Mark each line by whether the other side has it too, and every fact by what became of it.

    *facts* maps a fact's text to its outcome. Lines are the same when they agree but for spaces and list signs.
    """
    old, new = _lines(before), _lines(after)
    finder = _finder(facts)
    known = {_bare(line) for line in new}, {_bare(line) for line in old}
    return Difference(_side(old, known[0], "gone", finder, facts), _side(new, known[1], "new", finder, facts))


def _lines(texts: Sequence[str]) -> list[str]:
    joined = "\n".join(texts)[:SCANNED]
    return [line.rstrip() for line in joined.splitlines() if line.strip()]


def _bare(line: str) -> str:
    return " ".join(line.strip(" \t-*>#").split())


def _finder(facts: Mapping[str, str]) -> re.Pattern[str] | None:
    found = sorted({fact.strip() for fact in facts if len(fact.strip()) >= MINIMUM_FACT}, key=len, reverse=True)
    words = [re.escape(fact[:LINE_LENGTH]) for fact in found[:FACTS]]
    return re.compile("|".join(words)) if words else None


def _side(
    lines: Sequence[str], other: set[str], state: State, finder: re.Pattern[str] | None, facts: Mapping[str, str]
) -> Shown:
    outcomes = {fact.strip()[:LINE_LENGTH]: outcome for fact, outcome in facts.items()}
    shown = [
        Line("same" if _bare(line) in other else state, _pieces(_cut(line), finder, outcomes))
        for line in lines[:LINES]
    ]
    return Shown(tuple(shown), max(0, len(lines) - LINES))


def _cut(line: str) -> str:
    if len(line) <= LINE_LENGTH:
        return line
    half = LINE_LENGTH // 2
    return f"{line[:half]} … {len(line) - 2 * half:,} characters … {line[-half:]}"


def _pieces(line: str, finder: re.Pattern[str] | None, outcomes: Mapping[str, str]) -> tuple[Piece, ...]:
    if finder is None:
        return (Piece(line),)
    pieces, at = [], 0
    for match in finder.finditer(line):
        if match.start() > at:
            pieces.append(Piece(line[at : match.start()]))
        pieces.append(Piece(match.group(), outcomes[match.group()]))
        at = match.end()
    if at < len(line) or not pieces:
        pieces.append(Piece(line[at:]))
    return tuple(pieces)
