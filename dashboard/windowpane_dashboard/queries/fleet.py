"""The sessions that the fleet page lists, the alerts that fire in them, and how long the store keeps them.

Their order is that of `windowpane.store.reads.fleet`.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pandas as pd

from windowpane.config.loading import load_config
from windowpane.config.schema import CostBudget
from windowpane.core.times import IDLE_SECONDS, is_live, is_live_since
from windowpane.core.vocabulary import SEVERITIES, Severity
from windowpane.exceptions import ConfigurationError
from windowpane.report.losses import Losses, losses_of
from windowpane.store.filters import AlertFilter, SessionFilter
from windowpane.store.reads.project_reader import EventReader
from windowpane.store.records import AlertRow, FleetTotals, SessionRow, Spending
from windowpane.text.forecasts import PACE_TURNS, next_event, time_ahead, with_band
from windowpane.text.formats import UNKNOWN, ago, count, size
from windowpane_dashboard.queries.timeline import latest_pressure
from windowpane_dashboard.queries.titles import project, session_title, titled_url

FLEET_ROWS: Final = 500
"""Sessions the fleet page lists at most."""
FIRINGS: Final = 2_000
"""Firing alerts of live sessions that are read, the latest ones."""
LIVE_READ: Final = 50
"""Live sessions of which the nearest are chosen, those under most pressure."""
CARDS: Final = 6
MINUTE: Final = 60.0


@dataclass(frozen=True, slots=True)
class LiveSession:
    """A live session with what is expected of it next."""

    row: SessionRow
    alert: AlertRow | None
    """The alert that fired last and still does."""
    band: tuple[float | None, float | None] = (None, None)
    """10 to 90 band of the turns until its next event."""
    time: str = ""
    """The time that these turns take at the present pace."""
    today_dollars: float | None = None
    """Cost of its calls and its sub-agents' since midnight; None if none is known."""

    def forecast(self, now: float) -> str:
        """Return the next event: `13 turns (6–23) until compaction`, `compaction now`, `no forecast yet`."""
        event = next_event(self.row)
        if event.turns is None:
            return "no forecast yet"
        if not math.isfinite(event.turns):
            return f"no {event.name} in sight"
        if event.turns <= 0:
            return event.text
        text = f"{with_band(event.turns, *self.band)} until {event.name}"
        is_idle = now - (self.row.last_at or 0.0) > IDLE_SECONDS
        return f"{text}, {self.time} at this pace" if self.time and not is_idle else text


def _turns(row: SessionRow, live_since: float = -math.inf) -> float:
    """Return the turns until the next event of a session; infinite where none is expected, or it is not live."""
    turns = next_event(row).turns if is_live_since(row, live_since) else None
    return math.inf if turns is None or math.isnan(turns) else turns


@dataclass(frozen=True, slots=True)
class Fleet:
    """Matching sessions, live ones first by their next event, the others in the order of the store."""

    rows: tuple[SessionRow, ...]
    totals: FleetTotals
    """Over all sessions that match, not only those that are listed."""
    fired: dict[str, Counter[Severity]]
    """Alerts that fire now, counted by severity, for each live session with any."""
    live: tuple[LiveSession, ...] = ()
    """The matching live sessions whose next event is nearest."""
    losses: Mapping[str, Losses] = field(default_factory=dict)
    """Of the listed sessions, where they are known."""

    @property
    def more(self) -> bool:
        """True where more sessions match than are listed."""
        return self.totals.sessions > len(self.rows)

    @property
    def forgot_most(self) -> tuple[SessionRow, Losses] | None:
        """The listed session with the worst losses; None where no loss is known."""
        losing = [
            (row, self.losses[row.session_id]) for row in self.rows if any(self.losses.get(row.session_id, ()))
        ]
        return max(losing, key=lambda one: one[1], default=None)

    @property
    def warning(self) -> str:
        """The nearest next event: `api loses its memory in about 4 turns.`; empty if none is expected."""
        turns = _turns(self.live[0].row) if self.live else math.inf
        if not math.isfinite(turns):
            return ""
        first, event = self.live[0].row, next_event(self.live[0].row)
        what = "loses its memory" if event.name == "compaction" else "reaches red"
        when = "now" if turns <= 0 else f"in about {count(max(1, round(turns)), 'turn')}"
        return f"{session_title(first)} {what} {when}."


