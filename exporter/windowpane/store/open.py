"""Opening a store by its name: a file's path, or the URL of a database."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from windowpane.core.store_names import DATABASES, EXPECTED_URL, StoreName, StoreUrl, parse_store_name
from windowpane.core.version import install_command
from windowpane.exceptions import ConfigurationError
from windowpane.store.embedded import SqliteReader, SqliteStore
from windowpane.store.reads.reader import Reader
from windowpane.store.sqlite.engine import BUSY_SECONDS
from windowpane.store.store import Store, StoreOptions


def open_store(
    name: str | StoreName, *, busy_seconds: float = BUSY_SECONDS, **options: Unpack[StoreOptions]
) -> Store:
    """Open a store for writing, created when missing. Raises `StoreError`; for the options see `Store`.

    A write waits at most *busy_seconds* for that of another process.
    """
    address = _database(name)
    if not isinstance(address, StoreUrl):
        return SqliteStore(address, busy_seconds=busy_seconds, **options)
    _require_driver()
    from windowpane.store.postgres.store import PostgresStore

    return PostgresStore(address, busy_seconds=busy_seconds, **options)


def open_reader(name: str | StoreName, *, busy_seconds: float = BUSY_SECONDS) -> Reader:
    """Open a store that is never written to. Raises `StoreError` where there is none."""
    address = _database(name)
    if not isinstance(address, StoreUrl):
        return SqliteReader(address, busy_seconds=busy_seconds)
    _require_driver()
    from windowpane.store.postgres.store import PostgresReader

    return PostgresReader(address, busy_seconds=busy_seconds)


def store_exists(name: StoreName) -> bool:
    """Return False where there is no file of that name; whether a database has a store is known once it opens."""
    return isinstance(name, StoreUrl) or name.exists()


def _require_driver() -> None:
    """Raise `ConfigurationError` where PostgreSQL's driver is not installed or lacks its library."""
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        problem = f"a PostgreSQL store needs psycopg ({error})"
        raise ConfigurationError("store", problem, expected=f"`{install_command('postgres')}`") from error


def _database(name: str | StoreName) -> str | Path | StoreUrl:
    """Return a name that can be opened here. Raises `ConfigurationError`."""
    parsed = parse_store_name(name) if isinstance(name, str) else name
    if isinstance(parsed, StoreUrl) and parsed.scheme not in DATABASES:
        raise ConfigurationError(
            "store", f"{parsed} receives events and cannot be opened as a store", expected=EXPECTED_URL
        )
    return parsed
