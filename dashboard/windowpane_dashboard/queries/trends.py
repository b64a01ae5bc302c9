"""Trends by day or week: one line per agent, model or release, and the releases that changed a value."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pandas as pd

from windowpane.store.records import RepeatedDay, TrendRow
from windowpane.text.formats import UNKNOWN, percent
from windowpane_dashboard.queries.filters import TrendAddress

MAXIMUM_LINES: Final = 6
"""Lines of a chart; the others are summed."""
OTHERS: Final = "others"
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
SUMMED: Final = (
    "sessions", "calls", "input_tokens", "output_tokens", "cache_read_tokens", "cost_dollars", "compactions",
    "fidelity_sum", "fidelities", "regrets", "cache_breaks", "cache_break_dollars", "peak_sum", "peaks",
    "red_sessions", "estimated_outputs",
)  # fmt: skip
CHANGE: Final = 0.25
"""Relative change of a value from which on the release that came with it is marked."""
MINIMUM_COMPARED: Final = 10
"""Sessions of each line, and on each side of a new release, below which nothing is compared."""
ALIKE: Final = 0.05
"""Relative difference up to which two lines are about the same."""
COMPARED_PERIODS: Final = 5
"""Periods on each side of a new release that are compared."""


SUMMED_BY_DAY: Final = ("sessions", "peaks", "peak_sum", "red_sessions")
"""Sums that count a session on each of its days, models and releases, until the repeated ones are subtracted."""
RED: Final = 0.9


@dataclass(frozen=True, slots=True)
class TrendMeasure:
    """One chart of the trends."""

    name: str
    title: str
    unit: str
    """`$`, `%`, or empty."""
    more_is_better: bool = False


MEASURES: Final = (
    TrendMeasure("cost", "cost", "$"),
    TrendMeasure("peak", "peak utilization, mean of the sessions", "%"),
    TrendMeasure("compactions", "compactions per session", ""),
    TrendMeasure("fidelity", "facts kept by compactions, mean", "", more_is_better=True),
    TrendMeasure("regrets", "blocks needed again per session", ""),
    TrendMeasure("cache", "share of the input from the cache", "%", more_is_better=True),
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
    """`period`, `line`, the sums, and the measures; a session counts once in each row."""
    marks: tuple[ReleaseMark, ...]

    @property
    def totals(self) -> pd.Series:
        """The sums over everything."""
        return self.frame[[name for name in SUMMED if name not in SUMMED_BY_DAY]].sum()


@dataclass(frozen=True, slots=True)
class _Counted:
    """The sums of days, and the sessions that they count repeatedly; both have `period`, `line` and `release`."""

    sums: pd.DataFrame
    repeated: pd.DataFrame

    def where(self, condition: Callable[[pd.DataFrame], pd.Series]) -> _Counted:
        """Return the rows of both that match."""
        return _Counted(self.sums[condition(self.sums)], self.repeated[condition(self.repeated)])


def trends(rows: Sequence[TrendRow], position: TrendAddress, repeated: Sequence[RepeatedDay] = ()) -> Trends:
    """Return the trends of the rows that match the address; a session counts once per period and line."""
    counted = _counted(rows, position, repeated)
    largest = counted.sums.groupby("line")["calls"].sum().nlargest(MAXIMUM_LINES).index
    for frame in (counted.sums, counted.repeated):
        frame["line"] = frame["line"].where(frame["line"].isin(largest), OTHERS)
    return Trends(_measured(counted, ["period", "line"]), tuple(_marks(counted)))


def _counted(rows: Sequence[TrendRow], position: TrendAddress, repeated: Sequence[RepeatedDay]) -> _Counted:
    """Return the sums of the rows that match the address."""
    return _Counted(
        _frame(rows, position, SUMMED),
        _frame(repeated, position, ("session", "peak")).astype({"peak": "float64"}),
    )


def _frame(
    rows: Sequence[TrendRow] | Sequence[RepeatedDay], position: TrendAddress, columns: Sequence[str]
) -> pd.DataFrame:
    chosen = [
        row for row in rows if (position.agent in (None, row.agent)) and (position.model in (None, row.model))
    ]
    return pd.DataFrame(
        {
            "period": [period_of(row, position) for row in chosen],
            "line": [line_of(row, position) for row in chosen],
            "agent": [row.agent for row in chosen],
            "release": [row.release for row in chosen],
            **{name: [getattr(row, name) for row in chosen] for name in columns},
        }
    )


def period_of(row: TrendRow | RepeatedDay, position: TrendAddress) -> datetime:
    """Return the first day of the period that a row belongs to."""
    at = EPOCH + timedelta(days=row.day)
    return at - timedelta(days=at.weekday()) if position.period == "week" else at


def line_of(row: TrendRow | RepeatedDay, position: TrendAddress) -> str:
    """Return the name of the line that a row belongs to."""
    if position.by == "model":
        return row.model or "unknown model"
    if position.by == "release":
        return f"{row.agent} {row.release}".strip() or "unknown release"
    return row.agent or "unnamed agent"


def _measured(counted: _Counted, keys: list[str]) -> pd.DataFrame:
    """Return the sums by *keys* with the measures that follow from them; unknown where nothing was counted."""
    sums = counted.sums.groupby(keys)[list(SUMMED)].sum()
    again = _counted_again(counted.repeated, keys).reindex(sums.index).fillna(0)
    frame = sums.assign(
        **{name: (sums[name] - again[name]).astype(sums[name].dtype) for name in SUMMED_BY_DAY}
    ).reset_index()

    def ratio(above: str, below: str) -> pd.Series:
        return frame[above] / frame[below].where(frame[below] > 0)

    frame["cost"] = frame["cost_dollars"]
    frame["peak"] = ratio("peak_sum", "peaks")
    frame["compactions_per"] = ratio("compactions", "sessions")
    frame["fidelity"] = ratio("fidelity_sum", "fidelities")
    frame["regrets_per"] = ratio("regrets", "sessions")
    frame["cache"] = ratio("cache_read_tokens", "input_tokens")
    return frame


def _counted_again(repeated: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return what the sums count beyond one row per session: of its rows, that with the highest peak counts."""
    peaks = repeated.assign(red=repeated["peak"] >= RED).groupby([*keys, "session"])
    each = peaks.agg(
        rows=("peak", "size"), peaks=("peak", "count"), peak_sum=("peak", "sum"), peak=("peak", "max"),
        red_rows=("red", "sum"),
    )  # fmt: skip
    again = each.assign(
        sessions=each["rows"] - 1,
        peaks=(each["peaks"] - 1).clip(lower=0),
        peak_sum=each["peak_sum"] - each["peak"].fillna(0.0),
        red_sessions=(each["red_rows"] - 1).clip(lower=0),
    )
    return again.groupby(keys)[list(SUMMED_BY_DAY)].sum()


