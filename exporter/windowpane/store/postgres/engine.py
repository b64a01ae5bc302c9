"""The engine of a store in a PostgreSQL database.

Every write takes one advisory lock until its transaction ends, so event numbers appear in order and readers may
follow them. The lock belongs to the connection: it ends with the process that holds it.

Durability: a commit is as durable as `synchronous_commit` of the server makes it, by default at once. `sync`
commits once with `synchronous_commit = on`, after which everything committed earlier is on the disk as well.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Final, cast
from zlib import crc32

import psycopg

from windowpane.core.store_names import StoreUrl
from windowpane.exceptions import OlderStoreError, StoreError, UnconfirmedWriteError
from windowpane.store import migrations
from windowpane.store.database import Database
from windowpane.store.postgres import months
from windowpane.store.postgres.connections import ReaderPool, connect
from windowpane.store.postgres.database import PostgresDatabase
from windowpane.store.postgres.errors import explain, reporting
from windowpane.store.postgres.write_count import ANNOUNCE, WriteCount
from windowpane.store.sqlite.engine import BUSY_SECONDS

MONTH_SECONDS: Final = 60.0
"""The longest that a process continues the partition of a month after its end."""
SIZE_SECONDS: Final = 60.0
"""The time for which a measured size per event is used."""
LOCK: Final = 8_747_014_117_163_520_353
"""The advisory lock of writers, in each database."""
CLAIMS: Final = 874_701_411
"""The first number of the advisory locks of sessions; the second one is a checksum of the session's id."""
RECLAIM_MILLISECONDS: Final = 2_000

_PLANS: Final = "SET LOCAL enable_seqscan = off"
"""Writers look rows up by keys: a plan prepared while a table was small must not read all of a large one."""
_WAIT: Final = f"SELECT pg_advisory_xact_lock({LOCK})"
_DURABLE: Final = (
    "SELECT set_config('synchronous_commit', 'on', TRUE) "
    "WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')"
)
_CLAIM: Final = "SELECT pg_try_advisory_lock(CAST(? AS integer), CAST(? AS integer))"
_RELEASE: Final = "SELECT pg_advisory_unlock(CAST(? AS integer), CAST(? AS integer))"
_SIZE: Final = """
    SELECT coalesce(sum(pg_total_relation_size(relid)), 0), coalesce(sum(n_dead_tup), 0)
    FROM pg_stat_user_tables WHERE relid IN (
        SELECT 'events'::regclass UNION SELECT inhrelid FROM pg_inherits WHERE inhparent = 'events'::regclass
    ) OR relname IN ('sessions', 'turns', 'blocks', 'alerts', 'contents', 'events_text', 'contents_text')"""
_DEAD: Final = """
    SELECT coalesce(sum(n_dead_tup), 0) FROM pg_stat_user_tables
    WHERE relid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'events'::regclass)"""
_EVENTS: Final = "SELECT coalesce(sum(events), 0) FROM event_types"


