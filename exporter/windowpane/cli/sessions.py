"""`windowpane sessions`: the sessions in the store."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from windowpane.cli.options import json_option, open_to_read, plain_errors, print_json, store_option
from windowpane.report import figures
from windowpane.report.text import zone_mark
from windowpane.store.base import SessionFilter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windowpane.store.base import SessionRow


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
    Console().print(session_table(rows))


def session_table(rows: Sequence[SessionRow]) -> Table:
    """The sessions as a table, one row each."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("zone", "session", "agent", "model"):
        table.add_column(name, no_wrap=name == "zone", overflow="ellipsis")
    for name in ("turns", "now", "peak", "evicted", "compr.", "regrets", "cost"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            zone_mark(row.zone), row.session_id, row.agent, row.model or figures.UNKNOWN, f"{row.turns:,}",
            figures.percent(row.utilization), figures.percent(row.peak_utilization), f"{row.evicted_blocks:,}",
            f"{row.compressions:,}", f"{row.regrets:,}", figures.dollars(row.cost_dollars),
        )  # fmt: skip
    return table
