"""A store file with sessions in every state, and what a person who may write the file can do to it."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.store.conftest import START, make_tracker, play

from windowpane.core.events import AlertFired, Event
from windowpane.store.embedded import SqliteStore
from windowpane.store.keys import key_id, link_with
from windowpane.store.replays import ReplayRow, StoredReplay
from windowpane.store.sqlite.dialect import SqliteDatabase
from windowpane.store.writes.chain import ORIGIN, genesis, read_heads

KEY = b"the audit key of the campaign"
FOREIGN_KEY = b"a key of somebody who may write the file"

PRUNED, ENDED, OTHER, LIVE, YOUNG = "pruned", "ended", "other", "live", "young"
"""The sessions: deleted by retention; ended twice; still running at the export; started after it."""


@dataclass(frozen=True)
class StoreFile:
    """A store that no process has open, with the heads exported from it and a copy older than they are."""

    path: Path
    heads: Path
    older_copy: Path
    keyed: bool

    def copy_to(self, folder: Path) -> StoreFile:
        """Return a copy of all three files."""
        folder.mkdir()
        files = [Path(shutil.copy(file, folder)) for file in (self.path, self.heads, self.older_copy)]
        return StoreFile(*files, keyed=self.keyed)

    @contextmanager
    def connect(self) -> Iterator[sqlite3.Connection]:
        """Open the file as any program can."""
        with closing(sqlite3.connect(self.path, isolation_level=None, factory=SqliteDatabase)) as connection:
            yield connection

    def run(self, statement: str, *values: object) -> None:
        """Run one statement."""
        with self.connect() as connection:
            connection.execute(statement, values)

    def key_of(self, session_id: str) -> int:
        """Return a session's row number."""
        with self.connect() as connection:
            return int(
                connection.execute("SELECT key FROM sessions WHERE session_id = ?", (session_id,)).fetchone()[0]
            )

    def sequence(self, session_id: str) -> list[int]:
        """Return the numbers of a session's events."""
        with self.connect() as connection:
            rows = connection.execute(
                "SELECT seq FROM events WHERE session = ? ORDER BY seq", (self.key_of(session_id),)
            )
            return [seq for (seq,) in rows]

    # -- forgery ----------------------------------------------------------------------------------------------

    def edit_body(self, session_id: str, position: int = 4) -> None:
        """Change the agent's name in one event's bytes."""
        self.run(
            "UPDATE events SET body = CAST(replace(CAST(body AS TEXT), 'reviewer', 'reviewed') AS BLOB) "
            "WHERE seq = ?",
            self.sequence(session_id)[position],
        )

    def rehash(self, session_id: str, key: bytes | None = None) -> None:
        """Compute a session's chain again, and write its row to match."""
        link = link_with(key)
        with self.connect() as connection:
            number, revision = connection.execute(
                "SELECT key, revision FROM sessions WHERE session_id = ?", (session_id,)
            ).fetchone()
            previous, seq, count = genesis(session_id, revision), 0, 0
            rows = connection.execute("SELECT seq, body FROM events WHERE session = ? ORDER BY seq", (number,))
            for seq, body in rows.fetchall():
                previous, count = link(previous, body), count + 1
                connection.execute("UPDATE events SET hash = ? WHERE seq = ?", (previous, seq))
            connection.execute(
                "UPDATE sessions SET keyed_by = ?, head_seq = ?, head_hash = ?, events = ? WHERE key = ?",
                (key_id(key), seq, previous, count, number),
            )

    def rewrite_heads(self, key: bytes | None = None) -> None:
        """Compute the store-wide chain again over the sessions as they are now, without entries for a key."""
        link, previous = link_with(key), ORIGIN
        with self.connect() as connection:
            connection.execute("DELETE FROM heads WHERE kind IN ('keyed', 'rekeyed')")
            entries = read_heads(connection)
            connection.execute("DELETE FROM heads")
            for number, entry in enumerate(entries, 1):
                head, keyed_by = self._head_after(connection, entry.session_id, entry.events)
                values = {**entry.document(), "id": number, "signed_by": key_id(key)}
                values |= {"head": head or entry.head, "keyed_by": keyed_by or ""}
                rewritten = type(entry)(**values)  # type: ignore[arg-type]  # the entry's own fields
                previous = link(previous, rewritten.body())
                connection.execute(
                    "INSERT INTO heads VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        number, rewritten.kind, rewritten.session_id, rewritten.revision, rewritten.events,
                        bytes.fromhex(rewritten.head), rewritten.keyed_by, rewritten.at, rewritten.signed_by,
                        previous,
                    ),
                )  # fmt: skip

    def _head_after(
        self, connection: sqlite3.Connection, session_id: str, events: int
    ) -> tuple[str | None, str | None]:
        row = connection.execute(
            "SELECT hash, s.keyed_by FROM events JOIN sessions AS s ON s.key = session "
            "WHERE s.session_id = ? ORDER BY seq LIMIT 1 OFFSET ?",
            (session_id, events - 1),
        ).fetchone()
        return (None, None) if row is None else (row[0].hex(), row[1])

    def add_head(self, kind: str, session_id: str, *, key: bytes | None = None, fewer: int = 0) -> None:
        """Append an entry about a session to the store-wide chain."""
        with self.connect() as connection:
            last = read_heads(connection)[-1]
            revision, events, head, keyed_by = connection.execute(
                "SELECT revision, events, head_hash, keyed_by FROM sessions WHERE session_id = ?", (session_id,)
            ).fetchone()
            entry = type(last)(
                last.id + 1, kind, session_id, revision, events - fewer, head.hex(), keyed_by, last.at,  # type: ignore[arg-type]
                key_id(key), "",
            )  # fmt: skip
            entry_hash = link_with(key)(bytes.fromhex(last.hash), entry.body())
            connection.execute(
                "INSERT INTO heads VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    entry.id, kind, session_id, revision, entry.events, head, keyed_by, entry.at, entry.signed_by,
                    entry_hash,
                ),
            )  # fmt: skip

    def delete_session(self, session_id: str) -> None:
        """Delete a session with all that was derived from it, and correct the counts."""
        number = self.key_of(session_id)
        for table in ("events", "turns", "blocks", "alerts", "late_events", "session_days"):
            self.run(f"DELETE FROM {table} WHERE session = ?", number)
        self.run("DELETE FROM sessions WHERE key = ?", number)
        self.correct_counts()

    def cut(self, session_id: str, events: int) -> None:
        """Delete a session's events behind the first *events*, and make everything else match."""
        last = self.sequence(session_id)[events - 1]
        self.run("DELETE FROM events WHERE session = ? AND seq > ?", self.key_of(session_id), last)
        self.run(
            "UPDATE sessions SET events = ?, head_seq = ?, head_hash = (SELECT hash FROM events WHERE seq = ?) "
            "WHERE session_id = ?",
            events, last, last, session_id,
        )  # fmt: skip
        self.correct_counts()
        self.rebuild()

    def correct_counts(self) -> None:
        """Let the counts by type be what the events give."""
        self.run(
            "UPDATE event_types SET events = (SELECT count(*) FROM events WHERE events.type = event_types.id)"
        )

    def rebuild(self) -> None:
        """Let the projections be what the events give, with the program's own function."""
        with closing(SqliteStore(self.path)) as store:
            store.rebuild_projections()

    def append(self, events: list[Event], *, key: bytes | None = None) -> None:
        """Record events with the program itself."""
        with closing(SqliteStore(self.path, audit_key=key)) as store:
            store.append(events)


