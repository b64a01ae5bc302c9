"""The outbox: messages that wait for delivery, in a table so that a crash or an outage loses none.

The table may be part of the event store's file or of a separate one. One row is one message to one channel,
unique by (channel, session, alert, crossing turn, state), so that a message queued twice is sent once. A row is
leased while it is being delivered: another process takes it over only after the lease has expired. Delivered rows
are kept for some days, so that they are not sent again.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from windowpane.alerts.delivery.message import State
from windowpane.core.codec import decode, encode
from windowpane.core.events import AlertFired, AlertResolved, Event
from windowpane.effects.forks import ForkLock
from windowpane.effects.private_files import create_folder

CAPACITY_ROWS: Final = 10_000
BUSY_SECONDS: Final = 5.0
MESSAGES_PER_LEASE: Final = 20
CLOCK_SLACK_SECONDS: Final = 60.0
"""Difference between the clocks of two processes from which one counts as wrong."""
REMEMBER_SECONDS: Final = 7 * 86_400.0
"""Retention of delivered messages, so that they are not sent twice."""

TABLE: Final = """
CREATE TABLE IF NOT EXISTS notification_outbox (
    id INTEGER PRIMARY KEY,
    channel TEXT NOT NULL,
    session_id TEXT NOT NULL,
    alert TEXT NOT NULL,
    crossing_turn INTEGER NOT NULL,
    state TEXT NOT NULL,
    event BLOB NOT NULL,
    queued_at REAL NOT NULL,
    due_at REAL NOT NULL,
    leased_until REAL NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    done_at REAL,
    UNIQUE (channel, session_id, alert, crossing_turn, state)
)
"""
INDEX: Final = "CREATE INDEX IF NOT EXISTS notification_due ON notification_outbox (done_at, channel, due_at)"


class OutboxEntry(NamedTuple):
    """An alert event to queue for one channel."""

    channel: str
    event: Event


@dataclass(frozen=True, slots=True)
class QueuedAlert:
    """An alert event that waits for delivery to one channel."""

    id: int
    channel: str
    event: Event
    queued_at: float
    attempts: int


def is_locked(error: sqlite3.Error) -> bool:
    """Return whether the outbox is only locked for now, rather than broken."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def state_of(event: Event) -> State:
    """Return the state that an alert event reports."""
    return "firing" if isinstance(event.data, AlertFired) else "resolved"


def _identity(entry: OutboxEntry) -> tuple[str, str, str, int, State]:
    data = entry.event.data
    assert isinstance(data, AlertFired | AlertResolved)
    # SQLite rejects half a surrogate pair; the encoded event keeps the id unchanged.
    session_id = entry.event.context.session_id.encode("utf-8", "replace").decode()
    return entry.channel, session_id, data.alert, data.crossing_turn, state_of(entry.event)


