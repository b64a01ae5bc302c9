"""Trends by day or week, one line per agent, model or release, and two of these compared."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import permutations
from statistics import NormalDist
from typing import Final, Literal

import pandas as pd

from windowpane.report.context_health import MINIMUM_SESSIONS, quartiles
from windowpane.report.rank_test import rank_score
from windowpane.store.records import RepeatedDay, SessionRow, TrendRow
from windowpane.text.formats import UNKNOWN, decimal, dollars, percent
from windowpane_dashboard.queries.filters import TrendAddress, TrendLines

MAXIMUM_LINES: Final = 6
"""Lines of a chart; the others are summed."""
OTHERS: Final = "others"
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
SUMMED: Final = (
    "sessions", "calls", "input_tokens", "output_tokens", "cache_read_tokens", "cost_dollars", "compactions",
    "fidelity_sum", "fidelities", "cache_break_dollars", "peak_sum", "peaks", "estimated_outputs",
)  # fmt: skip
SUMMED_BY_DAY: Final = ("sessions", "peaks", "peak_sum")
"""Sums that count a session on each of its days, models and releases, until the repeated ones are subtracted."""
PAIRED_LINES: Final = 30
"""Lines that a pair is chosen from, those of enough sessions first."""
KEYS: Final = ["period", "line"]
COMPARED_SESSIONS: Final = 1_000
"""Sessions of all lines that are compared, the latest."""
Lines = dict[str, list[SessionRow]]
"""The sessions of each line."""


@dataclass(frozen=True, slots=True)
class TrendMeasure:
    """One value of sessions, drawn over time or compared."""

    name: str
    title: str
    unit: Literal["$", "%", ""]
    of_session: str
    """The title of its value of one session, which is None if unknown."""
    value_of: Callable[[SessionRow], float | None]
    more_is_better: bool = False

    def text(self, value: float) -> str:
        """Return a value with its unit."""
        if self.unit == "$":
            return dollars(value)
        return percent(value) if self.unit == "%" else decimal(value)


CHARTS: Final = (
    TrendMeasure("cost", "Cost", "$", "cost", lambda row: row.cost_dollars),
    TrendMeasure(
        "peak", "Window at its fullest, mean of the sessions", "%", "window at its fullest",
        lambda row: row.peak_utilization,
    ),
    TrendMeasure(
        "fidelity", "Facts kept by compactions", "%", "facts kept",
        lambda row: row.fidelity, more_is_better=True,
    ),
    TrendMeasure(
        "cache", "Input from the prompt cache", "%", "input from the prompt cache",
        lambda row: row.cache_ratio, more_is_better=True,
    ),
)  # fmt: skip
MEASURES: Final = (*CHARTS, TrendMeasure("compactions", "", "", "compactions", lambda row: row.compressions))
"""All that is compared."""
CLEAR_SCORE: Final = NormalDist().inv_cdf(1 - 0.05 / 2 / len(MEASURES))
"""Of a rank test, from which on chance is unlikely: 5% for all measures, by Bonferroni's correction."""


@dataclass(frozen=True, slots=True)
class Trends:
    """The periods of all lines."""

    frame: pd.DataFrame
    """`period`, `line`, the sums, and the measures; a session counts once in each row."""
    releases: Mapping[datetime, Sequence[str]]
    """The agents' releases by the period that first has them, without the first of each agent."""

    @property
    def totals(self) -> pd.Series:
        """The sums over everything."""
        return self.frame[[name for name in SUMMED if name not in SUMMED_BY_DAY]].sum()


def trends(rows: Sequence[TrendRow], position: TrendAddress, repeated: Sequence[RepeatedDay] = ()) -> Trends:
    """Return the trends of the rows; a session counts once per period and line."""
    counted = _frame(rows, position, SUMMED)
    again = _frame(repeated, position, ("session", "peak")).astype({"peak": "float64"})
    largest = counted.groupby("line")["calls"].sum().nlargest(MAXIMUM_LINES).index
    for frame in (counted, again):
        frame["line"] = frame["line"].where(frame["line"].isin(largest), OTHERS)
    return Trends(_measured(counted, again), _new_releases(rows, position))


def _new_releases(rows: Iterable[TrendRow], position: TrendAddress) -> dict[datetime, list[str]]:
    first: dict[tuple[str, str], datetime] = {}
    for row in sorted(rows, key=lambda row: row.day):
        if row.release:
            first.setdefault((row.agent, row.release), period_of(row, position))
    started: dict[str, datetime] = {}
    releases = defaultdict[datetime, list[str]](list)
    for (agent, release), period in first.items():
        if period > started.setdefault(agent, period):
            releases[period].append(f"{agent} {release}".strip())
    return dict(releases)


def _frame(
    rows: Sequence[TrendRow] | Sequence[RepeatedDay], position: TrendAddress, columns: Sequence[str]
) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "period": [period_of(row, position) for row in rows],
            "line": [line_of(row, position.by) for row in rows],
            **{name: [getattr(row, name) for row in rows] for name in columns},
        }
    )


def period_of(row: TrendRow | RepeatedDay, position: TrendAddress) -> datetime:
    """Return the first day of the period that a row belongs to."""
    at = EPOCH + timedelta(days=row.day)
    return at - timedelta(days=at.weekday()) if position.is_weekly else at


def line_of(row: TrendRow | RepeatedDay | SessionRow, by: TrendLines | None) -> str:
    """Return the name of the line that a row belongs to."""
    if by == "model":
        return row.model or "unknown model"
    if by == "release":
        return f"{row.agent} {row.release}".strip() or "unknown release"
    return row.agent or "unnamed agent"


