"""`windowpane clickhouse`: the tables of the copy in ClickHouse."""

from __future__ import annotations

import click

from windowpane.cli.options import report_errors
from windowpane.config.loading import load_config


@click.group("clickhouse")
def command() -> None:
    """Print the tables of the copy that `windowpane serve --clickhouse` keeps."""


@command.command("schema")
@click.option("--database", help="Name of the database.  [default: the configured one]")
@click.option("--cluster", help="Create the tables on this cluster, with Distributed tables in front of them.")
@click.option(
    "--retention-days",
    type=click.IntRange(1),
    help="Let rows expire after this time.  [default: the configured one]",
)
@report_errors
def schema(database: str | None, cluster: str | None, retention_days: int | None) -> None:
    """Print the statements that create the tables, which `serve --clickhouse` runs by itself.

    \b
    Example:
      windowpane clickhouse schema --cluster main | clickhouse-client
    """
    from windowpane.store.clickhouse.configured import configured_schema

    options = {"database": database, "cluster": cluster, "retention_days": retention_days}
    given = {name: value for name, value in options.items() if value is not None}
    config = load_config(arguments={"clickhouse": given}).clickhouse
    for statement in configured_schema(config).create():
        click.echo(f"{statement};\n")
