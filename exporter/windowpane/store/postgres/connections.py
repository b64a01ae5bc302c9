"""Connections to a PostgreSQL server: opening one, lending those of readers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import psycopg
from psycopg import conninfo

from windowpane.core.store_names import StoreUrl
from windowpane.exceptions import StoreError
from windowpane.store.idle_connections import IdleConnections
from windowpane.store.postgres.database import PostgresDatabase
from windowpane.store.postgres.errors import reporting
from windowpane.store.postgres.values import adapt

MINIMUM_VERSION: Final = 140_000
CONNECT_SECONDS: Final = 5
LOST_SECONDS: Final = 60
"""A writer that stops in the middle of a transaction, or its host, keeps others waiting at most so long."""
_DEFAULTS: Final[dict[str, Any]] = {
    "connect_timeout": CONNECT_SECONDS,
    "application_name": "windowpane",
    "client_encoding": "UTF8",
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": LOST_SECONDS * 1_000,
}
"""Settings of a connection that the URL does not state."""
_SNAPSHOT: Final = "ISOLATION LEVEL REPEATABLE READ READ ONLY"


def connect(address: StoreUrl, *, busy_seconds: float) -> PostgresDatabase:
    """Open a connection. Raises `StoreError` for a server that is too old, and psycopg's errors."""
    try:
        given = conninfo.conninfo_to_dict(address.url)
    except psycopg.ProgrammingError:  # its text may repeat a part of the password
        problem = "cannot be read as a URL; expected postgresql://user@host/database, other characters quoted"
        raise StoreError(f"{address}: {problem}") from None
    settings = {name: value for name, value in _DEFAULTS.items() if name not in given}
    connection = psycopg.connect(address.url, autocommit=True, **settings)
    try:
        _check_server(address, connection)
        adapt(connection)
        return _prepared(connection, busy_seconds)
    except BaseException:
        connection.close()
        raise


def _prepared(connection: psycopg.Connection[Any], busy_seconds: float) -> PostgresDatabase:
    """Return the connection with its settings.

    A pooler may give each transaction another connection to the server: nothing is prepared and set there for
    longer. It is recognized by the number that it gives its clients in place of that of the server's process.
    """
    settings = (
        f"lock_timeout = {max(1, round(busy_seconds * 1_000))}",
        f"idle_in_transaction_session_timeout = {LOST_SECONDS * 1_000}",
        "client_min_messages = warning",
        "random_page_cost = 1.1",  # by default 4, as for disks with heads: tables would be read whole
        "jit = off",  # to compile a statement of a page takes seconds, to run it milliseconds
    )
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    if row is not None and row[0] != connection.info.backend_pid:
        connection.prepare_threshold = None
        return PostgresDatabase(connection, local_settings=[f"SET LOCAL {setting}" for setting in settings])
    connection.prepare_threshold = 1
    connection.execute("; ".join(f"SET {setting}" for setting in settings).encode())
    return PostgresDatabase(connection)


def _check_server(address: StoreUrl, connection: psycopg.Connection[Any]) -> None:
    version = connection.info.server_version
    if version < MINIMUM_VERSION:
        minimum = MINIMUM_VERSION // 10_000
        raise StoreError(f"{address}: the server is PostgreSQL {version // 10_000}; expected {minimum} or newer")
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise StoreError(
            f"{address}: the encoding of the database is {encoding}; expected UTF8 (`createdb -E UTF8`)"
        )


class ReaderPool:
    """Reading connections, each lent to one thread at a time."""

    def __init__(self, address: StoreUrl, *, busy_seconds: float) -> None:
        self._address = address
        self._busy_seconds = busy_seconds
        self._idle = IdleConnections[PostgresDatabase]()

    @contextmanager
    def lend(self) -> Iterator[PostgresDatabase]:
        """Lend a connection inside a read transaction for the time of one read."""
        with reporting(self._address):
            database = self._reading()
            try:
                yield database
                database.execute("ROLLBACK")
            except BaseException:
                database.close()
                raise
            self._idle.give_back(database)

    def close(self) -> None:
        """Close the idle connections."""
        self._idle.close()

    def _reading(self) -> PostgresDatabase:
        """Return a connection with a read transaction; idle ones that the server has closed are discarded."""
        while (idle := self._idle.take()) is not None:
            with suppress(psycopg.OperationalError):
                idle.start_transaction(mode=_SNAPSHOT)
                return idle
            idle.close()
        database = connect(self._address, busy_seconds=self._busy_seconds)
        database.start_transaction(mode=_SNAPSHOT)
        return database
