"""Copying a store into another database, of the same kind or another, with its chain and its numbers as they are.

Events never change, so they are copied first, in their order, in batches that each are one transaction: a copy
that was interrupted continues after the last event it holds. What changes with every write (sessions, turns,
heads, ...) is copied after them, all of it from one snapshot of the source, and again whenever the copy
continues. Writers of the source are not stopped: what they write after that snapshot is not in the copy, and a
further copy adds it. The table `copied_from` of the target names the source and where the copy left the target,
so that a target that was written to by others is recognized and refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any, Final, NamedTuple, NoReturn

from windowpane.exceptions import StoreError
from windowpane.store.audit import verification as audit
from windowpane.store.database import Database
from windowpane.store.reads.reader import Reader
from windowpane.store.records import BrokenLink
from windowpane.store.search import content as content_search
from windowpane.store.search import content_index
from windowpane.store.search import events as search
from windowpane.store.store import Store
from windowpane.store.tables import (
    AGENTS,
    CONTENT_NUMBERS,
    CONTENT_QUEUE,
    CONTENTS,
    COPIED_FROM,
    DAILY,
    ENDPOINTS,
    EVENT_TYPES,
    EVENTS,
    HEADS,
    PROJECTIONS,
    PRUNED_DAYS,
    QUOTAS,
    READ_FILES,
    RECEIVED_STREAMS,
    REPLAY_RUNS,
    REPLAYS,
    SCHEMA_VERSIONS,
    SESSIONS,
    STORE,
    Table,
)  # fmt: skip

BATCH: Final = 5_000
"""Rows of one transaction."""
CONTENT_BATCH: Final = 200
"""Captured texts of one transaction; a text may have a megabyte."""

_STATE: Final = (
    "SELECT (SELECT coalesce(max(seq), 0) FROM events), (SELECT coalesce(max(id), 0) FROM heads) FROM store"
)
_CHAINS: Final = "SELECT key, events, head_seq, head_hash FROM sessions ORDER BY key"
_HEADS: Final = "SELECT id, head, hash FROM heads ORDER BY id"
_STORED: Final = "SELECT session, count(*) FROM events GROUP BY session"


_REPLACED: Final = (
    EVENT_TYPES, SESSIONS, *PROJECTIONS, DAILY, PRUNED_DAYS, HEADS, RECEIVED_STREAMS,
)  # fmt: skip
"""Tables that the target holds as the source has them."""
_ADDED: Final = (REPLAYS, REPLAY_RUNS, AGENTS, QUOTAS, ENDPOINTS, READ_FILES)
"""Tables whose rows are added to those that the target has."""
_ROWS: Final = {DAILY.name: "pruned = 1"}
"""Condition on the rows of a table that are copied; the database derives the others."""
COPIED_TABLES: Final = (EVENTS, CONTENTS, STORE, *_REPLACED, *_ADDED)
OWN_TABLES: Final = (CONTENT_QUEUE, CONTENT_NUMBERS, SCHEMA_VERSIONS, COPIED_FROM)
"""Tables that each store has for itself, next to the indexes for search, which are made from what was copied."""


class Progress(NamedTuple):
    """A moment of a copy."""

    part: str
    """`events`, `texts`, the name of a table, `indexing`, `search index`, `comparison` or `audit chain`."""
    done: int
    total: int | None
    """None where it is not counted beforehand."""


@dataclass(frozen=True, slots=True)
class CopyOutcome:
    """The result of a copy that was completed and compared with its source."""

    events: int
    """Events copied by this run."""
    sessions: int
    """Sessions in the copy, earlier revisions included."""
    texts: int
    """Captured texts copied by this run."""
    later_events: int
    """Events that the source received during the last part of the copy; they are not in it."""
    broken: tuple[BrokenLink, ...]
    """Breaks of the audit chain that the copy has because the source has them, too."""


OnProgress = Callable[[Progress], object]
_Read = Callable[..., "list[tuple[Any, ...]]"]
"""Runs a statement with its values on the source."""


def copy_store(source: Reader, target: Store, *, on_progress: OnProgress = lambda _progress: None) -> CopyOutcome:
    """Copy everything of *source* into *target*, or continue an interrupted copy, and compare both.

    Raises `StoreError` where the target holds anything else, and where the copy differs from its source.
    """
    with source.engine.reporting(), target.engine.reporting():
        database = target.engine.open_writer()
        try:
            return _Copy(source, target, database, on_progress).run()
        finally:
            database.close()


class _Copy:
    """One run of a copy.

    It writes to the target below the store's own writer, which would sign and number what it stores itself.
    """

    def __init__(self, source: Reader, target: Store, database: Database, on_progress: OnProgress) -> None:
        self._source = source
        self._target = target
        self._database = database
        self._report = on_progress
        (self._digest_key,) = _rows(source, "SELECT digest_key FROM store")[0]
        self._identity = sha256(self._digest_key).hexdigest()[:32]

    def run(self) -> CopyOutcome:
        """Copy, compare and verify."""
        self._claim()
        events = self._copy_events(partial(_rows, self._source))
        with self._source.engine.lend() as snapshot:

            def read(sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
                return snapshot.execute(sql, values).fetchall()

            events += self._copy_events(read)
            self._delete_pruned(read)
            texts = self._copy_texts(read)
            self._copy_tables(read)
            ((next_seq, metric_base),) = read("SELECT next_seq, metric_base FROM store")
            self._finish(next_seq, metric_base)
            self._index()
            self._compare(read)
            broken = self._verify(snapshot)
        ((later,),) = _rows(self._source, "SELECT next_seq FROM store")
        ((sessions,),) = _rows(self._target, "SELECT count(*) FROM sessions")
        return CopyOutcome(events, sessions, texts, later - next_seq, broken)

    # -- the target -------------------------------------------------------------------------------------------

    def _claim(self) -> None:
        """Take an empty target, or one that an earlier run left as it is now. Raises `StoreError`."""
        with self._target.engine.transaction(self._database):
            row = self._database.execute("SELECT source FROM copied_from").fetchone()
            if row is None:
                if tuple(self._database.execute(_STATE).fetchone()) != (0, 0):
                    raise StoreError(
                        f"{self._target.name}: holds other events; name a store that is empty or new"
                    )
                self._database.execute("INSERT INTO copied_from VALUES (?, 0, 0, 0)", (self._identity,))
                self._database.execute("UPDATE store SET digest_key = ?", (self._digest_key,))
            elif row[0] != self._identity:
                raise StoreError(
                    f"{self._target.name}: is a copy of another store; name a store that is empty or new"
                )
        with self._writing():
            self._database.execute("UPDATE copied_from SET finished = 0")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Run the block in one transaction of the target. Raises `StoreError` where others wrote events to it."""
        with self._target.engine.transaction(self._database):
            recorded = self._database.execute("SELECT last_seq, heads FROM copied_from").fetchone()
            if self._database.execute(_STATE).fetchone() != recorded:
                raise StoreError(
                    f"{self._target.name}: events were written to it since the last copy, which a further copy "
                    "would replace; copy into a new store, or keep using this one"
                )
            yield
            state = self._database.execute(_STATE).fetchone()
            self._database.execute("UPDATE copied_from SET last_seq = ?, heads = ?", state)
            self._database.execute("UPDATE store SET writes = writes + 1")

    # -- parts ------------------------------------------------------------------------------------------------

    def _copy_events(self, read: _Read) -> int:
        """Copy the events after the last one of the target; return how many."""
        (last,) = _rows(self._target, "SELECT coalesce(max(seq), 0) FROM events")[0]
        (end,) = read("SELECT next_seq - 1 FROM store")[0]
        copied = 0
        following = f"SELECT {_list(EVENTS.names)} FROM events WHERE seq > ? ORDER BY seq LIMIT ?"  # noqa: S608
        while rows := read(following, (last, BATCH)):
            last = rows[-1][0]
            with self._writing():
                self._target.engine.make_room(self._database, last)
                _insert(self._database, EVENTS, rows)
            copied += len(rows)
            self._report(Progress("events", last, end))
        return copied

    def _delete_pruned(self, read: _Read) -> None:
        """Delete the events of sessions that the source has deleted since they were copied."""
        keys = {key for (key,) in read("SELECT key FROM sessions")}
        for session, _events in _rows(self._target, _STORED):
            if session not in keys:
                with self._writing():
                    search.remove(self._database, session)
                    self._database.execute("DELETE FROM events WHERE session = ?", (session,))

    def _copy_texts(self, read: _Read) -> int:
        """Copy the captured texts that the target lacks, and delete those that the source has deleted."""
        wanted = {digest for (digest,) in read("SELECT digest FROM contents")}
        held = {digest for (digest,) in _rows(self._target, "SELECT digest FROM contents")}
        missing = sorted(wanted - held)
        for start in range(0, len(missing), CONTENT_BATCH):
            batch = missing[start : start + CONTENT_BATCH]
            marks = ", ".join("?" * len(batch))
            rows = read(f"SELECT {_list(CONTENTS.names)} FROM contents WHERE digest IN ({marks})", batch)  # noqa: S608
            with self._writing():
                _insert(self._database, CONTENTS, rows)
                _insert(self._database, CONTENT_QUEUE, [(digest,) for digest in batch])
            self._report(Progress("texts", start + len(batch), len(missing)))
        for digest in held - wanted:
            with self._writing():
                content_search.delete(self._database, digest)
        return len(missing)

    def _copy_tables(self, read: _Read) -> None:
        """Copy what changes with every write, in place of what an earlier run copied."""
        with self._writing():
            for table in _REPLACED:
                self._database.execute(f"DELETE FROM {table.name}")  # noqa: S608  # our tables
        for table in _REPLACED:
            self._copy_table(read, table)
        for table in _ADDED:
            self._copy_table(read, table, on_conflict=" ON CONFLICT DO NOTHING")

    def _copy_table(self, read: _Read, table: Table, *, on_conflict: str = "") -> None:
        key = ", ".join(table.key)
        selected = f"SELECT {_list(table.names)} FROM {table.name} WHERE {_ROWS.get(table.name, 'TRUE')}"  # noqa: S608
        following = f"{selected} AND ({key}) > ({', '.join('?' * len(table.key))}) ORDER BY {key} LIMIT ?"
        rows = read(f"{selected} ORDER BY {key} LIMIT ?", (BATCH,))
        done = 0
        while rows:
            with self._writing():
                _insert(self._database, table, rows, on_conflict=on_conflict)
            done += len(rows)
            self._report(Progress(table.name, done, None))
            last = dict(zip(table.names, rows[-1], strict=True))
            rows = read(following, (*(last[name] for name in table.key), BATCH))

    def _finish(self, next_seq: int, metric_base: bytes | None) -> None:
        with self._writing():
            self._database.execute("UPDATE store SET next_seq = ?, metric_base = ?", (next_seq, metric_base))
            for table in _REPLACED:
                if table.numbered:
                    for statement in self._database.dialect.continue_numbers(table.name, table.key[0]):
                        self._database.execute(statement)
            self._database.execute("UPDATE copied_from SET finished = 1")
        self._target.engine.sync(self._database)

    def _index(self) -> None:
        """Make the indexes for search over what was copied; empty ones are built at the end."""
        dialect = self._database.dialect
        ((is_new,),) = _rows(self._target, "SELECT indexed_seq = 0 FROM store")
        if is_new:
            self._run(dialect.before_filling)
        self._fill_indexes()
        self._report(Progress("search index", 0, None))
        self._run(dialect.after_filling)

    def _fill_indexes(self) -> None:
        indexed = 0
        while True:
            with self._writing():
                batch = search.index(self._database) + content_index.index(self._database)
            if not batch:
                return
            indexed += batch
            self._report(Progress("indexing", indexed, None))

    def _run(self, statements: Iterable[str]) -> None:
        with self._writing():
            for statement in statements:
                self._database.execute(statement)

    # -- comparison -------------------------------------------------------------------------------------------

    def _compare(self, read: _Read) -> None:
        """Raise `StoreError` where rows or the heads of the chains differ from those of the source."""
        self._report(Progress("comparison", 0, None))
        for table in (EVENTS, CONTENTS, *_REPLACED):
            statement = f"SELECT count(*) FROM {table.name} WHERE {_ROWS.get(table.name, 'TRUE')}"  # noqa: S608
            (expected,), (copied,) = read(statement)[0], _rows(self._target, statement)[0]
            if expected != copied:
                self._differ(f"{table.name}: {expected} rows in the source, {copied} in the copy")
        for what, statement in (("chains of the sessions", _CHAINS), ("store-wide chain", _HEADS)):
            if read(statement) != _rows(self._target, statement):
                self._differ(f"the {what} end otherwise than in the source")

    def _verify(self, snapshot: Database) -> tuple[BrokenLink, ...]:
        """Recompute the chains of the copy; return the breaks that it has from its source."""
        self._report(Progress("audit chain", 0, None))
        broken = self._target.verify(projections=False).broken
        if broken and set(broken) != set(
            audit.verify(snapshot, keys=self._target.audit_keys, projections=False).broken
        ):
            self._differ(f"the chain of session {broken[0].session_id} is broken: {broken[0].problem}")
        return broken

    def _differ(self, difference: str) -> NoReturn:
        raise StoreError(f"{self._target.name}: differs from {self._source.name} after the copy: {difference}")


def _rows(store: Reader, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    with store.engine.lend() as database:
        return database.execute(sql, values).fetchall()


def _list(columns: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in columns)  # one of them is a reserved word


def _insert(database: Database, table: Table, rows: Sequence[Sequence[Any]], *, on_conflict: str = "") -> None:
    marks = ", ".join("?" * len(table.columns))
    insert = f"INSERT INTO {table.name} ({_list(table.names)}) VALUES ({marks}){on_conflict}"  # noqa: S608  # our tables
    database.executemany(insert, rows)