def make_session(session_id: str, turns: int, *, end: bool = True, start: float = START) -> list[Event]:
    """Return the events of a session."""
    events: list[Event] = []
    play(make_tracker(session_id, events.extend), turns, end=end, start=start)
    return events


def make_store_file(folder: Path, *, keyed: bool) -> StoreFile:
    """Record sessions, export the heads, record more."""
    folder.mkdir()
    file = StoreFile(folder / "windowpane.db", folder / "heads.jsonl", folder / "older.db", keyed=keyed)
    key = KEY if keyed else None
    live = make_session(LIVE, 8, end=False)
    SqliteStore(file.path, audit_key=key).close()
    file.run("UPDATE store SET digest_key = zeroblob(0)")  # the digests of the sessions have no key
    with closing(SqliteStore(file.path, audit_key=key, capture=True, redact=str)) as store:
        store.append(make_session(PRUNED, 1, start=1e9))
        assert store.prune(before=1.1e9, fold=lambda _base, _events: b"{}") == 1
        store.append(with_alert(make_session(ENDED, 8)))
    shutil.copy(file.path, file.older_copy)
    with closing(SqliteStore(file.path, audit_key=key, capture=True, redact=str)) as store:
        store.append(make_session(OTHER, 4))
        store.append(live[: len(live) // 2])
        store.save_replay(StoredReplay(ReplayRow("r1", "replay", 1.0, 1, 0), ()))
        store.admit_agent("reviewer")
        store.export_heads(file.heads)
        store.append(live[len(live) // 2 :])
        store.append(make_session(YOUNG, 3, end=False))
    return file


def with_alert(events: list[Event]) -> list[Event]:
    """Return the events with an alert that fired in the middle, numbered in its own stream."""
    half = len(events) // 2
    middle = events[half]
    fired = AlertFired("utilization", "critical", middle.context.turn, 0.95, 0.9, "95% of the window is in use")
    context = replace(middle.context, stream_id="alerts")
    return [*events[:half], middle._replace(context=context, n=0, data=fired), *events[half:]]
