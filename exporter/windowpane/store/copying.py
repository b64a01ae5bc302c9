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

BATCH: Final = 5_000
"""Rows of one transaction."""
CONTENT_BATCH: Final = 200
"""Captured texts of one transaction; a text may have a megabyte."""

_CREATE: Final = (
    "CREATE TABLE IF NOT EXISTS copied_from ("
    "source TEXT PRIMARY KEY, last_seq BIGINT NOT NULL, heads BIGINT NOT NULL, finished BIGINT NOT NULL)"
)
_STATE: Final = (
    "SELECT (SELECT coalesce(max(seq), 0) FROM events), (SELECT coalesce(max(id), 0) FROM heads) FROM store"
)
_EVENT_COLUMNS: Final = ("seq", "session", "turn", "type", "at", "body", "hash")
_TEXT_COLUMNS: Final = ("digest", "chars", "preview", "body")
_CHAINS: Final = "SELECT key, events, head_seq, head_hash FROM sessions ORDER BY key"
_HEADS: Final = "SELECT id, head, hash FROM heads ORDER BY id"
_STORED: Final = "SELECT session, count(*) FROM events GROUP BY session"


class _Table(NamedTuple):
    name: str
    key: tuple[str, ...]
    """Columns of its primary key, which order the copy."""
    rows: str = "TRUE"
    """Condition on the rows that are copied; the database derives the others."""


_REPLACED: Final = (
    _Table("event_types", ("id",)),
    _Table("sessions", ("key",)),
    _Table("turns", ("session", "turn")),
    _Table("blocks", ("session", "block_id")),
    _Table("alerts", ("session", "alert", "crossing_turn")),
    _Table("late_events", ("session", "turn", "seq")),
    _Table("session_days", ("session", "day", "agent", "model", "release")),
    _Table("call_ids", ("session", "call")),
    _Table("daily", ("day", "agent", "model", "release", "project", "pruned"), "pruned = 1"),
    _Table("pruned_days", ("number", "day", "agent", "model", "release")),
    _Table("heads", ("id",)),
    _Table("received_streams", ("stream_id", "session_id")),
)
"""Tables that the target holds as the source has them."""
_ADDED: Final = (
    _Table("replays", ("id",)),
    _Table("replay_runs", ("replay", "number")),
    _Table("agents", ("name",)),
    _Table("endpoints", ("machine", "host", "port")),
    _Table("read_files", ("path",)),
)
"""Tables whose rows are added to those that the target has."""
_NUMBERED: Final = (("sessions", "key"), ("heads", "id"), ("event_types", "id"))
"""Tables and their columns that the database numbers itself where it may."""
COPIED_TABLES: Final = ("events", "contents", "store", *(table.name for table in (*_REPLACED, *_ADDED)))
DERIVED_TABLES: Final = (
    "content_numbers", "content_queue", "contents_text", "events_text", "event_months", "stale_sessions",
    "migrations", "copied_from",
)  # fmt: skip
"""Tables that each store has for itself; its indexes for search are made from the copied events and texts."""


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
            self._database.execute(_CREATE)
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
        following = f"SELECT {_list(_EVENT_COLUMNS)} FROM events WHERE seq > ? ORDER BY seq LIMIT ?"  # noqa: S608
        while rows := read(following, (last, BATCH)):
            last = rows[-1][0]
            with self._writing():
                self._target.engine.make_room(self._database, last)
                _insert(self._database, "events", _EVENT_COLUMNS, rows)
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
            rows = read(f"SELECT {_list(_TEXT_COLUMNS)} FROM contents WHERE digest IN ({marks})", batch)  # noqa: S608
            with self._writing():
                _insert(self._database, "contents", _TEXT_COLUMNS, rows)
                _insert(self._database, "content_queue", ("digest",), [(digest,) for digest in batch])
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

    def _copy_table(self, read: _Read, table: _Table, *, on_conflict: str = "") -> None:
        columns = self._columns(table.name)
        key = ", ".join(table.key)
        selected = f"SELECT {_list(columns)} FROM {table.name} WHERE {table.rows}"  # noqa: S608  # our tables
        following = f"{selected} AND ({key}) > ({', '.join('?' * len(table.key))}) ORDER BY {key} LIMIT ?"
        rows = read(f"{selected} ORDER BY {key} LIMIT ?", (BATCH,))
        done = 0
        while rows:
            with self._writing():
                _insert(self._database, table.name, columns, rows, on_conflict=on_conflict)
            done += len(rows)
            self._report(Progress(table.name, done, None))
            last = dict(zip(columns, rows[-1], strict=True))
            rows = read(following, (*(last[name] for name in table.key), BATCH))

    def _columns(self, table: str) -> list[str]:
        """Return the columns of a table, which both databases have."""
        described = self._database.execute(f"SELECT * FROM {table} LIMIT 0").description  # noqa: S608  # our tables
        return [column[0] for column in described]

    def _finish(self, next_seq: int, metric_base: bytes | None) -> None:
        with self._writing():
            self._database.execute("UPDATE store SET next_seq = ?, metric_base = ?", (next_seq, metric_base))
            for table, column in _NUMBERED:
                for statement in self._database.dialect.continue_numbers(table, column):
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
        for table in ("events", "contents", *(table.name for table in _REPLACED)):
            statement = f"SELECT count(*) FROM {table}"  # noqa: S608  # our tables
            condition = next((f" WHERE {one.rows}" for one in _REPLACED if one.name == table), "")
            (expected,), (copied,) = read(statement + condition)[0], _rows(self._target, statement + condition)[0]
            if expected != copied:
                self._differ(f"{table}: {expected} rows in the source, {copied} in the copy")
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


def _insert(
    database: Database,
    table: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    on_conflict: str = "",
) -> None:
    marks = ", ".join("?" * len(columns))
    database.executemany(f"INSERT INTO {table} ({_list(columns)}) VALUES ({marks}){on_conflict}", rows)  # noqa: S608
