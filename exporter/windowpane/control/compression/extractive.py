"""The embedded summarizer: keeps facts word for word and writes nothing of its own. Needs no model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from windowpane.control.compression.sections import Section, merge, parse, write
from windowpane.control.facts import Fact, FactKind
from windowpane.protocols import TokenCounter

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
NAMES_A_LINE: Final = 6


def summarize(
    facts: Sequence[Fact],
    *,
    goal: str,
    previous: Iterable[str] = (),
    lookup: Sequence[str] = (),
    progress: Sequence[str] = (),
    max_tokens: int,
    counter: TokenCounter,
) -> str:
    """A summary of *facts* in sections, in at most *max_tokens* beside the goal, which is never shortened.

    *progress* says what of the task is done and planned now; it takes the place of what earlier summaries said.
    *previous* are earlier summaries: their lines are carried on instead of being summarised again.
    *facts* come most critical first; within a section the most critical stay longest.
    """
    sections: dict[Section, list[str]] = {}
    for text in previous:
        for name, lines in parse(text).items():
            sections[name] = merge(sections.get(name, ()), lines)
    names: dict[FactKind, list[str]] = {}
    for fact in reversed(facts):
        if fact.is_sentence:
            section = SECTION_OF[fact.kind]
            sections[section] = merge(sections.get(section, ()), [fact.text])
        else:
            names.setdefault(fact.kind, []).append(fact.text)
    for kind in ("identifier", "number", "path"):
        sections["artifacts"] = merge(sections.get("artifacts", ()), _in_lines(names.get(kind, ())))
    sections["goal"] = [goal] if goal else []
    sections["progress"] = list(progress)
    sections["lookup"] = merge(sections.get("lookup", ()), lookup)[-3:]
    return write(sections, max_tokens=max_tokens, counter=counter)


def _in_lines(names: Sequence[str]) -> list[str]:
    """Names a few to a line, so that a section under pressure loses the least critical few."""
    return [", ".join(names[at : at + NAMES_A_LINE]) for at in range(0, len(names), NAMES_A_LINE)]
