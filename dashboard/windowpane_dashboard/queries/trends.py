"""Trends by day or week: one line per agent, model or release, and the releases that changed a value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pandas as pd

from windowpane.store.records import TrendRow
from windowpane_dashboard.queries.filters import TrendAddress

MAXIMUM_LINES: Final = 6
"""Lines of a chart; the others are summed."""
OTHERS: Final = "others"
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
SUMMED: Final = (
    "sessions", "calls", "input_tokens", "output_tokens", "cache_read_tokens", "cost_dollars", "compactions",
    "fidelity_sum", "fidelities", "regrets", "cache_breaks", "cache_break_dollars", "peak_sum", "peaks",
    "red_sessions",
)  # fmt: skip
CHANGE: Final = 0.25
"""Relative change of a value from which on the release that came with it is marked."""
MINIMUM_SESSIONS: Final = 3
"""Sessions on each side of a new release without which nothing is compared."""
COMPARED_PERIODS: Final = 5
"""Periods on each side of a new release that are compared."""


@dataclass(frozen=True, slots=True)
class TrendMeasure:
    """One chart of the trends."""

    name: str
    title: str
    unit: str
    """`$`, `%`, or empty."""


MEASURES: Final = (
    TrendMeasure("cost", "cost", "$"),
    TrendMeasure("peak", "peak utilization, mean of the sessions", "%"),
    TrendMeasure("compactions", "compactions per session", ""),
    TrendMeasure("fidelity", "fidelity, mean of the compressions", ""),
    TrendMeasure("regrets", "regrets per session", ""),
    TrendMeasure("cache", "share of the input from the cache", "%"),
)


@dataclass(frozen=True, slots=True)
class ReleaseMark:
    """The first period of a release in which a value changed."""

    measure: str
    period: datetime
    agent: str
    release: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Trends:
    """The periods of all lines, and the marks of releases."""

    frame: pd.DataFrame
    """One row per period and line: `period`, `line`, the sums, and the measures."""
    marks: tuple[ReleaseMark, ...]

    @property
    def totals(self) -> pd.Series:
        """The sums over everything."""
        return self.frame[list(SUMMED)].sum()


def trends(rows: Sequence[TrendRow], position: TrendAddress) -> Trends:
    """Return the trends of the rows that match the address."""
    chosen = [
        row for row in rows if (position.agent in (None, row.agent)) and (position.model in (None, row.model))
    ]
    raw = pd.DataFrame(
        {
            "period": [_period(row.day, by_week=position.period == "week") for row in chosen],
            "line": [_line(row, position) for row in chosen],
            "agent": [row.agent for row in chosen],
            "release": [row.release for row in chosen],
            **{name: [getattr(row, name) for row in chosen] for name in SUMMED},
        }
    )
    largest = raw.groupby("line")["calls"].sum().nlargest(MAXIMUM_LINES).index
    raw["line"] = raw["line"].where(raw["line"].isin(largest), OTHERS)
    return Trends(_measured(raw, ["period", "line"]), tuple(_marks(raw)))


def _period(day: int, *, by_week: bool) -> datetime:
    at = EPOCH + timedelta(days=day)
    return at - timedelta(days=at.weekday()) if by_week else at


def _line(row: TrendRow, position: TrendAddress) -> str:
    if position.by == "model":
        return row.model or "unknown model"
    if position.by == "release":
        return f"{row.agent} {row.release}".strip() or "unknown release"
    return row.agent or "unnamed agent"


def _measured(raw: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return the sums by *keys* with the measures that follow from them; unknown where nothing was counted."""
    frame = raw.groupby(keys, as_index=False)[list(SUMMED)].sum().sort_values(keys, ignore_index=True)

    def ratio(above: str, below: str) -> pd.Series:
        return frame[above] / frame[below].where(frame[below] > 0)

    frame["cost"] = frame["cost_dollars"]
    frame["peak"] = ratio("peak_sum", "peaks")
    frame["compactions_per"] = ratio("compactions", "sessions")
    frame["fidelity"] = ratio("fidelity_sum", "fidelities")
    frame["regrets_per"] = ratio("regrets", "sessions")
    frame["cache"] = ratio("cache_read_tokens", "input_tokens")
    return frame


_TABLE: Final = {
    "period": "from", "line": "line", "sessions": "sessions", "calls": "calls", "cost_dollars": "cost",
    "input_tokens": "input tokens", "output_tokens": "output tokens", "cache": "from the cache",
    "cache_breaks": "cache breaks", "cache_break_dollars": "cost of breaks", "peak": "peak utilization",
    "red_sessions": "sessions in red", "compactions": "compactions", "fidelity": "fidelity", "regrets": "regrets",
}  # fmt: skip


def trends_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the periods and lines as a table to read, the first day of each period in UTC."""
    table = frame[list(_TABLE)].rename(columns=_TABLE)
    return table.assign(**{"from": table["from"].map("{:%Y-%m-%d}".format)})


def values_of(frame: pd.DataFrame, measure: str) -> pd.Series:
    """Return the values of a measure."""
    return frame[f"{measure}_per" if f"{measure}_per" in frame else measure]


def _marks(raw: pd.DataFrame) -> Iterable[ReleaseMark]:
    """Yield the releases of each agent after whose first period a value differs from that before."""
    for agent, of_agent in raw[raw["release"] != ""].groupby("agent"):
        first = of_agent.groupby("release")["period"].min().sort_values()
        for release, period in list(first.items())[1:]:
            before = of_agent[of_agent["period"] < period]
            after = of_agent[(of_agent["period"] >= period) & (of_agent["release"] == release)]
            old = before[before["period"].isin(sorted(before["period"].unique())[-COMPARED_PERIODS:])]
            new = after[after["period"].isin(sorted(after["period"].unique())[:COMPARED_PERIODS])]
            yield from _changes(old, new, agent=str(agent), release=str(release), period=period)


def _changes(
    old: pd.DataFrame, new: pd.DataFrame, *, agent: str, release: str, period: Any
) -> Iterable[ReleaseMark]:
    if min(old["sessions"].sum(), new["sessions"].sum()) < MINIMUM_SESSIONS:
        return
    sides = [_measured(side.assign(all=0), ["all"]).iloc[0] for side in (old, new)]
    for measure in MEASURES:
        before, after = (float(_per_session(side, measure.name)) for side in sides)
        if before > 0 and abs(after - before) > CHANGE * before:
            yield ReleaseMark(measure.name, period, agent, release, before, after)


def _per_session(sums: pd.Series, measure: str) -> Any:
    if measure == "cost":
        return sums["cost"] / sums["sessions"] if sums["sessions"] else 0.0
    return sums[f"{measure}_per"] if f"{measure}_per" in sums else sums[measure]
