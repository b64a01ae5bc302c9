"""Conversation summaries: their sections, the embedded summarizer, and the names a summary should retain.

The embedded summarizer needs no model: it copies facts word for word into the sections and writes nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final, Literal, NamedTuple

from windowpane.core.protocols import TokenCounter
from windowpane.core.window.blocks import Block
from windowpane.core.window.references import IDENTIFIERS_PER_BLOCK, MAXIMUM_CHARACTERS, ReferenceIndex
from windowpane.fidelity.situation import Fact, FactKind
from windowpane.manager.plans.findings import grouped_failures

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
    "errors": 0.15,
    "state": 0.15,
    "artifacts": 0.40,
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
    "rule": "constraints",
    "decision": "decisions",
    "name": "artifacts",
    "setting": "artifacts",
    "changed_file": "artifacts",
    "read_file": "artifacts",
    "failed_command": "errors",
    "open_work": "state",
}


class Names(NamedTuple):
    """Names of what the conversation refers to, least wanted first."""

    used: Sequence[str]
    """Names that the agent used."""
    seen: Sequence[str]
    """Names that only tools, files or the user mentioned."""
    spoken: Sequence[str] = ()
    """Names in messages and short calls, last mentioned last."""
    measures: Sequence[str] = ()
    """Numbers in messages with the words before them, such as `the port is 8443`."""


NO_NAMES: Final = Names((), ())
RECENT_NAMES: Final = 120
"""Names used last that are wanted more than those of earlier summaries."""
MAXIMUM_MEASURES: Final = 24
_MEASURE: Final = re.compile(
    r"(?:\b[A-Za-z_][\w-]{0,30} ){1,3}(?:\b(?:is|was|are|to|of|at|=|:) )?"
    r"(?:\d[\d_,.]*\d\d|\d+(?:[.,]\d+)? ?(?:%|ms|s|min|h|KB|MB|GB|px|x)(?!\w))"
)
_DIGITS: Final = re.compile(r"\d[\d_,.]*")
_NAMING: Final[tuple[FactKind, ...]] = ("name", "setting", "read_file", "changed_file")
"""Kinds of facts that are names, the least wanted first."""
NAMES_A_LINE: Final = 6


def summarize(
    facts: Sequence[Fact],
    *,
    goal: str,
    previous: Iterable[str] = (),
    lookup: Sequence[str] = (),
    progress: Sequence[str] = (),
    names: Names = NO_NAMES,
    failures: Sequence[str] = (),
    visible: Set[str] = frozenset(),
    max_tokens: int,
    counter: TokenCounter,
) -> str:
    """Return a summary of *facts* in sections, in at most *max_tokens* beside the goal, which is never shortened.

    *progress* states what of the task is done and planned now; it replaces that part of earlier summaries.
    *previous* are earlier summaries: their lines are carried on instead of being summarized again.
    *facts* come most critical first; within a section the most critical stay longest. Of *names*, those in use
    stay longer than the names among the facts, the others less long. *failures* are what tools reported, oldest
    first. A name that is among the *visible* ones, or part of what the summary has already, is not repeated.
    """
    sections: dict[Section, list[str]] = {}
    for text in previous:
        for name, lines in parse_sections(text).items():
            sections[name] = merge_lines(sections.get(name, ()), lines)
    names_by_kind: dict[FactKind, list[str]] = {}
    stated = {line for lines in sections.values() for line in lines}
    for fact in reversed(facts):
        if fact.kind in _NAMING:
            names_by_kind.setdefault(fact.kind, []).append(fact.text)
        elif fact.text not in stated:
            stated.add(fact.text)
            section = SECTION_OF[fact.kind]
            sections[section] = merge_lines(sections.get(section, ()), [fact.text])
    sections["errors"] = grouped_failures((*sections.get("errors", ()), *failures))
    earlier = _artifacts_in(sections.get("artifacts", ()))
    own = (name for kind in _NAMING for name in names_by_kind.get(kind, ()))
    used = names.used
    ranked = (*names.seen, *used[:-RECENT_NAMES], *own, *earlier.names, *used[-RECENT_NAMES:], *names.spoken)
    measures = newest_measures((*earlier.measures, *names.measures))
    sections["artifacts"] = [*earlier.prose, *measures]
    lines = [goal, *progress, *(line for name in SHARES for line in sections.get(name, ()))]
    wanted = _not_repeated([name for name in ranked if name not in visible], "\n".join(lines))
    sections["artifacts"] = [*earlier.prose, *_in_lines(wanted, ", "), *_in_lines(measures, "; ")]
    sections["goal"] = [goal] if goal else []
    sections["progress"] = list(progress)
    sections["lookup"] = merge_lines(sections.get("lookup", ()), lookup)[-3:]
    return render_sections(sections, max_tokens=max_tokens, counter=counter)


class _Artifacts(NamedTuple):
    names: list[str]
    measures: list[str]
    prose: list[str]


def _artifacts_in(lines: Iterable[str]) -> _Artifacts:
    """Return the names, the numbers and the prose that earlier summaries list under artifacts."""
    artifacts = _Artifacts([], [], [])
    for line in lines:
        parts, measures = line.split(", "), line.split("; ")
        if all(_MEASURE.fullmatch(measure) for measure in measures):
            artifacts.measures.extend(measures)
        elif any(" " in part for part in parts):
            artifacts.prose.append(line)
        else:
            artifacts.names.extend(parts)
    return artifacts


def _not_repeated(names: Sequence[str], text: str) -> list[str]:
    """Return the names, least wanted first, that are neither in *text* nor part of one that is wanted more."""
    retained: list[str] = []
    for name in reversed(names):
        if name not in text:
            text = f"{text}\n{name}"
            retained.append(name)
    return retained[::-1]


def newest_measures(measures: Iterable[str]) -> list[str]:
    """Return the last measure of each wording, oldest first."""
    by_wording: dict[str, str] = {}
    for measure in measures:
        wording = _DIGITS.sub("#", measure)
        by_wording.pop(wording, None)
        by_wording[wording] = measure
    return list(by_wording.values())[-MAXIMUM_MEASURES:]


def measures_of(text: str) -> list[str]:
    """Return the numbers of three digits or more, or with a unit, and the words before them."""
    return [" ".join(match.split()) for match in _MEASURE.findall(text[:MAXIMUM_CHARACTERS])]


def _in_lines(names: Sequence[str], separator: str) -> list[str]:
    """Names a few to a line, so that a section under pressure loses the least wanted; the last lines are full."""
    starts = range(len(names) - NAMES_A_LINE, -NAMES_A_LINE, -NAMES_A_LINE)
    return [separator.join(names[max(0, at) : at + NAMES_A_LINE]) for at in starts][::-1]


MAXIMUM_NAMES: Final = 400
"""Given to a summary, which keeps those it has room for."""


def names_to_keep(references: ReferenceIndex, removed: Sequence[Block], carried: Iterable[str] = ()) -> Names:
    """Return the names of *removed* that no remaining block has.

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
    used = used[-MAXIMUM_NAMES:]
    return Names(used, unused[max(0, len(unused) + len(used) - MAXIMUM_NAMES) :])


def _would_be_lost(references: ReferenceIndex, name: str, removed_ids: set[str], before: str = "") -> bool:
    """Return whether only removed blocks have the name, or no block but an earlier summary."""
    holders = references.holders(name)
    return removed_ids.issuperset(holders) if holders else name in before
