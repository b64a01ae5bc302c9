"""Conversation summaries: their sections, the embedded summarizer, and the names a summary should retain.

The embedded summarizer needs no model: it copies facts word for word into the sections and writes nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from windowpane.core.protocols import TokenCounter
from windowpane.core.window.blocks import Block
from windowpane.core.window.references import IDENTIFIERS_PER_BLOCK, ReferenceIndex
from windowpane.fidelity.facts import Fact, FactKind

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
"""First line of a summary, by which it is recognized."""

SHARES: Final[dict[Section, float]] = {
    "constraints": 0.15,
    "decisions": 0.15,
    "artifacts": 0.45,
    "errors": 0.10,
    "state": 0.15,
}
"""Shares of the budget left after goal and look-up hints; unused tokens go to the next sections."""

Sections = Mapping[Section, Sequence[str]]


def parse_sections(text: str) -> dict[Section, list[str]]:
    """Return the lines of each section of a summary; empty for a text without these headings."""
    by_heading = {heading: section for section, heading in HEADINGS.items()}
    sections: dict[Section, list[str]] = {}
    current: list[str] | None = None
    for line in text.splitlines():
        heading = by_heading.get(line.strip())
        if heading is not None:
            current = sections.setdefault(heading, [])
        elif current is not None and line.strip():
            current.append(line.removeprefix("- "))
    return sections


def render_sections(sections: Sections, *, max_tokens: int, counter: TokenCounter) -> str:
    """Return the summary, in at most *max_tokens* if the parts written whole allow it; newest lines last.

    Goal, progress and look-up hints are written whole. In every other section the last lines given are the most
    important: under pressure the first are omitted.
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


def merge_lines(older: Iterable[str], newer: Iterable[str]) -> list[str]:
    """Return the lines of both, each once, the newer after the older."""
    return list(dict.fromkeys([*older, *newer]))


def _newest(lines: Sequence[str], max_tokens: int, name: Section, counter: TokenCounter) -> tuple[list[str], int]:
    cost = counter.count(HEADINGS[name]) + 1
    retained: list[str] = []
    for line in reversed(lines):
        tokens = counter.count(line) + 2
        if cost + tokens > max_tokens:
            continue
        cost += tokens
        retained.append(line)
    return (retained[::-1], cost) if retained else ([], 0)


def _cost(lines: Iterable[str], counter: TokenCounter) -> int:
    return sum(counter.count(line) + 2 for line in lines)


def _render(sections: Sections) -> str:
    parts = [PREAMBLE]
    for name, heading in HEADINGS.items():
        if sections.get(name):
            parts.append(heading)
            parts.extend(line if name == "goal" else f"- {line}" for line in sections[name])
    return "\n".join(parts)


SECTION_OF: Final[dict[FactKind, Section]] = {
    "goal": "state",
    "constraint": "constraints",
    "decision": "decisions",
    "path": "artifacts",
    "number": "artifacts",
    "identifier": "artifacts",
    "error": "errors",
    "open_work": "state",
}
_NAMING: Final[tuple[FactKind, ...]] = ("identifier", "number", "path")
NAMES_A_LINE: Final = 6


def summarize(
    facts: Sequence[Fact],
    *,
    goal: str,
    previous: Iterable[str] = (),
    lookup: Sequence[str] = (),
    progress: Sequence[str] = (),
    names: Sequence[str] = (),
    max_tokens: int,
    counter: TokenCounter,
) -> str:
    """Return a summary of *facts* in sections, in at most *max_tokens* beside the goal, which is never shortened.

    *progress* states what of the task is done and planned now; it replaces that part of earlier summaries.
    *previous* are earlier summaries: their lines are carried on instead of being summarized again.
    *facts* come most critical first; within a section the most critical stay longest. *names* are those of what
    the conversation refers to things by, least wanted first; they stay longer than the names among the facts.
    """
    sections: dict[Section, list[str]] = {}
    for text in previous:
        for name, lines in parse_sections(text).items():
            sections[name] = merge_lines(sections.get(name, ()), lines)
    names_by_kind: dict[FactKind, list[str]] = {}
    stated = {line for lines in sections.values() for line in lines}
    for fact in reversed(facts):
        if not fact.is_sentence:
            names_by_kind.setdefault(fact.kind, []).append(fact.text)
        elif fact.text not in stated:
            stated.add(fact.text)
            section = SECTION_OF[fact.kind]
            sections[section] = merge_lines(sections.get(section, ()), [fact.text])
    earlier, prose = _names_in(sections.get("artifacts", ()))
    wanted = [
        *earlier,
        *(name for kind in _NAMING for name in names_by_kind.get(kind, ())),
        *names,
    ]
    sections["artifacts"] = [*prose, *_in_lines(list(dict.fromkeys(reversed(wanted)))[::-1])]
    sections["goal"] = [goal] if goal else []
    sections["progress"] = list(progress)
    sections["lookup"] = merge_lines(sections.get("lookup", ()), lookup)[-3:]
    return render_sections(sections, max_tokens=max_tokens, counter=counter)


class _Artifacts(NamedTuple):
    names: list[str]
    prose: list[str]


def _names_in(lines: Iterable[str]) -> _Artifacts:
    """Return the names and the prose that earlier summaries list under artifacts."""
    artifacts = _Artifacts([], [])
    for line in lines:
        parts = line.split(", ")
        if any(" " in part for part in parts):
            artifacts.prose.append(line)
        else:
            artifacts.names.extend(parts)
    return artifacts


def _in_lines(names: Sequence[str]) -> list[str]:
    """Names a few to a line, so that a section under pressure loses the least wanted; the last lines are full."""
    starts = range(len(names) - NAMES_A_LINE, -NAMES_A_LINE, -NAMES_A_LINE)
    return [", ".join(names[max(0, at) : at + NAMES_A_LINE]) for at in starts][::-1]


MAXIMUM_NAMES: Final = 400
"""Given to a summary, which keeps those it has room for."""


def names_to_keep(
    references: ReferenceIndex, removed: Sequence[Block], carried: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return the names of *removed* that no remaining block has, least wanted first.

    *carried* are the texts of earlier summaries: a name in them is retained as long as it is in use.
    """
    removed_ids = {block.id for block in removed}
    before = "\n".join(carried)
    used = [name for name in references.used if _would_be_lost(references, name, removed_ids, before)]
    used_names = set(used)
    by_block = [
        [
            name
            for name in references.held(block.id)
            if name not in used_names and _would_be_lost(references, name, removed_ids)
        ]
        for block in removed
    ]
    # The first names of every block before the last of any, so that one long listing does not take all the room.
    unused = [
        names[rank] for rank in reversed(range(IDENTIFIERS_PER_BLOCK)) for names in by_block if rank < len(names)
    ]
    return (*unused, *used)[-MAXIMUM_NAMES:]


def _would_be_lost(references: ReferenceIndex, name: str, removed_ids: set[str], before: str = "") -> bool:
    """Return whether only removed blocks have the name, or no block but an earlier summary."""
    holders = references.holders(name)
    return removed_ids.issuperset(holders) if holders else name in before