def read_fleet(
    reader: EventReader, query: SessionFilter, live_since: float, *, midnight: float = math.inf
) -> Fleet:
    """Return the matching sessions in their order; those are live that had an event since *live_since*.

    *midnight* is the start of the day in which costs of live sessions count.
    """
    firing = reader.alerts(AlertFilter(firing=True, live_since=live_since, limit=FIRINGS))
    totals = reader.fleet_totals(query, live_since=live_since)
    first = query.live_first_since or math.inf
    rows = below_parents(sorted(reader.sessions(query), key=lambda row: _turns(row, first)))
    live = nearest(reader, query, live_since, firing) if totals.live else ()
    if live and midnight < math.inf:
        live = _with_costs_of_today(
            live, reader.spending(since=midnight, roots=[one.row.session_id for one in live])
        )
    return Fleet(rows, totals, severities_by_session(firing), live, losses_of(reader, rows))


def nearest(
    reader: EventReader, query: SessionFilter, live_since: float, firing: Sequence[AlertRow]
) -> tuple[LiveSession, ...]:
    """Return the matching live sessions whose next event is nearest, the nearest first."""
    wanted = replace(query, live_since=live_since, live_first_since=None, order="pressure", limit=LIVE_READ)
    last_alerts: dict[str, AlertRow] = {}
    for alert in firing:  # newest first
        last_alerts.setdefault(alert.session_id, alert)
    live = (LiveSession(row, last_alerts.get(row.session_id)) for row in reader.sessions(wanted))
    cards = sorted(live, key=lambda session: _turns(session.row))[:CARDS]
    return tuple(_with_forecast(reader, session) for session in cards)


def _with_costs_of_today(live: Sequence[LiveSession], costs: Sequence[Spending]) -> tuple[LiveSession, ...]:
    today: defaultdict[str, float] = defaultdict(float)
    for cost in costs:
        today[cost.root_session_id] += cost.dollars
    return tuple(replace(one, today_dollars=today.get(one.row.session_id)) for one in live)


def _with_forecast(reader: EventReader, session: LiveSession) -> LiveSession:
    """Return the session with the band of its next event, as its page has it, and the time until it."""
    row, latest = session.row, latest_pressure(reader, session.row.session_id)
    if latest is None:
        return session
    event, first = next_event(row), row.turns + row.copied_turns - 2 * PACE_TURNS
    times = [
        turn.at for turn in reader.turns(row.session_id, first=max(1, first)) if turn.used_tokens is not None
    ]
    return replace(session, band=event.band(latest), time=time_ahead(event.turns, times))


def below_parents(rows: Sequence[SessionRow]) -> tuple[SessionRow, ...]:
    """Return the rows with each sub-agent below its parent where both are listed; else in their order."""
    listed = {row.session_id for row in rows}
    children: defaultdict[str, list[SessionRow]] = defaultdict(list)
    for row in rows:
        if row.parent_session_id in listed and row.parent_session_id != row.session_id:
            children[str(row.parent_session_id)].append(row)
    nested = {child.session_id for below in children.values() for child in below}
    ordered: dict[str, SessionRow] = {}
    for start in (*(row for row in rows if row.session_id not in nested), *rows):  # rows in a circle come last
        waiting = [start]
        while waiting:
            row = waiting.pop()
            if row.session_id not in ordered:
                ordered[row.session_id] = row
                waiting += reversed(children[row.session_id])
    return tuple(ordered.values())


def severities_by_session(alerts: Sequence[AlertRow]) -> dict[str, Counter[Severity]]:
    """Return the alerts of each session, counted by severity."""
    fired: defaultdict[str, Counter[Severity]] = defaultdict(Counter)
    for alert in alerts:
        fired[alert.session_id][alert.severity] += 1
    return dict(fired)


