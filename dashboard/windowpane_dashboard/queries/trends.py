"""Trends by day or week: one line per agent, model or release, and the releases that changed a value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import NormalDist
from typing import Any, Final

import pandas as pd

from windowpane.report.context_health import MINIMUM_SESSIONS, quartiles
from windowpane.report.rank_test import rank_score
from windowpane.store.records import RepeatedDay, SessionRow, TrendRow
from windowpane.text.formats import UNKNOWN, decimal, dollars, percent
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
COMPARED_SESSIONS: Final = 1_000
"""Sessions of all lines that are compared, the latest."""
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
    of_session: str
    """The title of its value of one session, which is None if unknown."""
    value_of: Callable[[SessionRow], float | None]
    more_is_better: bool = False

    def text(self, value: float) -> str:
        """Return a value with its unit."""
        if self.unit == "$":
            return dollars(value)
        return percent(value) if self.unit == "%" else decimal(value)


def _cached(row: SessionRow) -> float | None:
    return row.cache_read_tokens / row.input_tokens if row.input_tokens else None


MEASURES: Final = (
    TrendMeasure("cost", "cost", "$", "cost", lambda row: row.cost_dollars),
    TrendMeasure("peak", "peak utilization, mean of the sessions", "%", "peak", lambda row: row.peak_utilization),
    TrendMeasure("compactions", "compactions per session", "", "compactions", lambda row: row.compressions),
    TrendMeasure(
        "fidelity",
        "facts kept by compactions, mean",
        "",
        "facts kept, last compaction",
        lambda row: row.fidelity,
        more_is_better=True,
    ),
    TrendMeasure("regrets", "blocks needed again per session", "", "needed again", lambda row: row.regrets),
    TrendMeasure(
        "cache", "share of the input from the cache", "%", "from the cache", _cached, more_is_better=True
    ),
)
CLEAR_SCORE: Final = NormalDist().inv_cdf(1 - 0.05 / 2 / len(MEASURES))
"""Of a rank test, from which on chance is unlikely: 5% for all measures, by Bonferroni's correction."""


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


def line_of(row: TrendRow | RepeatedDay | SessionRow, position: TrendAddress) -> str:
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


def compared_lines(rows: Iterable[SessionRow], position: TrendAddress) -> dict[str, list[SessionRow]]:
    """Return the sessions of each line, the newest line first: it is as new as its first session."""
    lines: dict[str, list[SessionRow]] = {}
    for row in sorted(rows, key=lambda row: row.started_at or 0.0):
        lines.setdefault(line_of(row, position), []).append(row)
    return dict(reversed(lines.items()))


def chosen_lines(lines: Mapping[str, Sequence[SessionRow]], position: TrendAddress) -> tuple[str, str]:
    """Return the two lines of the address, else the newest with enough sessions, if there are, of one agent."""
    names = sorted(lines, key=lambda name: len(lines[name]) < MINIMUM_SESSIONS)  # stable: the newest first
    one = position.one if position.one is not None and position.one in lines else names[0]
    if position.other is not None and position.other in lines and position.other != one:
        return one, position.other
    others = [name for name in names if name != one]
    return one, min(others, key=lambda name: lines[name][0].agent != lines[one][0].agent)


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
        return "too few sessions"
    score = rank_score(one, other)
    if abs(score) < CLEAR_SCORE:
        return "no clear difference"
    return "worse" if (score > 0) != measure.more_is_better else "better"


def _spread(measure: TrendMeasure, values: Sequence[float], rows: Sequence[SessionRow]) -> str:
    """Return the median with the quartiles; with the number of values where not all sessions have one."""
    spread = quartiles(values)
    number = "" if len(values) == len(rows) else f", n = {len(values):,}"
    if spread is None:
        return f"{UNKNOWN}{number}"
    low, middle, high = map(measure.text, spread)
    return f"{middle} ({low} to {high}){number}"


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
    if min(side["sessions"] for side in sides) < MINIMUM_SESSIONS:
        return
    for measure in MEASURES:
        before, after = (float(_per_session(side, measure.name)) for side in sides)
        if before > 0 and abs(after - before) > CHANGE * before:
            yield ReleaseMark(measure.name, period, agent, release, before, after)


def _per_session(sums: pd.Series, measure: str) -> Any:
    if measure == "cost":
        return sums["cost"] / sums["sessions"] if sums["sessions"] else 0.0
    return sums[f"{measure}_per"] if f"{measure}_per" in sums else sums[measure]
