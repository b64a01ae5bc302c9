"""`windowpane report`: one session as text, JSON or one HTML file."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from windowpane.cli.options import (
    json_option,
    of_project,
    open_to_read,
    pick_session,
    project_filter_option,
    report_errors,
    store_option,
)
from windowpane.cli.output import print_json, supports_unicode
from windowpane.core.characters import plain
from windowpane.core.store_names import StoreName

if TYPE_CHECKING:
    from windowpane.store.reads.project_reader import EventReader
    from windowpane.store.records import SessionRow


@click.command("report")
@click.argument("session")
@click.option("--html", "html_path", type=click.Path(path_type=Path, dir_okay=False), help="Write one HTML file.")
@click.option("--turn", type=click.IntRange(min=0), help="Report on one turn: its window and its events.")
@project_filter_option
@json_option
@store_option
@report_errors
def command(
    session: str,
    html_path: Path | None,
    turn: int | None,
    *,
    project: str | None,
    as_json: bool,
    store_path: StoreName | None,
) -> None:
    """Print the history of a session's window: composition, zones, evictions, compressions, cost, alerts.

    SESSION is a session id or its first characters.

    \b
    Example:
      windowpane report 198393f2 --html report.html
      windowpane report 198393f2 --turn 40
    """
    with open_to_read(store_path) as store:
        row = pick_session(of_project(store, project), session)
        rendered = _session(store, row) if turn is None else _turn(store, row, turn)
    if html_path is not None:
        html_path.write_text(rendered.html(), encoding="utf-8")
        click.echo(f"wrote {html_path} ({html_path.stat().st_size:,} bytes)", err=True)
    elif as_json:
        print_json(rendered.json())
    else:
        click.echo(rendered.text(), nl=False)


class _Rendered(NamedTuple):
    """A report in each of its forms."""

    text: Callable[[], str]
    html: Callable[[], str]
    json: Callable[[], dict[str, Any]]


def _session(store: EventReader, row: SessionRow) -> _Rendered:
    from windowpane.report import gather, to_html, to_json, to_text  # slow to load

    report = gather(store, row, now=time.time())
    return _Rendered(
        partial(to_text, report, unicode=supports_unicode()), partial(to_html, report), partial(to_json, report)
    )


def _turn(store: EventReader, row: SessionRow, turn: int) -> _Rendered:
    from windowpane.report import gather_turn, turn_to_html, turn_to_json, turn_to_text

    report = gather_turn(store, row, turn)
    if report is None:
        raise click.ClickException(
            f"turn {turn} of session {plain(row.session_id)} is not recorded; its last turn is {row.turns}"
        )
    return _Rendered(
        partial(turn_to_text, report, unicode=supports_unicode()),
        partial(turn_to_html, report),
        partial(turn_to_json, report),
    )