def worst_severity(fired: Counter[Severity]) -> Severity:
    """Return the worst severity that fires."""
    return max(fired, key=SEVERITIES.index)


def firing_text(fired: Counter[Severity] | None) -> str:
    """Return the firing alerts of the worst severity, and the number of others: `1 critical +2`."""
    if not fired:
        return ""
    worst = worst_severity(fired)
    others = fired.total() - fired[worst]
    return f"{fired[worst]} {worst} +{others}" if others > 0 else f"{fired[worst]} {worst}"


def fleet_frame(listed: Fleet, now: float) -> pd.DataFrame:
    """Return one row per session, in the columns of the fleet's table."""
    records = [_fleet_record(listed, row, now) for row in listed.rows]
    return pd.DataFrame(records, columns=list(_FLEET_COLUMNS))


_FLEET_COLUMNS: Final = (
    "window", "session", "lost", "cost", "repository", "alerts", "last", "next", "agent", "model", "turns",
    "compactions", "zone", "estimated", "estimated cost", "stated cost", "firing", "losses",
)  # fmt: skip
STYLING: Final = ("zone", "estimated", "estimated cost", "stated cost", "firing", "losses")
"""Columns that only set the style of a row."""


def _fleet_record(listed: Fleet, row: SessionRow, now: float) -> dict[str, Any]:
    fired, losses = listed.fired.get(row.session_id), listed.losses.get(row.session_id)
    return {
        "session": titled_url(row),
        "repository": project(row),
        "window": row.utilization,
        "next": (next_event(row).text or UNKNOWN) if is_live(row, now) else "not live",
        "lost": losses.rank if losses else math.nan,
        "losses": losses.short if losses else UNKNOWN,
        "cost": row.shown_cost_dollars,
        "alerts": firing_text(fired),
        "last": ago(row.last_at, now),
        "agent": row.agent or UNKNOWN,
        "model": row.model or UNKNOWN,
        "turns": row.turns,
        "compactions": compactions_text(row),
        "zone": row.zone,
        "estimated": row.is_estimated,
        "estimated cost": row.is_cost_estimated,
        "stated cost": row.is_cost_stated,
        "firing": worst_severity(fired) if fired else None,
    }


def visible_content(listed: Fleet, now: float) -> object:
    """Return what the cards and the table show, to compare with a later state. Times count in whole minutes."""
    firings = [one.alert.fired_at for one in listed.live if one.alert is not None]
    ages = [_age(at, now) for at in (*(row.last_at for row in listed.rows), *firings)]
    live = [is_live(row, now) for row in listed.rows]
    return (
        listed.rows,
        listed.fired,
        listed.live,
        listed.losses,
        ages,
        live,
        [one.forecast(now) for one in listed.live],
    )


def _age(at: float | None, now: float) -> str:
    return "now" if at is not None and now - at < MINUTE else ago(at, now)


def compactions_text(row: SessionRow) -> str:
    """Return the number of compactions, marked where one hit in the middle of a task; empty without any."""
    if not row.compressions:
        return ""
    return f"{row.compressions:,}{' ◆' if row.compressions_in_task else ''}"


# -- what is stored, and for how long --------------------------------------------------------------------------


def configured_budgets(projects: tuple[str, ...] | None) -> tuple[CostBudget, ...]:
    """Return the cost budgets; for a visitor of some *projects* only theirs, none if they cannot be read."""
    try:
        budgets = load_config().cost_budgets
    except ConfigurationError:
        return ()
    return tuple(budget for budget in budgets if projects is None or budget.project in projects)


def retention_text(days: float, most_bytes: int) -> str:
    """Return the limits beyond which sessions are deleted: `after 30 days without an event or beyond 2.0 GB`."""
    number = int(days)
    text = count(number, "day") if days == number else f"{days:g} days"
    return f"after {text} without an event or beyond {size(most_bytes)}"
