"""The server that tests of PostgreSQL use."""

from __future__ import annotations

import pytest
from tests.servers.postgres import PostgresServer

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.server


def test_each_test_has_an_empty_database(postgres_server: PostgresServer, postgres_url: str) -> None:
    other = postgres_server.create_database()
    with psycopg.connect(other) as connection:
        connection.execute("CREATE TABLE present (one int)")
    with psycopg.connect(postgres_url) as connection:
        tables = connection.execute("SELECT count(*) FROM pg_tables WHERE tablename = 'present'").fetchone()

    assert tables == (0,)