@dataclass(frozen=True, slots=True)
class ComparedLine:
    """One of two lines that are compared: its sessions in the range, and its value of each measure."""

    name: str
    sessions: int
    values: dict[str, float]
    """By the name of the measure; nothing for one that was not recorded, or with too few sessions."""


def compared_lines(
    rows: Sequence[TrendRow], position: TrendAddress, repeated: Sequence[RepeatedDay] = ()
) -> dict[str, ComparedLine]:
    """Return each line of the range with its values per session, the newest first.

    A line is as new as the first day on which it occurs.
    """
    counted = _counted(rows, position, repeated)
    if counted.sums.empty:
        return {}
    sums = _measured(counted, ["line"]).set_index("line")
    first = counted.sums.groupby("line")["period"].min().sort_values(ascending=False, kind="stable")
    return {name: _compared(str(name), sums.loc[name]) for name in first.index}


def _compared(name: str, sums: pd.Series) -> ComparedLine:
    sessions = int(sums["sessions"])
    if sessions < MINIMUM_COMPARED:
        return ComparedLine(name, sessions, {})
    values = {measure.name: float(_per_session(sums, measure.name)) for measure in MEASURES}
    return ComparedLine(name, sessions, {name: value for name, value in values.items() if not math.isnan(value)})


def verdict(measure: TrendMeasure, one: ComparedLine, other: ComparedLine) -> str:
    """Return whether *one* is worse than *other*: `worse by 31%`, `about the same`; `–` if unknown."""
    value, base = one.values.get(measure.name), other.values.get(measure.name)
    if value is None or base is None:
        return UNKNOWN
    if abs(value - base) <= ALIKE * abs(base):
        return "about the same"
    is_worse = (value > base) != measure.more_is_better
    word = "worse" if is_worse else "better"
    return f"{word} by {percent(abs(value - base) / abs(base))}" if base else word


