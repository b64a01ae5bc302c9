"""`windowpane clickhouse` and the settings of the copy."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from windowpane.cli import main
from windowpane.config.loading import load_config
from windowpane.exceptions import ConfigurationError
from windowpane.store.clickhouse.tables import TABLES


def printed(*arguments: str) -> str:
    done = CliRunner().invoke(main, ["clickhouse", "schema", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_printed_schema_creates_the_tables(clickhouse):
    statements = printed("--database", clickhouse.database, "--retention-days", "30").split(";\n")

    for statement in filter(str.strip, statements):
        clickhouse.define(statement)

    tables = clickhouse.query("SELECT name FROM system.tables WHERE database = currentDatabase()")
    assert {name for (name,) in tables} == {table.name for table in TABLES}


def test_the_schema_of_a_cluster_names_it_in_every_statement():
    output = printed("--cluster", "main")

    assert output.count(" ON CLUSTER 'main'") == 1 + 2 * len(TABLES)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("clickhouse:9000", "HTTP interface"),
        ("http://", "HTTP interface"),
        ("http://user:secret@host:8123", "set clickhouse.user and clickhouse.password"),
    ],
)
def test_an_address_that_is_none_is_refused(url, expected):
    with pytest.raises(ConfigurationError, match=expected) as raised:
        load_config(environ={"WINDOWPANE_CLICKHOUSE_URL": url})

    assert "WINDOWPANE_CLICKHOUSE_URL (clickhouse.url)" in str(raised.value)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("name", ["a-b", "x; DROP DATABASE y", "1st", ""])
def test_the_database_is_a_name(name):
    with pytest.raises(ConfigurationError, match=r"clickhouse.database"):
        load_config(environ={}, arguments={"clickhouse": {"database": name}})


def test_the_password_is_text_and_is_not_shown():
    config = load_config(environ={"WINDOWPANE_CLICKHOUSE_PASSWORD": "0123"})

    assert config.clickhouse.password.get_secret_value() == "0123"
    assert "0123" not in repr(config)
