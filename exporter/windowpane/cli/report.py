"""`windowpane report`: one session as text, JSON or one HTML file."""

from __future__ import annotations

import time
from pathlib import Path

import click

from windowpane.cli.options import json_option, open_to_read, pick_session, report_errors, store_option
from windowpane.cli.output import print_json, supports_unicode
from windowpane.core.store_names import StoreName


@click.command("report")
@click.argument("session")
@click.option("--html", "html_path", type=click.Path(path_type=Path, dir_okay=False), help="Write one HTML file.")
@json_option
@store_option
@report_errors
def command(session: str, html_path: Path | None, *, as_json: bool, store_path: StoreName | None) -> None:
    """Print the history of a session's window: composition, zones, evictions, compressions, cost, alerts.

    SESSION is a session id or its first characters.

    \b
    Example:
      windowpane report 198393f2 --html report.html
    """
    from windowpane.report import gather, to_html, to_json, to_text  # slow to load

    with open_to_read(store_path) as store:
        report = gather(store, pick_session(store, session), now=time.time())
    if html_path is not None:
        html_path.write_text(to_html(report), encoding="utf-8")
        click.echo(f"wrote {html_path} ({html_path.stat().st_size:,} bytes)", err=True)
        return
    if as_json:
        print_json(to_json(report))
    else:
        click.echo(to_text(report, unicode=supports_unicode()), nl=False)
