"""`windowpane sessions`: the sessions in the store."""

from __future__ import annotations

from shutil import get_terminal_size
from typing import TYPE_CHECKING, Unpack, get_args

import click
from rich.text import Text

from windowpane.cli.documents import document_of
from windowpane.cli.options import (
    SessionNames,
    json_option,
    open_to_read,
    report_errors,
    session_filters,
    store_option,
)
from windowpane.cli.output import frameless_table, print_json, print_table
from windowpane.core.characters import plain
from windowpane.core.store_names import StoreName
from windowpane.report.rule_survival import Survival, survival_over, survival_text
from windowpane.store.filters import FleetOrder, SessionFilter
from windowpane.store.records import SessionRow
from windowpane.text import formats
from windowpane.text.zones import zone_label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table


ID_CHARACTERS = 8
NAME_CHARACTERS = 17
TABLE_COLUMNS = 80


SessionDocument = document_of(SessionRow, total_cost_dollars=float | None)
SurvivalDocument = document_of(Survival)


@click.command("sessions")
@click.option("--order", type=click.Choice(get_args(FleetOrder)), default="pressure")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@click.option("--rules", is_flag=True, help="How many rules of these sessions compactions left visible, instead.")
@session_filters
@json_option
@store_option
@report_errors
def command(
    order: str,
    limit: int,
    *,
    rules: bool,
    as_json: bool,
    store_path: StoreName | None,
    **names: Unpack[SessionNames],
) -> None:
    """List the sessions in the store, by default those under the highest pressure first.

    A session is shown by its title, else by its label or agent; its cost includes its sub-agents. With
    --rules the standing instructions that are visible after 1, 2, 3 … compactions are counted, of --limit
    sessions at most. rem: removed blocks; cmp: compactions; again: removed blocks that were needed again.

    \b
    Example:
      windowpane sessions --order cost --limit 10 --folder shop
    """
    query = SessionFilter(order=order, limit=limit, **names)  # type: ignore[arg-type]  # click checked it
    with open_to_read(store_path) as store:
        if rules:
            _show_survival(survival_over(store, query), as_json=as_json)
            return
        rows = store.sessions(query)
    if as_json:
        print_json([SessionDocument.of(row) for row in rows])
        return
    if not rows:
        selected = any(names.values())
        empty = "The store is empty. Fill it with `windowpane import PATH`."
        click.echo("No session matches; `windowpane sessions` lists all." if selected else empty)
        return
    print_table(session_table(rows))
    if any(row.is_cost_stated for row in rows):
        click.echo(f"{formats.STATED} stated by the recording for the whole session, not for its calls", err=True)


def _show_survival(curve: Sequence[Survival], *, as_json: bool) -> None:
    if as_json:
        print_json([SurvivalDocument.of(one) for one in curve])
    else:
        click.echo(survival_text(curve) or "No compaction of these sessions was followed by its rules.")


def session_table(rows: Sequence[SessionRow]) -> Table:
    """Return the sessions as a table of at most 80 columns, one row each; ids are long enough to select by.

    A wider terminal shows more of the titles.
    """
    name_columns = NAME_CHARACTERS + max(0, get_terminal_size().columns - TABLE_COLUMNS)
    texts = {"zone": (10, None), "session": (ID_CHARACTERS, None), "title": (None, name_columns)}
    numbers = {"turns": 5, "now": 4, "peak": 4, "rem": 4, "cmp": 3, "again": 5, "cost": 7}
    table = frameless_table(texts, numbers)
    for row in rows:
        share = formats.percent(row.utilization, estimated=row.is_estimated)
        table.add_row(
            zone_label(row.zone), short_id(row), Text(plain(row.name)), f"{row.turns:,}",
            share, formats.percent(row.peak_utilization), f"{row.evicted_blocks:,}",
            f"{row.compressions:,}", f"{row.regrets:,}",
            formats.dollars(
                row.shown_cost_dollars, estimated=row.is_cost_estimated, stated=row.is_cost_stated
            ),
        )  # fmt: skip
    return table


def short_id(row: SessionRow) -> Text:
    """Return the first characters of a session's id, without a leading name of its format."""
    return Text(plain(row.session_id.removeprefix(f"{row.source}:")[:ID_CHARACTERS]))
