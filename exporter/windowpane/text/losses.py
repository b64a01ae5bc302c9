"""Texts about the losses of a compaction and the faults of its replacement; only what was measured is claimed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from windowpane.core.events import FidelityEvaluated
from windowpane.text.formats import count

NO_FAULT: Final[dict[str, str]] = {
    "probe": "no fault found; not checked by a model",
    "judge": "wrong statements were not checked by a model",
}

_LABELS: Final[dict[str, str]] = {
    "reversed": "reversed",
    "rule": "rule",
    "wrong_number": "wrong number",
    "wrong_name": "wrong name",
    "failed_command": "failed command",
    "open_work": "open work",
    "changed_file": "changed file",
    "read_file": "file read",
    "decision": "decision",
    "goal": "request",
}


def kind_label(kind: str) -> str:
    """Return the name of a kind of fact."""
    return _LABELS.get(kind, kind.replace("_", " "))


def facts_text(data: FidelityEvaluated) -> str:
    """Return how many facts were kept: `12 of 20 facts kept, 5 recoverable, 3 lost`."""
    parts = [f"{data.facts_kept} of {count(data.facts_total, 'fact')} kept"]
    fates = (
        (data.facts_recoverable, "recoverable"),
        (data.facts_lost, "lost"),
        (data.facts_contradicted, "contradicted"),
    )
    return ", ".join([*parts, *(f"{number} {fate}" for number, fate in fates if number)])


def worst_texts(data: FidelityEvaluated, content: Callable[[str], str | None]) -> Iterator[str]:
    """Yield the facts that were contradicted and lost, the worst first; *content* returns text by digest."""
    for fact in data.facts:
        text = fact.text or (content(fact.digest) if fact.digest else None)
        if text and fact.outcome in ("contradicted", "lost"):
            yield fact_text(fact.kind, fact.outcome, text)


def fact_text(kind: str, outcome: str, text: str) -> str:
    """Return one fact with its fate; of a contradiction both sides."""
    stated, _, claimed = text.partition("\n")
    claimed, _, values = claimed.partition("\n")
    if outcome == "contradicted" and claimed:
        return f"{kind_label(kind)}{values and f' {values}'}: “{claimed}” where it was “{stated}”"
    return f"{outcome} {kind_label(kind)}: {stated}"


def faults_of(data: FidelityEvaluated) -> Sequence[str]:
    """Return the faults that were found in a replacement, without its words."""
    contradicted = (
        [f"{count(data.facts_contradicted, 'statement')} contradicted"] if data.facts_contradicted else []
    )
    return [*contradicted, *data.form]


def soundness_text(data: FidelityEvaluated, *, is_judged: bool = False) -> str:
    """Return the faults of a replacement; others are possible. *is_judged* if a judge was asked as well."""
    faults = "; ".join(faults_of(data))
    if faults:
        return faults
    if not data.facts_total:
        return "its faults are unknown"
    return "no fault found" if is_judged else NO_FAULT.get(data.method, "no fault found")
