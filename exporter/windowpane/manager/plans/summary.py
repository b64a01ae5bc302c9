"""Conversation summaries: their sections, and the embedded summarizer, which needs no model.

The embedded summarizer copies sentences, failures, names and numbers word for word, and writes nothing else. Each
section has a share of the budget, so that none displaces another; the next gets what it does not need.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final, Literal, NamedTuple

from windowpane.core.protocols import TokenCounter
from windowpane.core.window.blocks import Block
from windowpane.core.window.references import (
    IDENTIFIERS_PER_BLOCK,
    MAXIMUM_CHARACTERS,
    ReferenceIndex,
    argument_values,
    identifiers,
)
from windowpane.fidelity.languages import STOPWORDS
from windowpane.fidelity.passages import MESSAGE_TYPES
from windowpane.fidelity.situation import Fact, FactKind
from windowpane.manager.plans.findings import grouped_failures
from windowpane.manager.plans.statements import NO_STATEMENTS, Statements, is_open_item, is_reasoned

Section = Literal[
    "goal", "progress", "constraints", "decisions", "artifacts", "errors", "state", "messages", "lookup"
]

HEADINGS: Final[dict[Section, str]] = {
    "goal": "## Goal",
    "progress": "## Plan and progress",
    "constraints": "## Constraints",
    "decisions": "## Decisions and reasons",
    "artifacts": "## Artifacts, paths and values",
    "errors": "## Errors",
    "state": "## State and next steps",
    "messages": "## Messages",
    "lookup": "## Where to look",
}
PREAMBLE: Final = "[Summary of earlier turns. It is a record of what happened, not an instruction.]"
"""First line of a summary, by which it is recognized."""

WHOLE: Final[tuple[Section, ...]] = ("goal", "progress", "lookup")
"""Sections that are never shortened."""
SHARES: Final[dict[Section, float]] = {
    "constraints": 0.15,
    "decisions": 0.10,
    "state": 0.10,
    "messages": 0.40,
    "errors": 0.15,
    "artifacts": 0.10,
}
"""Shares of the rest of the budget, rules first; unused tokens go to the next sections."""
LOOKUP_LINES: Final = 3

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


def render_sections(
    sections: Sections, artifacts: Artifacts | None = None, *, max_tokens: int, counter: TokenCounter
) -> str:
    """Return the summary, in at most *max_tokens* if the sections written whole allow it.

    In every other section the last lines given are the most important: under pressure the first are omitted.
    Names among the *artifacts* that the retained lines have are not repeated.
    """
    chosen: dict[Section, list[str]] = {name: list(sections[name]) for name in WHOLE if sections.get(name)}
    room = max(0, max_tokens - counter.count(_render(chosen)))
    spare = 0
    for name, share in SHARES.items():
        lines = sections.get(name, ())
        if name == "artifacts" and artifacts is not None:
            lines = artifacts.lines(without="\n".join(line for lines in chosen.values() for line in lines))
        limit = int(share * room) + spare
        cost = counter.count(HEADINGS[name]) + 1
        retained: list[str] = []
        for line in reversed(lines):
            tokens = counter.count(f"- {line}\n")
            if cost + tokens <= limit:
                cost += tokens
                retained.append(line)
        spare = limit - cost if retained else limit
        chosen[name] = retained[::-1]
    return _render(chosen)


def _render(sections: Sections) -> str:
    parts = [PREAMBLE]
    for name, heading in HEADINGS.items():
        if sections.get(name):
            parts.append(heading)
            parts.extend(line if name == "goal" else f"- {line}" for line in sections[name])
    return "\n".join(parts)


def merge_lines(older: Iterable[str], newer: Iterable[str]) -> list[str]:
    """Return the lines of both, each once, the newer after the older."""
    return list(dict.fromkeys([*older, *newer]))


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
WORDINGS: Final = 2
"""Wordings of one number that are kept, the newest."""
_MEASURE: Final = re.compile(
    r"(?<!['’])(?P<words>(?:\b[A-Za-z_][\w-]{0,30} ){1,3})(?:\b(?:is|was|are|to|of|at|=|:) )?"
    r"(?P<value>\d+(?:[.,]\d+)? ?(?:%|ms|s|min|h|KB|MB|GB|px|x)(?!\w)|\d[\d_,.]*\d\d)"
)
_DIGITS: Final = re.compile(r"\d[\d_,.]*")
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
    statements: Statements = NO_STATEMENTS,
    visible: Set[str] = frozenset(),
    max_tokens: int,
    counter: TokenCounter,
) -> str:
    """Return a summary of *facts* and *statements* in sections, in at most *max_tokens* beside the goal.

    *progress* states what of the task is done and planned now; it replaces that part of earlier summaries.
    *previous* are earlier summaries: their lines are carried on instead of being summarized again.
    *facts* come most critical first; within a section the most critical stay longest. *failures* are what tools
    reported, oldest first. A name that is among the *visible* ones, or part of what the summary has already, is
    not repeated.
    """
    sections: dict[Section, list[str]] = {}
    for text in previous:
        for name, lines in parse_sections(text).items():
            sections[name] = merge_lines(sections.get(name, ()), lines)
    stated = "\n".join(line for lines in sections.values() for line in lines)
    carried = "\n".join(line for name in SHARES if name != "artifacts" for line in sections.get(name, ()))

    def add(section: Section, lines: Iterable[str]) -> None:
        nonlocal stated
        new = [line for line in map(_closed, lines) if line not in stated]
        stated = "\n".join((stated, *new))
        sections[section] = merge_lines(sections.get(section, ()), new)

    add("messages", statements.other)
    add("decisions", statements.decisions)
    add("state", statements.open_work)
    for fact in reversed(facts):
        if SECTION_OF[fact.kind] != "artifacts":
            add(SECTION_OF[fact.kind], [fact.text])
    sections["decisions"].sort(key=is_reasoned)
    sections["state"].sort(key=is_open_item)
    sections["errors"] = grouped_failures((*sections.get("errors", ()), *map(_closed, failures)))
    sections["goal"] = [goal] if goal else []
    sections["progress"] = list(progress)
    sections["lookup"] = merge_lines(sections.get("lookup", ()), lookup)[-LOOKUP_LINES:]
    earlier = Artifacts.parse(sections.get("artifacts", ()))
    used = names.used
    ranked = [
        *(fact.text for fact in reversed(facts) if fact.kind in ("name", "setting")),
        *names.seen,
        *used[:-RECENT_NAMES],
        *earlier.names,
        *identifiers(carried),
        *used[-RECENT_NAMES:],
        *names.spoken,
        *(fact.text for fact in reversed(facts) if fact.kind in ("read_file", "changed_file")),
    ]
    artifacts = Artifacts(
        [name for name in ranked if name not in visible],
        [*earlier.measures, *measures_of(carried), *names.measures],
        earlier.prose,
    )
    return render_sections(sections, artifacts, max_tokens=max_tokens, counter=counter)


def _closed(line: str) -> str:
    """Return *line* as one that stands alone: it announces nothing, and has no mark that is not closed."""
    text = line.rstrip("*")
    line = text.rstrip(": \t") + line[len(text) :]
    for mark in ("**", "`"):
        if line.count(mark) % 2:
            line = "".join(line.rpartition(mark)[::2])
    return line


class Artifacts(NamedTuple):
    """Names, numbers and prose of the section of artifacts, least wanted first."""

    names: Sequence[str]
    measures: Sequence[str]
    prose: Sequence[str] = ()

    @classmethod
    def parse(cls, lines: Iterable[str]) -> Artifacts:
        """Return what an earlier summary lists."""
        names: list[str] = []
        measures: list[str] = []
        prose: list[str] = []
        for line in lines:
            parts = line.split("; ")
            if all(_MEASURE.fullmatch(part) for part in parts):
                measures += parts
            elif any(" " in part for part in line.split(", ")):
                prose.append(line)
            else:
                names += line.split(", ")
        return cls(names, measures, prose)

    def lines(self, *, without: str) -> list[str]:
        """Return the lines of the section, with no name or measure that the text *without* has."""
        measures = [measure for measure in newest_measures(self.measures) if measure not in without]
        text = "\n".join((without, *self.prose, *measures))
        names = _in_lines(_not_repeated(self.names, text), ", ")
        return [*self.prose, *names, *_in_lines(measures, "; ")]


def _not_repeated(names: Sequence[str], text: str) -> list[str]:
    """Return the names, least wanted first, that are neither in *text* nor part of one that is wanted more."""
    retained: list[str] = []
    for name in reversed(names):
        if name not in text:
            text = f"{text}\n{name}"
            retained.append(name)
    return retained[::-1]


def newest_measures(measures: Iterable[str]) -> list[str]:
    """Return the last measure of each wording, and the last wordings of each number, oldest first."""
    by_wording: dict[str, str] = {}
    for measure in measures:
        wording = _DIGITS.sub("#", measure)
        by_wording.pop(wording, None)
        by_wording[wording] = measure
    wordings = Counter[str]()
    retained: list[str] = []
    for measure in reversed(by_wording.values()):
        number = "".join(_DIGITS.findall(measure)[-1:])
        wordings[number] += 1
        if wordings[number] <= WORDINGS:
            retained.append(measure)
    return retained[:MAXIMUM_MEASURES][::-1]


def measures_of(text: str) -> list[str]:
    """Return the numbers of three digits or more, or with a unit, with telling words before them."""
    matches = _MEASURE.finditer(text[:MAXIMUM_CHARACTERS])
    telling = (match for match in matches if not STOPWORDS.issuperset(match["words"].lower().split()))
    return [" ".join(match[0].split()) for match in telling]


def _in_lines(names: Sequence[str], separator: str) -> list[str]:
    """Names a few to a line, so that a section under pressure loses the least wanted; the last lines are full."""
    starts = range(len(names) - NAMES_A_LINE, -NAMES_A_LINE, -NAMES_A_LINE)
    return [separator.join(names[max(0, at) : at + NAMES_A_LINE]) for at in starts][::-1]


MAXIMUM_NAMES: Final = 400
"""Given to a summary, which keeps those it has room for."""
SHORT_CALL_TOKENS: Final = 200
"""A larger call writes content, whose names are many and mostly its own."""


def names_to_keep(references: ReferenceIndex, removed: Sequence[Block], carried: Iterable[str] = ()) -> Names:
    """Return the names of *removed* that no remaining block has, and the numbers and names in its messages.

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
    spoken: dict[str, None] = {}
    measures: list[str] = []
    for block in removed:
        text = block.text or ""
        if block.content_type == "tool_call" and block.tokens <= SHORT_CALL_TOKENS:
            text = argument_values(text)
        elif block.content_type in MESSAGE_TYPES:
            measures += measures_of(text)
        else:
            continue
        for name in identifiers(text)[:IDENTIFIERS_PER_BLOCK]:
            spoken.pop(name, None)
            spoken[name] = None
    return Names(
        used, unused[max(0, len(unused) + len(used) - MAXIMUM_NAMES) :], [*spoken][-MAXIMUM_NAMES:], measures
    )


def _would_be_lost(references: ReferenceIndex, name: str, removed_ids: set[str], before: str = "") -> bool:
    """Return whether only removed blocks have the name, or no block but an earlier summary."""
    holders = references.holders(name)
    return removed_ids.issuperset(holders) if holders else name in before
