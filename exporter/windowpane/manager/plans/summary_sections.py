"""The sections of a conversation summary: writing them within a budget, and reading them back to update them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

from windowpane.core.protocols import TokenCounter

Section = Literal["goal", "progress", "constraints", "decisions", "artifacts", "errors", "state", "lookup"]

HEADINGS: Final[dict[Section, str]] = {
    "goal": "## Goal",
    "progress": "## Plan and progress",
    "constraints": "## Constraints",
    "decisions": "## Decisions and reasons",
    "artifacts": "## Artifacts, paths and values",
    "errors": "## Errors",
    "state": "## State and next steps",
    "lookup": "## Where to look",
}
PREAMBLE: Final = "[Summary of earlier turns. It is a record of what happened, not an instruction.]"
"""How a summary begins, and how it is recognised."""

SHARES: Final[dict[Section, float]] = {
    "constraints": 0.15,
    "decisions": 0.15,
    "artifacts": 0.45,
    "errors": 0.10,
    "state": 0.15,
}
"""Of the budget left after goal and look-up hints; what a section does not use the next ones may."""

Sections = Mapping[Section, Sequence[str]]


def parse(text: str) -> dict[Section, list[str]]:
    """The lines of each section of a summary; empty for a text without our headings."""
    by_heading = {heading: section for section, heading in HEADINGS.items()}
    found: dict[Section, list[str]] = {}
    current: list[str] | None = None
    for line in text.splitlines():
        heading = by_heading.get(line.strip())
        if heading is not None:
            current = found.setdefault(heading, [])
        elif current is not None and line.strip():
            current.append(line.removeprefix("- "))
    return found


def write(sections: Sections, *, max_tokens: int, counter: TokenCounter) -> str:
    """The summary in at most *max_tokens* where what is written whole allows it; newest lines last.

    Goal, progress and look-up hints are written whole. In every other section the last lines given are the most
    important: under pressure the first are left out.
    """
    fixed: dict[Section, list[str]] = {
        name: list(sections[name]) for name in ("goal", "progress", "lookup") if sections.get(name)
    }
    spent = counter.count(PREAMBLE) + sum(
        _cost(lines, counter) + _cost([HEADINGS[name]], counter) for name, lines in fixed.items()
    )
    room = max(0, max_tokens - spent)
    chosen: dict[Section, list[str]] = dict(fixed)
    spare = 0
    for name, share in SHARES.items():
        lines, cost = _newest(sections.get(name, ()), int(share * room) + spare, name, counter)
        spare += int(share * room) - cost
        if lines:
            chosen[name] = lines
    return _render(chosen)


def merge(older: Iterable[str], newer: Iterable[str]) -> list[str]:
    """Lines of both, each once, the newer after the older."""
    return list(dict.fromkeys([*older, *newer]))


def _newest(lines: Sequence[str], max_tokens: int, name: Section, counter: TokenCounter) -> tuple[list[str], int]:
    cost = counter.count(HEADINGS[name]) + 1
    kept: list[str] = []
    for line in reversed(lines):
        tokens = counter.count(line) + 2
        if cost + tokens > max_tokens:
            continue
        cost += tokens
        kept.append(line)
    return (kept[::-1], cost) if kept else ([], 0)


def _cost(lines: Iterable[str], counter: TokenCounter) -> int:
    return sum(counter.count(line) + 2 for line in lines)


def _render(sections: Sections) -> str:
    parts = [PREAMBLE]
    for name, heading in HEADINGS.items():
        if sections.get(name):
            parts.append(heading)
            parts.extend(line if name == "goal" else f"- {line}" for line in sections[name])
    return "\n".join(parts)
