"""Stores behind PgBouncer in transaction mode, where each transaction may be over another connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest
from tests.servers import pgbouncer
from tests.servers.postgres import PostgresServer

from windowpane.store.filters import EventFilter
from windowpane.store.open import open_reader, open_store
from windowpane.store.search.content import ContentFilter


@pytest.fixture
def url(postgres_server: PostgresServer, postgres_url: str) -> Iterator[str]:
    """The address of an empty database through the pooler."""
    if pgbouncer.program() is None:
        pytest.skip("PgBouncer is not installed (as root on Debian, `make test` installs it)")
    with pgbouncer.pooled(postgres_server, postgres_url) as pooled_url:
        yield pooled_url


def test_two_writers_and_readers_behind_a_pooler(url: str, postgres_url: str, make_session) -> None:
    with (
        closing(open_store(url, capture=True, redact=str)) as first,
        closing(open_store(url)) as second,
        closing(open_reader(url)) as reader,
    ):
        for number in range(4):
            for store in (first, second):
                version = reader.version()
                store.append(make_session(f"s{number}-{store is first}", turns=3))
                assert reader.has_changed_since(version)
        while first.index_text():
            pass
        assert first.claim_sessions({"s0-True": "one"}) == second.claim_sessions({"s0-True": "two"}) == []
        first.release_sessions(["s0-True"])
        first.flush()
        assert len(reader.sessions()) == 8
        assert reader.events(EventFilter(text="tool_result", limit=5))
        assert reader.find_content(ContentFilter("certainly")).hits
        assert second.verify().intact
        with reader.engine.lend() as connection:
            assert connection.execute("SHOW jit").fetchone() == ("off",)
        with psycopg.connect(url, autocommit=True) as connection:
            for setting in ("lock_timeout", "idle_in_transaction_session_timeout"):
                values = {connection.execute(f"SHOW {setting}").fetchone() for _ in range(4)}
                assert values == {("0",)}, setting
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            locks = connection.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").fetchone()
            assert locks == (0,)