def _measured(counted: pd.DataFrame, repeated: pd.DataFrame) -> pd.DataFrame:
    """Return the sums with the measures that follow from them; unknown where nothing was counted."""
    sums = counted.groupby(KEYS)[list(SUMMED)].sum()
    again = _counted_again(repeated).reindex(sums.index).fillna(0)
    frame = sums.assign(
        **{name: (sums[name] - again[name]).astype(sums[name].dtype) for name in SUMMED_BY_DAY}
    ).reset_index()

    def ratio(above: str, below: str) -> pd.Series:
        return frame[above] / frame[below].where(frame[below] > 0)

    frame["cost"] = frame["cost_dollars"].where(frame["cost_dollars"] > 0)
    frame["peak"] = ratio("peak_sum", "peaks")
    frame["fidelity"] = ratio("fidelity_sum", "fidelities")
    frame["cache"] = ratio("cache_read_tokens", "input_tokens")
    return frame


def _counted_again(repeated: pd.DataFrame) -> pd.DataFrame:
    """Return what the sums count beyond one row per session: of its rows, that with the highest peak counts."""
    each = repeated.groupby([*KEYS, "session"]).agg(
        rows=("peak", "size"), peaks=("peak", "count"), peak_sum=("peak", "sum"), peak=("peak", "max")
    )
    again = each.assign(
        sessions=each["rows"] - 1,
        peaks=(each["peaks"] - 1).clip(lower=0),
        peak_sum=each["peak_sum"] - each["peak"].fillna(0.0),
    )
    return again.groupby(KEYS)[list(SUMMED_BY_DAY)].sum()


def comparable_lines(rows: Sequence[SessionRow], position: TrendAddress) -> list[Lines]:
    """Return the lines of each kind with more than one, that of the requested or the best pair first."""
    kinds = [compared_lines(rows, by) for by in ("release", "model", "agent")]
    comparable = [lines for lines in kinds if len(lines) > 1]
    return sorted(
        comparable,
        key=lambda lines: (position.one not in lines, _fitness(lines, chosen_lines(lines, position))),
    )


def _fitness(lines: Lines, pair: tuple[str, str]) -> tuple[int, bool]:
    """Return the order of a pair: first those with enough or more sessions, of these those of one agent."""
    one, other = (lines[name] for name in pair)
    return -min(len(one), len(other), MINIMUM_SESSIONS), one[0].agent != other[0].agent


def compared_lines(rows: Iterable[SessionRow], by: TrendLines) -> Lines:
    """Return the sessions of each line, the newest line first: it is as new as its first session."""
    lines: dict[str, list[SessionRow]] = {}
    for row in sorted(rows, key=lambda row: row.started_at or 0.0):
        lines.setdefault(line_of(row, by), []).append(row)
    return dict(reversed(lines.items()))


def chosen_lines(lines: Lines, position: TrendAddress) -> tuple[str, str]:
    """Return the two lines of the address, else the newest with enough sessions, if there are, of one agent."""
    largest = sorted(lines, key=lambda name: -min(len(lines[name]), MINIMUM_SESSIONS))[:PAIRED_LINES]
    names = dict.fromkeys((*largest, *(name for name in (position.one, position.other) if name in lines)))
    return min(
        permutations(names, 2),
        key=lambda pair: (
            position.one in lines and pair[0] != position.one,
            position.other in lines and pair[1] != position.other,
            _fitness(lines, pair),
            _is_older(*pair),
        ),
    )


def _is_older(one: str, other: str) -> bool:
    """Return whether *one* is an older version of *other*, by the numbers in their names."""
    stems = {re.split(r"\d", name, maxsplit=1)[0] for name in (one, other)}
    first, second = ([int(part) for part in re.findall(r"\d{1,9}", name)] for name in (one, other))
    return len(stems) == 1 and first < second


def compared(
    measure: TrendMeasure, one: Sequence[SessionRow], other: Sequence[SessionRow]
) -> tuple[str, str, str]:
    """Return whether the sessions of *one* are worse than those of *other*, and the spread of both."""
    first, second = (
        [value for row in side if (value := measure.value_of(row)) is not None] for side in (one, other)
    )
    return verdict(measure, first, second), _spread(measure, first, one), _spread(measure, second, other)


def verdict(measure: TrendMeasure, one: Sequence[float], other: Sequence[float]) -> str:
    """Return `worse` or `better` where chance is unlikely to make *one* differ from *other*."""
    if min(len(one), len(other)) < MINIMUM_SESSIONS:
        return "too few known"
    score = rank_score(one, other)
    if abs(score) < CLEAR_SCORE:
        return "no clear difference"
    return "worse" if (score > 0) != measure.more_is_better else "better"


def _spread(measure: TrendMeasure, values: Sequence[float], rows: Sequence[SessionRow]) -> str:
    """Return the median with the quartiles; with the number of values where not all sessions have one."""
    spread = quartiles(values)
    number = "" if len(values) == len(rows) else f" (n = {len(values):,})"
    if spread is None:
        return UNKNOWN
    low, middle, high = map(measure.text, spread)
    return f"{middle} ({low} to {high}){number}"


_TABLE: Final = {
    "period": "from", "line": "line", "sessions": "sessions", "calls": "calls", "cost": "cost",
    "input_tokens": "input tokens", "output_tokens": "output tokens", "cache": "from the cache",
    "peak": "window at its fullest", "compactions": "compactions", "fidelity": "kept by compactions",
}  # fmt: skip


def trends_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the periods and lines as a table to read, the first day of each period in UTC."""
    table = frame[list(_TABLE)].rename(columns=_TABLE)
    return table.assign(**{"from": table["from"].map("{:%Y-%m-%d}".format)})
