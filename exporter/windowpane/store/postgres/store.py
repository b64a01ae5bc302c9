"""Stores in a PostgreSQL database, which many hosts write to and read from."""

from __future__ import annotations

from typing import Unpack

from windowpane.core.store_names import StoreUrl, parse_store_name
from windowpane.exceptions import ConfigurationError
from windowpane.store.postgres.engine import PostgresEngine
from windowpane.store.reads.reader import Reader
from windowpane.store.sqlite.engine import BUSY_SECONDS
from windowpane.store.store import Store, StoreOptions


class PostgresStore(Store):
    """A `Store` in a database, whose tables are created when missing and migrated when old.

    A write waits at most *busy_seconds* for another process's, then raises `StoreBusyError`.
    """

    def __init__(
        self, url: str | StoreUrl, *, busy_seconds: float = BUSY_SECONDS, **options: Unpack[StoreOptions]
    ) -> None:
        super().__init__(PostgresEngine(_address(url), busy_seconds=busy_seconds), **options)


class PostgresReader(Reader):
    """A `Reader` of a database. Raises `StoreError` where there is no store."""

    def __init__(self, url: str | StoreUrl, *, busy_seconds: float = BUSY_SECONDS) -> None:
        engine = PostgresEngine(_address(url), busy_seconds=busy_seconds)
        try:
            engine.check()
        except BaseException:
            engine.close_readers()
            raise
        super().__init__(engine)


def _address(url: str | StoreUrl) -> StoreUrl:
    name = parse_store_name(url) if isinstance(url, str) else url
    if isinstance(name, StoreUrl):
        return name
    raise ConfigurationError("store", f"{name} is a file", expected="postgresql://user@host/database")
