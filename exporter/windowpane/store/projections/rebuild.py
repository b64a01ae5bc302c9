"""The projection folded again from the events: of every session, or of one."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import Final

from windowpane.core.codec import decode
from windowpane.exceptions import StoreError
from windowpane.store.database import Database
from windowpane.store.projections import session_drafts
from windowpane.store.projections.projection import Projection
from windowpane.store.projections.session_drafts import SessionDraft
from windowpane.store.statements import StatementBatch
from windowpane.store.tables import PROJECTIONS

_SESSIONS: Final = "SELECT key, current FROM sessions ORDER BY key"
_COUNT: Final = "UPDATE event_types SET events = (SELECT count(*) FROM events WHERE type = event_types.id)"
_EVENTS: Final = "SELECT turn, seq, body FROM events WHERE session = ? ORDER BY seq"
_TURN: Final = itemgetter(0)


def rebuild(connection: Database) -> int:
    """Fold every session's events again, inside the caller's transaction; return how many are current.

    Old revisions have a session row only.
    """
    for table in PROJECTIONS:
        connection.execute(f"DELETE FROM {table.name}")  # noqa: S608  # our tables
    sessions = connection.execute(_SESSIONS).fetchall()
    for key, current in sessions:
        _rebuild_session(connection, key)
        if not current:
            remove_session(connection, key)
    connection.execute(_COUNT)
    return sum(current for _, current in sessions)


def _rebuild_session(connection: Database, key: int) -> None:
    session_drafts.save(connection, [fold_session(connection, key, into=connection)])


def fold_session(connection: Database, key: int, *, into: Database) -> SessionDraft:
    """Fold the events of a session again, into the tables of *into*; return the session's new row, not saved.

    Raises `StoreError` where its numbers together are more than a row holds.
    """
    try:
        return _folded(connection, key, into)
    except OverflowError as error:
        raise StoreError(f"the events of session number {key} cannot be folded: {error}") from error


def _folded(connection: Database, key: int, into: Database) -> SessionDraft:
    session = session_drafts.load_chain(connection, key)
    # A turn at a time, as events arrived: what a batch holds back is then bounded here too.
    for _, events in groupby(connection.execute(_EVENTS, (key,)), key=_TURN):
        projection = Projection(StatementBatch(into))
        rows = list(events)
        projection.apply(session, [decode(body) for _, _, body in rows], [seq for _, seq, _ in rows])
        projection.save()
    session.pressure = session_drafts.pressure_rank(session.zone, session.utilization)
    return session


def remove_session(connection: Database, key: int) -> None:
    """Delete the turns, blocks and alerts of the session with this row number."""
    for table in PROJECTIONS:
        connection.execute(f"DELETE FROM {table.name} WHERE session = ?", (key,))  # noqa: S608  # our tables
