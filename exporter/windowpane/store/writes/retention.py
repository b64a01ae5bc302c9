"""Retention: deleting whole sessions, oldest first.

The store-wide chain keeps a tombstone of each deleted session, and the metric base its counters, so neither the
audit nor a counter shows a gap.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from windowpane.exceptions import EventFormatError
from windowpane.store import captured_content
from windowpane.store.database import Database, Engine
from windowpane.store.events import EVENT_COLUMNS, stored_events
from windowpane.store.projections import rebuild as projection_rebuild
from windowpane.store.projections import session_drafts, trends
from windowpane.store.records import StoredEvent
from windowpane.store.search import content as content_search
from windowpane.store.search import events as search
from windowpane.store.statements import Conditions
from windowpane.store.writes import chain, received
from windowpane.store.writes.write import Writer

_log: Final = logging.getLogger(__name__)

MetricFold = Callable[[bytes | None, Iterable[StoredEvent]], bytes]
"""The stored metric base and the events of a deleted session to the base that includes them."""

_OLDEST: Final = (
    "SELECT session_id, max(coalesce(last_at, 0.0)) AS newest FROM sessions WHERE {} GROUP BY session_id "
    "ORDER BY newest, min(key) LIMIT 1"
)
_TOO_OLD: Final = (
    "SELECT session_id, max(last_at) AS newest FROM sessions WHERE {} GROUP BY session_id "
    "HAVING max(last_at) > 0 AND max(last_at) < ? ORDER BY newest, min(key) LIMIT 1"
)
"""Recordings without times have no age and are never too old."""
_REVISIONS: Final = "SELECT key FROM sessions WHERE session_id = ? ORDER BY revision"
_EVENTS: Final = (
    f"SELECT {EVENT_COLUMNS} FROM events AS e JOIN sessions AS s ON s.key = e.session "  # noqa: S608  # our columns
    "WHERE e.session = ? ORDER BY e.seq"
)
_COUNTS: Final = "SELECT type, count(*) FROM events WHERE session = ? GROUP BY type"


@dataclass(frozen=True, slots=True)
class ProjectScope:
    """The sessions that a retention applies to: those of one project, or all except those of some."""

    project: str | None = None
    except_for: tuple[str, ...] = ()

    def conditions(self) -> Conditions:
        """Return the condition on a row of `sessions`: a session belongs where its current revision does."""
        projects = Conditions()
        if self.project is not None:
            projects.add("project = ?", self.project)
        elif self.except_for:
            projects.add(f"project NOT IN ({', '.join('?' * len(self.except_for))})", *self.except_for)
        if not projects.conditions:
            return projects
        current = f"SELECT session_id FROM sessions WHERE current = 1 AND {projects.clause}"  # noqa: S608  # bound
        return Conditions([f"session_id IN ({current})"], projects.values)

    def stored_bytes(self, connection: Database, engine: Engine) -> int:
        """Return the part of the store's bytes that these sessions take, by their share of the events."""
        whole = engine.stored_bytes(connection)
        conditions = self.conditions()
        if not conditions.conditions:
            return whole
        sql = f"SELECT coalesce(sum(events), 0) FROM sessions WHERE {conditions.clause}"  # noqa: S608  # bound
        (events,) = connection.execute(sql, conditions.values).fetchone()
        (total,) = connection.execute("SELECT coalesce(sum(events), 0) FROM sessions").fetchone()
        return int(whole * events / total) if total else 0


WHOLE_STORE: Final = ProjectScope()


def prune_oldest(
    writer: Writer,
    engine: Engine,
    *,
    before: float | None,
    max_bytes: int | None,
    fold: MetricFold | None,
    scope: ProjectScope = WHOLE_STORE,
) -> int:
    """Delete the oldest session if it is too old or the store too large; return 1 or 0. Raises `StoreError`.

    One session per transaction: a reader sees each deleted or whole, and other writers can write in between.
    *scope* limits it to the sessions of a project.
    """
    connection, conditions = writer.connection, scope.conditions()
    oldest = None
    if before is not None:
        oldest = connection.execute(_TOO_OLD.format(conditions.clause), (*conditions.values, before)).fetchone()
    if oldest is None and max_bytes is not None and scope.stored_bytes(connection, engine) > max_bytes:
        oldest = connection.execute(_OLDEST.format(conditions.clause), conditions.values).fetchone()
    if oldest is None:
        return 0
    chain.check_signer(connection, key=writer.audit_key, purpose="deleting a session")
    keys = [key for (key,) in connection.execute(_REVISIONS, (oldest[0],)).fetchall()]
    if fold is not None:
        (base,) = connection.execute("SELECT metric_base FROM store").fetchone()
        for key in keys:
            base = fold(base, stored_events(connection.execute(_EVENTS, (key,)), _warn_unreadable))
        connection.execute("UPDATE store SET metric_base = ?", (base,))
    digests = {digest for key in keys for digest in search.digests_of(connection, key)}
    for key in keys:
        _delete(writer, key)
    received.forget(writer, oldest[0])
    _delete_texts(connection, digests)
    writer.reset()
    return 1


def _delete_texts(connection: Database, digests: set[str]) -> None:
    """Delete the captured texts of a deleted session that no other session refers to."""
    captured = {digest for digest in digests if captured_content.holds(connection, digest)}
    for digest in captured - search.digests_in_use(connection, captured):
        content_search.delete(connection, digest)
    if connection.execute("SELECT 1 FROM sessions LIMIT 1").fetchone() is None:
        content_search.delete(connection, None)  # what a follower captured ahead of its events, too


def _warn_unreadable(seq: int, error: EventFormatError) -> None:
    _log.warning("event %d cannot be read and is not counted: %s", seq, error)


def _delete(writer: Writer, key: int) -> None:
    connection = writer.connection
    session = session_drafts.load_key(connection, key)
    assert session is not None
    writer.add_head("pruned", session)
    search.remove(connection, key)
    for kind, events in connection.execute(_COUNTS, (key,)).fetchall():
        connection.execute("UPDATE event_types SET events = events - ? WHERE id = ?", (events, kind))
    trends.keep(connection, key)
    projection_rebuild.remove_session(connection, key)
    connection.execute("DELETE FROM events WHERE session = ?", (key,))
    connection.execute("DELETE FROM sessions WHERE key = ?", (key,))
