"""Two sessions as a table of differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import pandas as pd

from windowpane.core.vocabulary import ZONES
from windowpane.store.records import AlertRow, SessionRow
from windowpane.text.formats import UNKNOWN, count, dollars, percent, ratio, tokens
from windowpane.text.zones import zone_label
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
    """One line of the table: its value, the text of a value, and which direction is better."""

    name: str
    value: Callable[[ComparedSession], MeasureValue]
    text: Callable[[MeasureValue], str]
    lower: bool | None = None
    """True where less is better, None where neither is."""


def _sum(column: str) -> Callable[[ComparedSession], MeasureValue]:
    def total(side: ComparedSession) -> MeasureValue:
        reported = side.timeline.turns[column].dropna()
        return float(reported.sum()) if len(reported) else None

    return total


def _share(column: str) -> Callable[[ComparedSession], MeasureValue]:
    def share(side: ComparedSession) -> MeasureValue:
        turns = side.timeline.turns
        sent = float(turns["used"].sum())
        return float(turns[column].sum()) / sent if sent else None

    return share


def _zone(side: ComparedSession) -> MeasureValue:
    return None if side.row.worst_zone is None else float(ZONES.index(side.row.worst_zone))


def _zone_text(value: MeasureValue) -> str:
    return UNKNOWN if value is None else zone_label(ZONES[int(value)])


def _plain(value: MeasureValue) -> str:
    return UNKNOWN if value is None else f"{value:,.0f}"


def _facts(outcomes: tuple[str, ...]) -> Callable[[ComparedSession], MeasureValue]:
    def number(side: ComparedSession) -> MeasureValue:
        facts = side.timeline.facts
        return None if facts is None else float(sum(getattr(facts, name) for name in outcomes))

    return number


def _firings(severity: str) -> Callable[[ComparedSession], MeasureValue]:
    return lambda side: float(sum(alert.severity == severity for alert in side.alerts))


def _cache(side: ComparedSession) -> MeasureValue:
    row = side.row
    return row.cache_read_tokens / row.input_tokens if row.input_tokens else None


MEASURES: Final[tuple[Measure, ...]] = (
    Measure("window limit, tokens", lambda side: side.row.limit_tokens, tokens),
    Measure("turns", lambda side: side.row.turns, _plain),
    Measure("peak utilization", lambda side: side.row.peak_utilization, percent, lower=True),
    Measure("worst zone", _zone, _zone_text, lower=True),
    Measure("overflows", lambda side: side.row.overflows, _plain, lower=True),
    Measure("tokens sent", _sum("used"), tokens, lower=True),
    Measure("of these stale", _share("stale_tokens"), percent, lower=True),
    Measure("of these duplicate", _share("duplicate_tokens"), percent, lower=True),
    Measure("tokens added", _sum("added_tokens"), tokens),
    Measure("output tokens", lambda side: side.row.output_tokens, tokens),
    Measure("cost", lambda side: side.row.cost_dollars, dollars, lower=True),
    Measure("input from the cache", _cache, percent, lower=False),
    Measure("blocks evicted", lambda side: side.row.evicted_blocks, _plain),
    Measure("tokens evicted", lambda side: side.row.evicted_tokens, tokens),
    Measure("compressions", lambda side: side.row.compressions, _plain),
    Measure("facts lost or contradicted", _facts(("lost", "contradicted")), _plain, lower=True),
    Measure("fidelity, last", lambda side: side.row.fidelity, ratio, lower=False),
    Measure("regrets", lambda side: side.row.regrets, _plain, lower=True),
    Measure("critical alerts", _firings("critical"), _plain, lower=True),
    Measure("warnings", _firings("warning"), _plain, lower=True),
)


def differences(one: ComparedSession, other: ComparedSession) -> pd.DataFrame:
    """Return one row per measure: both values, their difference, and the better side if one is."""
    records = [(measure.name, *_compared(measure, one, other)) for measure in MEASURES]
    return pd.DataFrame(records, columns=["measure", "A", "B", "B against A", "better"])


def _compared(measure: Measure, one: ComparedSession, other: ComparedSession) -> tuple[str, str, str, str]:
    first, second = measure.value(one), measure.value(other)
    texts = measure.text(first), measure.text(second)
    if first is None or second is None:
        return (*texts, UNKNOWN, "")
    if first == second:
        return (*texts, "same", "")
    if measure.value is _zone:
        change = "worse" if second > first else "milder"
    elif measure.text is percent:
        change = f"{100 * (second - first):+.1f} points".replace("-", "−")
    else:
        symbol = "+" if second > first else "−"
        change = f"{symbol}{measure.text(abs(second - first))}"
        if first:
            change += f" ({symbol}{abs(second - first) / abs(first):.0%})"
    better = "" if measure.lower is None else "A" if (first < second) == measure.lower else "B"
    return (*texts, change, better)


def compare_headline(frame: pd.DataFrame, names: Sequence[str]) -> str:
    """Return a sentence that counts the measures in which each side is better."""
    ahead = [int((frame["better"] == letter).sum()) for letter in ("A", "B")]
    equal = int((frame["B against A"] == "same").sum())
    if ahead == [0, 0]:
        return "The two sessions are alike in every measure that can be compared."
    best = 0 if ahead[0] >= ahead[1] else 1
    if ahead[0] == ahead[1]:
        return f"Each is better in {count(ahead[0], 'measure')}; {equal} are the same."
    letter = "AB"[best]
    return (
        f"{letter} ({names[best]}) is better in {count(ahead[best], 'measure')}, "
        f"{'BA'[best]} in {ahead[1 - best]}; {equal} are the same."
    )
