"""The project that a session's own stream names, apart from later assignments."""

from __future__ import annotations

from typing import Final

from windowpane.core.codec import decode
from windowpane.core.events import SessionDescribed
from windowpane.exceptions import EventFormatError
from windowpane.store.database import Database
from windowpane.store.reads.fleet import current_key

ASSIGNED: Final = "project:"
"""Start of the stream of an assignment."""

_DESCRIBED: Final = """SELECT body FROM events
    WHERE session = ? AND type = (SELECT id FROM event_types WHERE name = ?) ORDER BY seq"""


def stated(connection: Database, session_id: str) -> str | None:
    """Return the project that the session's own stream names first; None for an unknown session."""
    key = current_key(connection, session_id)
    if not key:
        return None
    for (body,) in connection.execute(_DESCRIBED, (key, SessionDescribed.type)):
        try:
            event = decode(body)
        except EventFormatError:
            continue
        is_assigned = event.context.stream_id.startswith(ASSIGNED)
        if isinstance(event.data, SessionDescribed) and event.data.project and not is_assigned:
            return event.data.project
    return ""
