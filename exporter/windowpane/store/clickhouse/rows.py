"""The rows of the copy, made of the store's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, Final

import msgspec

from windowpane.core.decoders import json_decoder
from windowpane.store.clickhouse.tables import ALERTS, EVENTS, SESSION_DAYS, SESSIONS, TOOL_USE, TURNS
from windowpane.store.projections.trends import DAY_SECONDS, LAST_DAY, sums_of
from windowpane.store.reads.event_records import EventRecord
from windowpane.store.reads.export import stored_bytes
from windowpane.store.records import AlertRow, SessionRow, ToolUse, TrendRow, TurnRow
from windowpane.store.search.events import text_of, words_of

Row = list[Any]

REVISION_FACTOR: Final = 2**40
"""More than the events of any revision: a version is that of the revision first, and then of its events."""


class _Identity(msgspec.Struct):
    agent: str = ""
    model: str = ""


_identity_decoder: Final = json_decoder(_Identity)
_encoder: Final = msgspec.json.Encoder()


def version_of(session: SessionRow) -> int:
    """Return a number that grows with each event of the session and with each revision."""
    return session.revision * REVISION_FACTOR + session.events


def day_of(at: float | None) -> int:
    """Return the day of a time, in days since the epoch; 0 for none, and for one that is a fault of its clock."""
    if at is None or not 0 <= at < (LAST_DAY + 1) * DAY_SECONDS:
        return 0
    return int(at // DAY_SECONDS)


def event_row(record: EventRecord) -> Row:
    """Return a row of `events`; `search_text` has each word once, between spaces."""
    body = stored_bytes(record.body)
    try:
        identity = _identity_decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        identity = _Identity()
    distinct = " ".join(sorted(set(words_of(text_of(body)))))
    values = {
        **record._asdict(),
        "counted": bool(record.counted),
        "session_id": _text(record.session_id),
        "day": day_of(record.at),
        "agent": identity.agent,
        "model": identity.model,
        "hash": stored_bytes(record.hash),
        "body": body,
        "search_text": f" {distinct} " if distinct else "",
    }
    return EVENTS.row(values)


def session_row(session: SessionRow) -> Row:
    """Return a row of `sessions`."""
    return SESSIONS.row({**_values(session), "day": day_of(session.last_at), "version": version_of(session)})


def turn_rows(session: SessionRow, turns: Iterable[TurnRow]) -> list[Row]:
    """Return rows of `turns`."""
    shared = _shared(session)
    return [
        TURNS.row(
            {
                **_values(turn),
                **shared,
                "agent": _text(session.agent),
                "release": _text(session.label or session.agent_version),
                "components": _encoder.encode(turn.components).decode(),
                "day": day_of(turn.at),
            }
        )
        for turn in turns
    ]


def alert_rows(session: SessionRow, alerts: Iterable[AlertRow]) -> list[Row]:
    """Return rows of `alerts`."""
    shared = _shared(session)
    return [ALERTS.row({**_values(alert), **shared, "day": day_of(alert.fired_at)}) for alert in alerts]


def session_day_rows(session: SessionRow, days: Iterable[TrendRow]) -> list[Row]:
    """Return rows of `session_days`."""
    shared = {**_shared(session), "project": session.project}
    return [_session_day_row(day, shared) for day in days]


def pruned_day_rows(days: Iterable[tuple[str, TrendRow]]) -> list[Row]:
    """Return the rows of `session_days` for what retention has deleted of each project.

    No session has the revision 0: the name of the project, which is empty for none, takes the place of an id.
    """
    shared = {"revision": 0, "version": 0, "removed": False}
    return [_session_day_row(day, {**shared, "session_id": project, "project": project}) for project, day in days]


def tool_use_rows(session: SessionRow, uses: Iterable[ToolUse]) -> list[Row]:
    """Return rows of `tool_use`, on the day on which the session started."""
    shared = {**_shared(session), "project": session.project, "day": day_of(session.started_at)}
    return [TOOL_USE.row({**_values(use), **shared}) for use in uses]


def _session_day_row(day: TrendRow, shared: Mapping[str, Any]) -> Row:
    return SESSION_DAYS.row({**_values(day), **sums_of(day), **shared})


def _shared(session: SessionRow) -> dict[str, Any]:
    """Return the columns that all rows of a session have."""
    return {
        "session_id": _text(session.session_id),
        "revision": session.revision,
        "version": version_of(session),
        "removed": False,
    }


def _values(row: Any) -> dict[str, Any]:
    return {name: _text(value) if isinstance(value, str) else value for name, value in asdict(row).items()}


def _text(text: str) -> str:
    """Return a text that can be encoded: one broken name must not stop the copy."""
    return text.encode(errors="replace").decode()
