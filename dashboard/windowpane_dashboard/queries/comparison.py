"""Two sessions as a table of differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import pandas as pd

from windowpane.store.records import AlertRow, SessionRow
from windowpane.text.formats import ESTIMATED, UNKNOWN, dollars, percent, points, tokens, tokens_short
from windowpane_dashboard.queries.timeline import Timeline


@dataclass(frozen=True, slots=True)
class ComparedSession:
    """One of the compared sessions."""

    row: SessionRow
    timeline: Timeline
    alerts: tuple[AlertRow, ...]


MeasureValue = float | None


@dataclass(frozen=True, slots=True)
class Measure:
    """One line of the table: its value and the text of a value."""

    name: str
    value: Callable[[ComparedSession], MeasureValue]
    text: Callable[[MeasureValue], str]
    by_output: bool = False
    """The value is an estimate where the output of calls is."""


def _lost(side: ComparedSession) -> MeasureValue:
    facts = side.timeline.facts
    return None if facts is None else float(facts.lost + facts.contradicted)


COST, PEAK, LOST = "cost", "window at its fullest", "facts lost"
MEASURES: Final[tuple[Measure, ...]] = (
    Measure(COST, lambda side: side.row.cost_dollars, dollars, by_output=True),
    Measure(LOST, _lost, tokens),
    Measure("needed again", lambda side: side.row.regrets, tokens),
    Measure("overflows", lambda side: side.row.overflows, tokens),
    Measure(PEAK, lambda side: side.row.peak_utilization, percent),
    Measure("window, tokens", lambda side: side.row.limit_tokens, tokens),
    Measure("compactions", lambda side: side.row.compressions, tokens),
    Measure("turns", lambda side: side.row.turns, tokens),
    Measure("tokens sent", lambda side: side.row.input_tokens or None, tokens),
    Measure("input from the cache", lambda side: side.row.cache_ratio, percent),
    Measure("alerts", lambda side: float(len(side.alerts)), tokens),
)


def same_task(rows: Iterable[SessionRow], one: str | None) -> tuple[str | None, str | None]:
    """Return two sessions with the same title, else of one agent in one repository, the later one second.

    *rows* are the latest first. *one* stays the first of them, alone where no other is like it.
    """
    roots = [row for row in rows if not row.parent_session_id]
    titles = [(row.title and (row.title, row.folder), row.session_id) for row in roots]
    for tasks in (titles, [(row.repository and (row.agent, row.repository), row.session_id) for row in roots]):
        latest: dict[object, str] = {}
        for task, name in tasks:
            later = latest.setdefault(task, name) if task else name
            if later != name and one in (None, name, later):
                return (later, name) if later == one else (name, later)
    return one, None


def differences(one: ComparedSession, other: ComparedSession) -> pd.DataFrame:
    """Return one row per measure: both values and their difference."""
    records = [(measure.name, *_compared(measure, one, other)) for measure in MEASURES]
    return pd.DataFrame(records, columns=["measure", "A", "B", "B against A"])


def _text(measure: Measure, side: ComparedSession, value: MeasureValue) -> str:
    is_estimated = measure.by_output and side.row.is_cost_estimated and value is not None
    return f"{ESTIMATED if is_estimated else ''}{measure.text(value)}"


def _compared(measure: Measure, one: ComparedSession, other: ComparedSession) -> tuple[str, str, str]:
    first, second = measure.value(one), measure.value(other)
    texts = _text(measure, one, first), _text(measure, other, second)
    if first is None or second is None:
        return (*texts, UNKNOWN)
    if texts[0] == texts[1]:
        return (*texts, "same")
    if measure.text is percent:
        change = points(second - first)
    else:
        symbol = "+" if second > first else "−"
        size = abs(second - first)
        change = f"{symbol}{tokens_short(size) if measure.text is tokens else measure.text(size)}"
        if first:
            change += f" ({symbol}{percent(size / abs(first))})"
    return (*texts, change)


HEADLINE_MEASURES: Final = (COST, LOST, "needed again", "overflows", PEAK)
"""Measures that the headline names; they are not added, because nothing they share makes a sum of them."""


def compare_headline(frame: pd.DataFrame) -> str:
    """Return a sentence with the differences of B against A that matter most."""
    rows = frame.set_index("measure")["B against A"]
    differences = [f"{name} {rows[name]}" for name in HEADLINE_MEASURES if rows[name] not in ("same", UNKNOWN)]
    if not differences:
        same = [name for name in HEADLINE_MEASURES if rows[name] == "same"]
        return f"The two sessions are alike in {', '.join(same)}." if same else "Too little is known of them."
    return f"B against A: {', '.join(differences)}."
