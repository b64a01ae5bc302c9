"""One empty store of each kind for every test of this folder."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.servers.postgres import PostgresServer

from windowpane.store.open import open_reader, open_store
from windowpane.store.reads.reader import Reader
from windowpane.store.store import Store

QUICK = (
    "test_round_trip", "test_retention", "test_agreement",
    "test_a_longer_recording_appends_its_new_events",
    "test_a_recording_that_grows_after_an_upgrade_continues",
    "test_a_changed_past_starts_a_revision_that_counts_only_new_events",
    "test_an_agent_continues_its_session_after_a_note", "test_only_wanted_types_are_searched",
    "test_an_untouched_store_is_intact", "test_a_cut_tail_is_detected_by_the_recorded_head",
    "test_a_keyed_chain_needs_its_key", "test_a_new_key_takes_over_and_the_old_one_still_verifies",
    "test_a_copy_is_the_same_store_and_continues_as_one", "test_a_copy_that_was_killed_continues",
)  # fmt: skip
"""Modules and tests that `make test` runs on PostgreSQL, too; `make test-all` runs every one."""
KINDS = ["sqlite", pytest.param("postgresql", marks=pytest.mark.server)]


@pytest.hookimpl(tryfirst=True)  # before the marked ones are skipped
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave most tests on PostgreSQL to `make test-all`."""
    for item in items:
        if Path(__file__).parent not in item.path.parents or not item.get_closest_marker("server"):
            continue
        if item.path.stem not in QUICK and getattr(item, "originalname", "") not in QUICK:
            item.add_marker(pytest.mark.matrix)


class Stores:
    """One database under a test, opened as often as it needs."""

    def __init__(self, name: str) -> None:
        self.name = name
        """A path or an address, as users name a store."""
        self._opened: list[Reader] = []

    @property
    def is_sqlite(self) -> bool:
        return "://" not in self.name

    def open(self, **options: Any) -> Store:
        """The store opened for writing; it is closed when the test ends."""
        store = open_store(self.name, **options)
        self._opened.append(store)
        return store

    def read(self) -> Reader:
        """The store opened for reading."""
        reader = open_reader(self.name)
        self._opened.append(reader)
        return reader

    def close(self) -> None:
        for reader in self._opened:
            reader.close()


@pytest.fixture(scope="session")
def postgres_store(postgres_server: PostgresServer) -> str:
    """The address of a store, which tests empty instead of creating a database each."""
    url = postgres_server.create_database()
    open_store(url).close()
    return url


def empty(url: str) -> None:
    """Delete every row of a store, and give it another key for digests."""
    import psycopg

    kept = ("store", "schema_versions", "event_months")
    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.execute(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition "
            "AND relnamespace = 'public'::regnamespace"
        )
        tables = ", ".join(name for (name,) in rows if name not in kept)
        connection.execute(f"TRUNCATE {tables} RESTART IDENTITY")
        if connection.execute("SELECT array_agg(first_seq) FROM event_months").fetchone() != ([1],):
            drop_months(connection)
        connection.execute(
            "UPDATE store SET next_seq = 1, writes = 0, flushes = 0, indexed_seq = 0, metric_base = NULL, "
            "digest_key = %s",
            (secrets.token_bytes(32),),
        )


def drop_months(connection: Any) -> None:
    """Let the next writer start in the first month: a test had later ones, or pruned the first."""
    partitions = connection.execute(
        "SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'events'::regclass"
    )
    for (partition,) in partitions.fetchall():
        connection.execute(f"DROP TABLE {partition}")
    connection.execute("TRUNCATE event_months")


@pytest.fixture(params=KINDS)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    """An empty database of each kind."""
    if request.param == "sqlite":
        name = str(tmp_path / "windowpane.db")
    else:
        name = request.getfixturevalue("postgres_store")
        empty(name)
    opened = Stores(name)
    yield opened
    opened.close()


@pytest.fixture
def store(stores: Stores) -> Store:
    """An empty store of each kind."""
    return stores.open()
