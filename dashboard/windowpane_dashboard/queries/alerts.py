"""Alert firings: the list, and the duration, outcome and delivery of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from typing import Final

import pandas as pd

from windowpane.alerts.rules import alert_title
from windowpane.core.events import NotificationDelivered, NotificationFailed, RulesFollowed
from windowpane.core.vocabulary import SEVERITIES, counts_as_lost
from windowpane.report.alerts import duration_text, outcome_of
from windowpane.report.rule_survival import reported_rules
from windowpane.store.filters import AlertFilter, EventFilter, SessionFilter
from windowpane.store.reads.project_reader import EventReader
from windowpane.store.records import AlertRow, SessionRow, StoredEvent, intact_events
from windowpane.text.labels import severity_label
from windowpane_dashboard.queries.events import utc_times
from windowpane_dashboard.queries.filters import AlertFilters, AlertState, DeliveryState, SessionAddress
from windowpane_dashboard.queries.titles import link_url, sessions_by_id

ALERT_ROWS: Final = 500
"""Firings the page lists at most."""
VISIBLE_ROWS: Final = 12
"""Rows of the table that are visible without scrolling."""
SCANNED_FIRINGS: Final = 5_000
"""Latest firings that are read where a delivery state or text is requested, by which the store cannot filter."""
MESSAGES: Final = 2_000
"""Messages of one turn that are searched for those of one firing."""


@dataclass(frozen=True, slots=True)
class Firings:
    """Matching firings, latest first, with their sessions."""

    rows: tuple[AlertRow, ...]
    more: bool
    """True where more firings match than are listed."""
    sessions: dict[str, SessionRow]
    firing: tuple[AlertRow, ...]
    """Unresolved firings of live sessions, whether they are listed or not."""


def read_firings(reader: EventReader, filters: AlertFilters, live_since: float, zone: tzinfo = UTC) -> Firings:
    """Return the matching firings, the latest first; an alert fires while its session is live.

    Sessions are live that had an event since *live_since*; days are those of *zone*.
    """
    at_from, at_to = filters.dates.bounds(zone) if filters.dates else (None, None)

    def read(state: AlertState | None, limit: int) -> list[AlertRow]:
        candidates = reader.alerts(
            AlertFilter(
                session_id=filters.session,
                alert=filters.alert,
                severity=filters.severity,
                firing=None if state is None else state != "resolved",
                live_since=live_since if state == "firing" else None,
                silent_since=live_since if state == "unresolved" else None,
                at_from=at_from,
                at_to=at_to,
                limit=limit,
            )
        )
        return [row for row in candidates if _matches(row, filters)]

    is_scanned = filters.delivery is not None or filters.text is not None
    matching = read(filters.state, SCANNED_FIRINGS if is_scanned else ALERT_ROWS + 1)
    rows = tuple(matching[:ALERT_ROWS])
    firing = tuple(read("firing", SCANNED_FIRINGS))
    recent = reader.sessions(SessionFilter(order="recent", limit=ALERT_ROWS))
    sessions = sessions_by_id(reader, (row.session_id for row in rows), recent=recent)
    return Firings(rows, len(matching) > ALERT_ROWS, sessions, firing)


def _matches(row: AlertRow, filters: AlertFilters) -> bool:
    if filters.delivery is not None and delivery_state(row) != filters.delivery:
        return False
    return (filters.text or "").casefold() in f"{alert_title(row.alert)}: {row.summary}".casefold()


def delivery_state(row: AlertRow) -> DeliveryState:
    """Return the delivery state of a firing; one failed channel outweighs delivered ones."""
    if row.failed:
        return "failed"
    return "delivered" if row.delivered else "none"


def delivery_text(row: AlertRow) -> str:
    """Return the channels by delivery: `delivered: log, json; failed: mailto`; empty where nothing was sent."""
    parts = [
        f"{word}: {', '.join(channels)}"
        for word, channels in (("failed", row.failed), ("delivered", row.delivered))
        if channels
    ]
    return "; ".join(parts)


def requested_firing(reader: EventReader, session_id: str, position: SessionAddress) -> AlertRow | None:
    """Return the firing that an address names, however many others there are; None without it.

    A message knows the time at which it fired or was resolved, but not the number of its turn in the store.
    """
    alert, _, turn = (position.alert or "").partition(":")
    if not alert:
        return None
    rows = reader.alerts(AlertFilter(session_id=session_id, alert=alert, limit=SCANNED_FIRINGS))
    if position.at is not None:
        return next((row for row in rows if position.at in (row.fired_at, row.resolved_at)), None)
    return next((row for row in rows if str(row.crossing_turn) == turn), None)


def at_named_turn(reader: EventReader, session_id: str, position: SessionAddress) -> SessionAddress:
    """Return the address of a message with its turn, as soon as the firing is stored; any other as it is."""
    row = None if position.at is None else requested_firing(reader, session_id, position)
    if row is None:
        return position
    turn = row.resolved_turn if position.at == row.resolved_at else row.fired_turn
    return replace(position, turn=turn, alert=f"{row.alert}:{row.crossing_turn}", at=None)


def alert_address(row: AlertRow) -> SessionAddress:
    """Return the address of a firing on its session's page, at its turn."""
    alert = f"{row.alert}:{row.crossing_turn}"
    return SessionAddress(row.session_id, row.fired_turn, tab="alerts", alert=alert)


