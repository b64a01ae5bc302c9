"""One row per firing of an alert: written when it fires, is delivered and resolves, listed latest first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from windowpane.core.decoders import json_decoder
from windowpane.core.events import AlertFired, Event, NotificationDelivered, NotificationFailed
from windowpane.store.database import Database
from windowpane.store.filters import AlertFilter
from windowpane.store.records import AlertRow
from windowpane.store.statements import Conditions, StatementBatch

_FIRE: Final = (
    "INSERT INTO alerts (session, alert, crossing_turn, fired_seq, severity, fired_turn, fired_at, "
    "value, threshold, summary) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
)
_RESOLVE: Final = (
    "UPDATE alerts SET resolved_turn = ?, resolved_at = ? WHERE session = ? AND alert = ? AND crossing_turn = ?"
)
_CHANNELS: Final = "SELECT delivered, failed FROM alerts WHERE session = ? AND alert = ? AND crossing_turn = ?"
_DELIVERED: Final = "UPDATE alerts SET delivered = ? WHERE session = ? AND alert = ? AND crossing_turn = ?"
_FAILED: Final = "UPDATE alerts SET failed = ? WHERE session = ? AND alert = ? AND crossing_turn = ?"
_COLUMNS: Final = (
    "s.session_id, s.agent, a.alert, a.severity, a.crossing_turn, a.fired_turn, a.fired_at, a.resolved_turn, "
    "a.resolved_at, a.value, a.threshold, a.summary, a.delivered, a.failed"
)

_channels_decoder: Final = json_decoder(tuple[str, ...])


def fire(statements: StatementBatch, session: int, event: Event, seq: int, data: AlertFired) -> None:
    """Add the row of an alert that fired."""
    statements.add(
        _FIRE,
        (
            session, data.alert, data.crossing_turn, seq, data.severity, event.context.turn, event.at,
            data.value, data.threshold, data.summary,
        ),
    )  # fmt: skip


def resolve(statements: StatementBatch, session: int, event: Event, alert: str, crossing_turn: int) -> None:
    """Record when an alert resolved."""
    statements.add(_RESOLVE, (event.context.turn, event.at, session, alert, crossing_turn))


def record_delivery(
    statements: StatementBatch, session: int, data: NotificationDelivered | NotificationFailed
) -> None:
    """Add the channel to those that delivered the alert's message or failed to; once each."""
    identity = (session, data.alert, data.crossing_turn)
    row = statements.first(_CHANNELS, identity)
    if row is None:
        return
    delivered = isinstance(data, NotificationDelivered)
    channels = _channels_decoder.decode(str(row[0 if delivered else 1]))
    if data.channel not in channels:
        text = msgspec.json.encode([*channels, data.channel]).decode()
        statements.add(_DELIVERED if delivered else _FAILED, (text, *identity))


def listed(connection: Database, query: AlertFilter, session: int | None) -> list[AlertRow]:
    """Return the firings that match, latest first; *session* is a row number.

    Recordings are imported one after another, so the order is that of the times and only then of the store.
    """
    conditions = Conditions()
    for column, value in (("session", session), ("alert", query.alert), ("severity", query.severity)):
        if value is not None:
            conditions.add(f"a.{column} = ?", value)
    if query.firing is not None:
        conditions.add(f"a.resolved_turn IS {'NULL' if query.firing else 'NOT NULL'}")
    if query.live_since is not None:
        conditions.add("s.ended = 0 AND s.last_at >= ?", query.live_since)
    if query.silent_since is not None:
        conditions.add("(s.ended = 1 OR s.last_at IS NULL OR s.last_at < ?)", query.silent_since)
    if query.at_from is not None:
        conditions.add("a.fired_at >= ?", query.at_from)
    if query.at_to is not None:
        conditions.add("a.fired_at < ?", query.at_to)
    if session is None:
        conditions.add("s.same_as = ''")
    conditions.among("s.project", query.projects)
    sql = (
        f"SELECT {_COLUMNS} FROM alerts AS a JOIN sessions AS s ON s.key = a.session "  # noqa: S608  # values are bound
        f"WHERE {conditions.clause} ORDER BY a.fired_at DESC NULLS LAST, a.fired_seq DESC LIMIT ?"
    )
    return [_row(row) for row in connection.execute(sql, (*conditions.values, query.limit))]


def _row(row: Sequence[Any]) -> AlertRow:
    *values, delivered, failed = row
    values += [_channels_decoder.decode(delivered), _channels_decoder.decode(failed)]
    return AlertRow(*values)