class Outbox:
    """A queue in a SQLite table; in memory where *path* is None. Thread-safe: a lock guards the connection."""

    def __init__(
        self, path: Path | None, *, capacity: int = CAPACITY_ROWS, busy_seconds: float = BUSY_SECONDS
    ) -> None:
        self._path = path
        self._capacity = capacity
        self._busy_seconds = busy_seconds
        self._inherited: list[sqlite3.Connection] = []
        self._connection: sqlite3.Connection | None = None
        self.after_fork_in_child()

    def after_fork_in_child(self) -> None:
        """Keep the parent's connection untouched, and open a separate one when needed."""
        self._lock = ForkLock()
        if self._connection is not None:
            self._inherited.append(self._connection)  # closing it would release the parent's locks
        self._connection = None

    def before_fork(self) -> None:
        """Wait for the transaction in progress and block others: SQLite does not survive a fork within one."""
        self._lock.before_fork()

    def after_fork_in_parent(self) -> None:
        """Undo `before_fork` of the same thread."""
        self._lock.after_fork_in_parent()

    def put(self, entries: Sequence[OutboxEntry], *, now: float, due_at: float) -> int:
        """Queue alert events for channels, all or none; return the number of new ones."""
        rows = [(*_identity(entry), encode(entry.event), now, due_at) for entry in entries]
        with self._transaction() as connection:
            added = connection.executemany(
                "INSERT OR IGNORE INTO notification_outbox "
                "(channel, session_id, alert, crossing_turn, state, event, queued_at, due_at) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                rows,
            ).rowcount
            self._prune(connection, now)
        return added

    def lease(self, channel: str, *, now: float, due_by: float, until: float) -> list[QueuedAlert]:
        """Lease the oldest alert of a channel that is due by *due_by*, and the others of the same session.

        No other process receives them before *until*; at most `MESSAGES_PER_LEASE` are returned.
        """
        with self._transaction() as connection:
            # Queued in the future: the clock was set back, and messages would wait until it catches up.
            connection.execute(
                "UPDATE notification_outbox SET queued_at = :now, due_at = :now, leased_until = 0 "
                "WHERE done_at IS NULL AND queued_at > :now + :slack",
                {"now": now, "slack": CLOCK_SLACK_SECONDS},
            )
            first = connection.execute(
                "SELECT session_id FROM notification_outbox "
                "WHERE done_at IS NULL AND channel = ? AND due_at <= ? AND leased_until <= ? "
                "ORDER BY due_at, id LIMIT 1",
                (channel, due_by, now),
            ).fetchone()
            if first is None:
                return []
            rows = connection.execute(
                "SELECT id, channel, event, queued_at, attempts FROM notification_outbox "
                "WHERE done_at IS NULL AND channel = ? AND session_id = ? AND leased_until <= ? "
                "ORDER BY id LIMIT ?",
                (channel, first[0], now, MESSAGES_PER_LEASE),
            ).fetchall()
            connection.executemany(
                "UPDATE notification_outbox SET leased_until = ? WHERE id = ?",
                [(until, row[0]) for row in rows],
            )
        return [QueuedAlert(row[0], row[1], decode(row[2]), row[3], row[4]) for row in rows]

    def complete(self, alerts: Sequence[QueuedAlert], *, now: float) -> None:
        """Mark alerts as delivered or abandoned."""
        self._update("done_at = ?, attempts = attempts + 1, leased_until = 0", now, alerts)

    def postpone(self, alerts: Sequence[QueuedAlert], *, due_at: float) -> None:
        """Schedule alerts whose delivery failed for another attempt at *due_at*."""
        self._update("due_at = ?, attempts = attempts + 1, leased_until = 0", due_at, alerts)

    def defer(self, alerts: Sequence[QueuedAlert], *, due_at: float) -> None:
        """Schedule alerts that were not attempted for *due_at*."""
        self._update("due_at = ?, leased_until = 0", due_at, alerts)

    def next_due(self, channel: str) -> float | None:
        """Return when the next alert of a channel is due; None when none waits."""
        with self._connected() as connection:
            (due,) = connection.execute(
                "SELECT min(max(due_at, leased_until)) FROM notification_outbox "
                "WHERE done_at IS NULL AND channel = ?",
                (channel,),
            ).fetchone()
        return None if due is None else float(due)

    def close(self) -> None:
        """Close the connection; the next use opens it again."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def _update(self, change: str, moment: float, alerts: Sequence[QueuedAlert]) -> None:
        with self._transaction() as connection:
            connection.executemany(
                f"UPDATE notification_outbox SET {change} WHERE id = ?",  # noqa: S608  # constant texts
                [(moment, alert.id) for alert in alerts],
            )

    def _prune(self, connection: sqlite3.Connection, now: float) -> None:
        """Delete rows delivered long ago, and the oldest rows beyond the capacity."""
        connection.execute("DELETE FROM notification_outbox WHERE done_at < ?", (now - REMEMBER_SECONDS,))
        connection.execute(
            "DELETE FROM notification_outbox WHERE id IN (SELECT id FROM notification_outbox "
            "ORDER BY done_at IS NULL DESC, id DESC LIMIT -1 OFFSET ?)",
            (self._capacity,),
        )

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            yield self._connection or self._open()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                if connection.in_transaction:  # SQLite has already undone it where the disk is full
                    connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def _open(self) -> sqlite3.Connection:
        if self._path is not None and not self._path.exists():
            create_folder(self._path.parent)
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        connection = sqlite3.connect(
            self._path or ":memory:", timeout=self._busy_seconds, isolation_level=None, check_same_thread=False
        )
        try:
            if self._path is not None:
                connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(TABLE)
            connection.execute(INDEX)
        except sqlite3.Error:
            connection.close()
            raise
        self._connection = connection
        return connection
