"""The embedded summarizer: keeps facts word for word and writes nothing of its own. Needs no model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from windowpane.core.protocols import TokenCounter
from windowpane.fidelity.facts import Fact, FactKind
from windowpane.manager.plans.summary_sections import Section, merge, parse, write

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
    """A summary of *facts* in sections, in at most *max_tokens* beside the goal, which is never shortened.

    *progress* says what of the task is done and planned now; it takes the place of what earlier summaries said.
    *previous* are earlier summaries: their lines are carried on instead of being summarised again.
    *facts* come most critical first; within a section the most critical stay longest. *names* are those of what
    the conversation refers to things by, least wanted first; they stay longer than the names among the facts.
    """
    sections: dict[Section, list[str]] = {}
    for text in previous:
        for name, lines in parse(text).items():
            sections[name] = merge(sections.get(name, ()), lines)
    found: dict[FactKind, list[str]] = {}
    said = {line for lines in sections.values() for line in lines}
    for fact in reversed(facts):
        if not fact.is_sentence:
            found.setdefault(fact.kind, []).append(fact.text)
        elif fact.text not in said:
            said.add(fact.text)
            section = SECTION_OF[fact.kind]
            sections[section] = merge(sections.get(section, ()), [fact.text])
    earlier, prose = _names_in(sections.get("artifacts", ()))
    wanted = [
        *earlier,
        *(name for kind in _NAMING for name in found.get(kind, ())),
        *names,
    ]
    sections["artifacts"] = [*prose, *_in_lines(list(dict.fromkeys(reversed(wanted)))[::-1])]
    sections["goal"] = [goal] if goal else []
    sections["progress"] = list(progress)
    sections["lookup"] = merge(sections.get("lookup", ()), lookup)[-3:]
    return write(sections, max_tokens=max_tokens, counter=counter)


class _Artifacts(NamedTuple):
    names: list[str]
    prose: list[str]


def _names_in(lines: Iterable[str]) -> _Artifacts:
    """What earlier summaries list by name, and what they say in words."""
    found = _Artifacts([], [])
    for line in lines:
        parts = line.split(", ")
        if any(" " in part for part in parts):
            found.prose.append(line)
        else:
            found.names.extend(parts)
    return found


def _in_lines(names: Sequence[str]) -> list[str]:
    """Names a few to a line, so that a section under pressure loses the least wanted; the last lines are full."""
    starts = range(len(names) - NAMES_A_LINE, -NAMES_A_LINE, -NAMES_A_LINE)
    return [", ".join(names[max(0, at) : at + NAMES_A_LINE]) for at in starts][::-1]
