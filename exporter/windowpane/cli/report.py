"""`windowpane report`: one session as text, JSON or one HTML file."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from windowpane.cli.documents import Document, document_of
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
    from windowpane.report import SessionReport, TurnReport
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
        forms = _session(store, row) if turn is None else _turn(store, row, turn)
    if html_path is not None:
        html_path.write_text(forms.html(forms.report), encoding="utf-8")
        click.echo(f"wrote {html_path} ({html_path.stat().st_size:,} bytes)", err=True)
    elif as_json:
        print_json(forms.document(forms.report))
    else:
        click.echo(forms.text(forms.report, unicode=supports_unicode()), nl=False)


class _Forms(NamedTuple):
    """A report, and the functions that return its forms."""

    report: Any
    text: Callable[..., str]
    html: Callable[[Any], str]
    document: Callable[[Any], Document]


def _session(store: EventReader, row: SessionRow) -> _Forms:
    from windowpane.report import gather, to_html, to_text  # slow to load

    return _Forms(gather(store, row, now=time.time()), to_text, to_html, session_document)


def _turn(store: EventReader, row: SessionRow, turn: int) -> _Forms:
    from windowpane.report import gather_turn, turn_to_html, turn_to_text

    report = gather_turn(store, row, turn)
    if report is None:
        raise click.ClickException(
            f"turn {turn} of session {plain(row.session_id)} is not recorded; its last turn is {row.turns}"
        )
    return _Forms(report, turn_to_text, turn_to_html, turn_document)


def session_document(report: SessionReport) -> Document:
    """Return the report on a session as a document."""
    from windowpane.report.calls import open_turn

    kind = document_of(type(report), answer=str, open_turn=int | None, missing_costs=tuple[str, ...])
    return kind.of(report, answer=report.headline, open_turn=open_turn(report.turns))


def turn_document(report: TurnReport) -> Document:
    """Return the report on a turn as a document."""
    return document_of(type(report), answer=str).of(report, answer=report.headline)