_TABLE: Final = {
    "period": "from", "line": "line", "sessions": "sessions", "calls": "calls", "cost_dollars": "cost",
    "input_tokens": "input tokens", "output_tokens": "output tokens", "cache": "from the cache",
    "cache_breaks": "cache breaks", "cache_break_dollars": "cost of breaks", "peak": "peak utilization",
    "red_sessions": "sessions in red", "compactions": "compactions", "fidelity": "facts kept",
    "regrets": "needed again",
}  # fmt: skip


def trends_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the periods and lines as a table to read, the first day of each period in UTC."""
    table = frame[list(_TABLE)].rename(columns=_TABLE)
    return table.assign(**{"from": table["from"].map("{:%Y-%m-%d}".format)})


def values_of(frame: pd.DataFrame, measure: str) -> pd.Series:
    """Return the values of a measure."""
    return frame[f"{measure}_per" if f"{measure}_per" in frame else measure]


def _marks(counted: _Counted) -> Iterable[ReleaseMark]:
    """Yield the releases of each agent after whose first period a value differs from that before."""
    released = counted.where(lambda frame: frame["release"] != "")
    for agent, of_agent in released.sums.groupby("agent"):
        first = of_agent.groupby("release")["period"].min().sort_values()
        for release, period in list(first.items())[1:]:
            before = of_agent.loc[of_agent["period"] < period, "period"]
            after = of_agent.loc[(of_agent["period"] >= period) & (of_agent["release"] == release), "period"]
            old = _of_periods(released, agent, sorted(before.unique())[-COMPARED_PERIODS:])
            new = _of_periods(released, agent, sorted(after.unique())[:COMPARED_PERIODS], release)
            yield from _changes(old, new, agent=str(agent), release=str(release), period=period)


def _of_periods(counted: _Counted, agent: Any, periods: Sequence[Any], release: Any = None) -> _Counted:
    """Return the rows of an agent in some periods, of one release or of all."""
    return counted.where(
        lambda frame: (
            (frame["agent"] == agent)
            & frame["period"].isin(periods)
            & ((release is None) | (frame["release"] == release))
        )
    )


def _changes(old: _Counted, new: _Counted, *, agent: str, release: str, period: Any) -> Iterable[ReleaseMark]:
    if old.sums.empty or new.sums.empty:
        return
    together = [_Counted(side.sums.assign(all=0), side.repeated.assign(all=0)) for side in (old, new)]
    sides = [_measured(side, ["all"]).iloc[0] for side in together]
    if min(side["sessions"] for side in sides) < MINIMUM_COMPARED:
        return
    for measure in MEASURES:
        before, after = (float(_per_session(side, measure.name)) for side in sides)
        if before > 0 and abs(after - before) > CHANGE * before:
            yield ReleaseMark(measure.name, period, agent, release, before, after)


def _per_session(sums: pd.Series, measure: str) -> Any:
    if measure == "cost":
        return sums["cost"] / sums["sessions"] if sums["sessions"] else 0.0
    return sums[f"{measure}_per"] if f"{measure}_per" in sums else sums[measure]
