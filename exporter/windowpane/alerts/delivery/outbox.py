"""Messages that wait for delivery, kept in a table so that a crash or an outage loses none.

The table may live in the event store's file or in one of its own. One row is one message to one channel, unique
by (channel, session, alert, crossing turn, state), so enqueuing twice sends once. A row is leased while it is
being delivered: another process takes it over only when the lease has run out. Delivered rows stay a while as
memory.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from windowpane.alerts.delivery.message import State
from windowpane.core.codec import decode, encode
from windowpane.core.events import AlertFired, AlertResolved, Event

CAPACITY_ROWS: Final = 10_000
BUSY_SECONDS: Final = 5.0
FORK_SECONDS: Final = 2.0
MESSAGES_TOGETHER: Final = 20
CLOCK_SLACK_SECONDS: Final = 60.0
"""How far apart the clocks of two processes may be before one counts as wrong."""
REMEMBER_SECONDS: Final = 7 * 86_400.0
"""How long delivered messages are remembered, so that they are not sent twice."""

_TABLE: Final = """
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
_INDEX: Final = "CREATE INDEX IF NOT EXISTS notification_due ON notification_outbox (done_at, channel, due_at)"


class Entry(NamedTuple):
    """An alert event to be sent to one channel."""

    channel: str
    event: Event


@dataclass(frozen=True, slots=True)
class Letter:
    """One message waiting for one channel."""

    id: int
    channel: str
    event: Event
    queued_at: float
    attempts: int


def held_by_another(error: sqlite3.Error) -> bool:
    """Whether the outbox is only locked for now, and nothing is wrong with it."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def state_of(event: Event) -> State:
    """Whether an alert event says firing or resolved."""
    return "firing" if isinstance(event.data, AlertFired) else "resolved"


def _identity(entry: Entry) -> tuple[str, str, str, int, State]:
    data = entry.event.data
    assert isinstance(data, AlertFired | AlertResolved)
    # Half a surrogate pair is no text for SQLite; the event's own bytes keep the id as it came.
    session_id = entry.event.context.session_id.encode("utf-8", "replace").decode()
    return entry.channel, session_id, data.alert, data.crossing_turn, state_of(entry.event)


class Outbox:
    """The table. Thread-safe: one lock guards its one connection; *path* None keeps it in memory."""

    def __init__(
        self, path: Path | None, *, capacity: int = CAPACITY_ROWS, busy_seconds: float = BUSY_SECONDS
    ) -> None:
        self._path = path
        self._capacity = capacity
        self._busy_seconds = busy_seconds
        self._inherited: list[sqlite3.Connection] = []
        self._connection: sqlite3.Connection | None = None
        self.after_fork()

    def after_fork(self) -> None:
        """Leave the parent's connection alone, and open one of our own when needed."""
        self._lock = threading.RLock()
        self._holders: set[int] = set()
        if self._connection is not None:
            self._inherited.append(self._connection)  # dropping it would close it, and with it the parent's locks
        self._connection = None

    def hold_still(self) -> None:
        """Wait for the transaction in progress and begin no other: SQLite does not survive a fork within one."""
        if self._lock.acquire(timeout=FORK_SECONDS):
            self._holders.add(threading.get_ident())

    def go_on(self) -> None:
        """Undo `hold_still` of the same thread."""
        if threading.get_ident() in self._holders:
            self._holders.discard(threading.get_ident())
            self._lock.release()

    def put(self, entries: Sequence[Entry], *, now: float, due_at: float) -> int:
        """Queue alert events for channels, all or none; returns how many were not queued before."""
        rows = [(*_identity(entry), encode(entry.event), now, due_at) for entry in entries]
        with self._transaction() as connection:
            added = connection.executemany(
                "INSERT OR IGNORE INTO notification_outbox "
                "(channel, session_id, alert, crossing_turn, state, event, queued_at, due_at) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                rows,
            ).rowcount
            self._bound(connection, now)
        return added

    def lease(
        self, channel: str, *, now: float, due_by: float, until: float, limit: int = MESSAGES_TOGETHER
    ) -> list[Letter]:
        """Take the oldest message of a channel that is due, and whatever else waits for the same session.

        Nobody else gets them before *until*.
        """
        with self._transaction() as connection:
            # Queued in the future: the clock was set back, and waiting for it would hold messages for as long.
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
                (channel, first[0], now, limit),
            ).fetchall()
            connection.executemany(
                "UPDATE notification_outbox SET leased_until = ? WHERE id = ?",
                [(until, row[0]) for row in rows],
            )
        return [Letter(row[0], row[1], decode(row[2]), row[3], row[4]) for row in rows]

    def done(self, letters: Sequence[Letter], *, now: float) -> None:
        """These were delivered, or given up."""
        self._update("done_at = ?, attempts = attempts + 1, leased_until = 0", now, letters)

    def postpone(self, letters: Sequence[Letter], *, due_at: float) -> None:
        """These could not be delivered; try again at *due_at*."""
        self._update("due_at = ?, attempts = attempts + 1, leased_until = 0", due_at, letters)

    def hold(self, letters: Sequence[Letter], *, due_at: float) -> None:
        """These were not tried; take them again at *due_at*."""
        self._update("due_at = ?, leased_until = 0", due_at, letters)

    def next_due(self, channels: Sequence[str]) -> float | None:
        """When the next message of these channels can be tried; None when none waits."""
        marks = ", ".join("?" * len(channels))
        with self._opened() as connection:
            found = connection.execute(
                "SELECT min(max(due_at, leased_until)) FROM notification_outbox "  # noqa: S608  # only marks
                f"WHERE done_at IS NULL AND channel IN ({marks})",
                tuple(channels),
            ).fetchone()
        return None if found is None or found[0] is None else float(found[0])

    def waiting(self) -> int:
        """Messages not yet delivered."""
        with self._opened() as connection:
            found = connection.execute(
                "SELECT count(*) FROM notification_outbox WHERE done_at IS NULL"
            ).fetchone()
        return int(found[0])

    def close(self) -> None:
        """Close the connection; the next use opens it again."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def _update(self, change: str, moment: float, letters: Sequence[Letter]) -> None:
        with self._transaction() as connection:
            connection.executemany(
                f"UPDATE notification_outbox SET {change} WHERE id = ?",  # noqa: S608  # our own texts
                [(moment, letter.id) for letter in letters],
            )

    def _bound(self, connection: sqlite3.Connection, now: float) -> None:
        """Forget what was delivered long ago; when there are too many rows, the oldest go first."""
        connection.execute("DELETE FROM notification_outbox WHERE done_at < ?", (now - REMEMBER_SECONDS,))
        connection.execute(
            "DELETE FROM notification_outbox WHERE id IN (SELECT id FROM notification_outbox "
            "ORDER BY done_at IS NULL DESC, id DESC LIMIT -1 OFFSET ?)",
            (self._capacity,),
        )

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            yield self._connection or self._open()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._opened() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def _open(self) -> sqlite3.Connection:
        if self._path is not None and not self._path.exists():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        connection = sqlite3.connect(
            self._path or ":memory:", timeout=self._busy_seconds, isolation_level=None, check_same_thread=False
        )
        try:
            if self._path is not None:
                connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(_TABLE)
            connection.execute(_INDEX)
        except sqlite3.Error:
            connection.close()
            raise
        self._connection = connection
        return connection