class PostgresEngine:
    """Connections to one database."""

    def __init__(self, address: StoreUrl, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self._address = address
        self._busy_seconds = busy_seconds
        self._pool = ReaderPool(address, busy_seconds=busy_seconds)
        self._write_count = WriteCount(address)
        self._was_opened = False
        self._month_checked_at = float("-inf")
        self._bytes_per_event = 0.0
        self._measured_at = float("-inf")

    @property
    def address(self) -> StoreUrl:
        """The URL; as text without its password."""
        return self._address

    def reporting(self) -> AbstractContextManager[None]:
        """Turn errors of psycopg into a `StoreError` that names the store and what to do."""
        return reporting(self._address)

    # -- reading ----------------------------------------------------------------------------------------------

    def identity(self) -> object:
        """Return the key of the store's digests, which another database does not have."""
        with self.lend() as database:
            return database.execute("SELECT digest_key FROM store").fetchone()[0]

    def check(self) -> None:
        """Raise `StoreError` for a database without a store, or with one of another release."""
        with self.lend() as database:
            version = migrations.stored_version(database, self._address)
        if version is None:
            raise StoreError(
                f"{self._address}: no store here; import a session or start an agent with this store first"
            )
        if version < migrations.SCHEMA_VERSION:
            raise OlderStoreError(self._address)

    def lend(self) -> AbstractContextManager[PostgresDatabase]:
        """Lend a connection inside a read transaction."""
        return self._pool.lend()

    def stored_bytes(self, database: Database) -> int:
        """Return the bytes of the tables, less the share of deleted events whose space is not reused yet.

        The size of an event is measured now and then, so that each deleted session lowers the result at once.
        """
        events = int(database.execute(_EVENTS).fetchone()[0])
        if time.monotonic() - self._measured_at > SIZE_SECONDS or not self._bytes_per_event:
            size, _ = database.execute(_SIZE).fetchone()
            (dead,) = database.execute(_DEAD).fetchone()
            self._bytes_per_event = size / max(events + dead, 1)
            self._measured_at = time.monotonic()
        return round(events * self._bytes_per_event)

    def announced_version(self) -> int | None:
        """Return the number of writes that the server has announced; None where it has to be read."""
        return self._write_count.latest()

    def close_readers(self) -> None:
        """Close the idle connections and the one that listens."""
        self._pool.close()
        self._write_count.close()

    # -- writing ----------------------------------------------------------------------------------------------

    def open_writer(self) -> PostgresDatabase:
        """Return a connection to a store that is created or migrated, while running agents go on writing.

        A process that has opened the store once continues over a further connection also where a newer release
        has migrated it meanwhile, as it does while its connection lasts.
        """
        database = connect(self._address, busy_seconds=self._busy_seconds)
        try:
            if not self._was_opened:
                migrations.bring_up_to_date(database, self._address, self.transaction)
        except BaseException:
            database.close()
            raise
        self._was_opened = True
        return database

    def is_usable(self, database: Database) -> bool:
        """Return False where the connection was lost."""
        return _own(database).is_alive

    def check_writer(self, database: Database) -> None:
        """Do nothing: a connection is to one database as long as it lives."""

    @contextmanager
    def transaction(self, database: Database, *, durable: bool = False) -> Iterator[Database]:
        """Run all of the block's statements or none, excluding every other writer from the start."""
        try:
            _own(database).start_transaction(_PLANS, _WAIT, *([_DURABLE] if durable else []))
            self._keep_month(database)
            yield database
            _own(database).finish()
        except BaseException:
            self._month_checked_at = float("-inf")
            with suppress(psycopg.Error):
                _own(database).roll_back()
            raise
        self._commit(database)

    def sync(self, database: Database) -> None:
        """Commit once synchronously, after which all earlier commits are on the disk too."""
        with self.transaction(database, durable=True):
            database.execute("UPDATE store SET flushes = flushes + 1")

    def claim_session(self, database: Database, session_id: str) -> bool:
        """Take the advisory lock of a session; a pooler shares connections, so nothing is locked behind it."""
        if _own(database).is_pooled:
            return True
        return bool(database.execute(_CLAIM, _claim_of(session_id)).fetchone()[0])

    def release_session(self, database: Database, session_id: str) -> None:
        """Release the advisory lock of a session."""
        if not _own(database).is_pooled:
            database.execute(_RELEASE, _claim_of(session_id))

    def make_room(self, database: Database, last_seq: int) -> None:
        """Create the partition that these numbers need."""
        months.make_room(database, last_seq)

    def reclaim(self, database: Database) -> None:
        """Drop the partitions of months that retention has emptied; tried again at the next pruning if in use."""
        with suppress(psycopg.errors.LockNotAvailable), self.transaction(database):
            database.execute(f"SET LOCAL lock_timeout = {RECLAIM_MILLISECONDS}")
            months.drop_empty(database)

    # -- internals --------------------------------------------------------------------------------------------

    def _commit(self, database: Database) -> None:
        try:
            database.execute(f"{ANNOUNCE}; COMMIT")
        except psycopg.OperationalError as error:
            self._month_checked_at = float("-inf")  # it may have been opened in this transaction
            if _own(database).is_alive:
                raise
            raise UnconfirmedWriteError(explain(self._address, error)) from error

    def _keep_month(self, database: Database) -> None:
        if time.monotonic() - self._month_checked_at < MONTH_SECONDS:
            return
        if database.execute("SELECT to_regclass('event_months') IS NOT NULL").fetchone()[0]:
            months.open_month(database, months.current_month(database))
            self._month_checked_at = time.monotonic()


def _own(database: Database) -> PostgresDatabase:
    return cast("PostgresDatabase", database)


def _claim_of(session_id: str) -> tuple[int, int]:
    """Return the two numbers of a session's advisory lock."""
    return CLAIMS, crc32(session_id.encode()) - 2**31