def firing_key(row: AlertRow) -> str:
    """Return the key of a firing in an address."""
    return f"{row.alert}:{row.crossing_turn}:{row.session_id}"


def alert_frame(listed: Firings, now: float) -> pd.DataFrame:
    """Return one row per firing, in the columns of the page's table."""
    rows = listed.rows
    outcomes = [outcome_of(row, listed.sessions.get(row.session_id), now) for row in rows]
    return pd.DataFrame(
        {
            "severity": [severity_label(row.severity) for row in rows],
            "alert": [alert_title(row.alert) for row in rows],
            "what": [row.summary for row in rows],
            "fired": utc_times([row.fired_at for row in rows]),
            "session": [link_url(alert_address(row), listed.sessions) for row in rows],
            "turn": pd.array([row.fired_turn for row in rows], dtype="int64"),
            "lasted": [duration_text(outcome) for outcome in outcomes],
            "ended": [outcome.short for outcome in outcomes],
            "delivery": [delivery_text(row) for row in rows],
        }
    )


@dataclass(frozen=True, slots=True)
class MessageDelivery:
    """One message about a firing."""

    channel: str
    state: str
    """`firing` or `resolved`."""
    arrived: bool
    attempts: int
    at: float | None
    reason: str


def deliveries(reader: EventReader, row: AlertRow) -> tuple[MessageDelivery, ...]:
    """Return every message about one firing and its resolution, in the order they were sent.

    A message belongs to the turn of the firing or resolution, however late it is sent.
    """
    turns = [row.fired_turn] if row.resolved_turn is None else [row.fired_turn, row.resolved_turn]
    sent = {
        one.seq: one.event
        for turn in turns
        for one in _at(reader, row, turn, "notification.delivered", "notification.failed")
    }
    messages = []
    for _seq, event in sorted(sent.items()):
        data = event.data
        if isinstance(data, NotificationDelivered | NotificationFailed) and (
            data.alert == row.alert and data.crossing_turn == row.crossing_turn
        ):
            reason = data.reason if isinstance(data, NotificationFailed) else ""
            arrived = isinstance(data, NotificationDelivered)
            messages.append(MessageDelivery(data.channel, data.state, arrived, data.attempts, event.at, reason))
    return tuple(messages)


def lost_rules_of(reader: EventReader, row: AlertRow) -> list[str]:
    """Return the rules that an alert about lost rules counts, the worst first; the alert itself holds no text."""
    if row.alert != "rule_lost":
        return []
    return [
        rule.label
        for one in _at(reader, row, row.fired_turn, "rules.followed")
        if isinstance(data := one.event.data, RulesFollowed)
        for rule in reported_rules(data, row.fired_turn, reader.content).lost
        if counts_as_lost(rule.source, rule.fate) and rule.text
    ]


def _at(reader: EventReader, row: AlertRow, turn: int, *types: str) -> list[StoredEvent]:
    query = EventFilter(session_id=row.session_id, types=types, turn_from=turn, turn_to=turn, limit=MESSAGES)
    return intact_events(reader.events_or_damage(query))


def selected_firing(rows: Sequence[AlertRow], pick: str | None) -> AlertRow | None:
    """Return the firing of an address, else the latest of the worst severity among the visible rows."""
    requested = next((row for row in rows if firing_key(row) == pick), None)
    if requested is not None or not rows:
        return requested
    return max(rows[:VISIBLE_ROWS], key=lambda row: SEVERITIES.index(row.severity))
