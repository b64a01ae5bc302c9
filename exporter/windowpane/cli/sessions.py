"""`windowpane sessions`: the sessions in the store."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table
from rich.text import Text

from windowpane.cli.options import json_option, open_to_read, plain_errors, print_json, print_table, store_option
from windowpane.store.interface import SessionFilter
from windowpane.text import formats
from windowpane.text.labels import zone_label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windowpane.store.records import SessionRow

ID_CHARACTERS = 13


@click.command("sessions")
@click.option("--order", type=click.Choice(["pressure", "recent", "cost", "regret"]), default="pressure")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@json_option
@store_option
@plain_errors
def command(order: str, limit: int, *, as_json: bool, store_path: Path | None) -> None:
    """List the sessions in the store, those in trouble first.

    \b
    Example:
      windowpane sessions --order cost --limit 10
    """
    with open_to_read(store_path) as store:
        rows = store.sessions(SessionFilter(order=order, limit=limit))  # type: ignore[arg-type]  # click checked it
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    if not rows:
        click.echo("The store is empty. Fill it with `windowpane import PATH`.")
        return
    print_table(session_table(rows))


def session_table(rows: Sequence[SessionRow]) -> Table:
    """The sessions as a table of at most 80 columns, one row each; the ids are long enough to name them."""
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("zone", no_wrap=True, min_width=10)
    table.add_column("session", no_wrap=True, min_width=ID_CHARACTERS)
    table.add_column("agent", no_wrap=True, overflow="ellipsis", max_width=12)
    for name, width in {"turns": 5, "now": 4, "peak": 4, "evt": 4, "cmp": 3, "regr": 4, "cost": 7}.items():
        table.add_column(name, justify="right", no_wrap=True, min_width=width)
    for row in rows:
        share = formats.percent(row.utilization, estimated=row.is_estimated)
        table.add_row(
            zone_label(row.zone), short_id(row), Text(formats.plain(row.agent)), f"{row.turns:,}",
            share, formats.percent(row.peak_utilization), f"{row.evicted_blocks:,}",
            f"{row.compressions:,}", f"{row.regrets:,}", formats.dollars(row.cost_dollars),
        )  # fmt: skip
    return table


def short_id(row: SessionRow) -> Text:
    """The first characters of a session's id, without the format it may begin with."""
    return Text(formats.plain(row.session_id.removeprefix(f"{row.source}:")[:ID_CHARACTERS]))
