"""`windowpane check`: an exit code for CI, from the alerts of a session."""

from __future__ import annotations

import click

from windowpane.cli.documents import Document
from windowpane.cli.options import (
    EXIT_ALERTS,
    json_option,
    open_to_read,
    pick_session,
    report_errors,
    store_option,
)
from windowpane.cli.output import print_json
from windowpane.core.characters import plain
from windowpane.core.store_names import StoreName
from windowpane.core.vocabulary import SEVERITIES, Severity
from windowpane.store.filters import AlertFilter
from windowpane.store.records import AlertRow


class CheckDocument(Document):
    """The alerts that let a session fail."""

    session_id: str
    failed: bool
    alerts: tuple[AlertRow, ...]


@click.command("check")
@click.argument("session")
@click.option(
    "--fail-on",
    type=click.Choice(SEVERITIES),
    default="critical",
    show_default=True,
    help="Fail when an alert of this severity or worse fired.",
)
@json_option
@store_option
@click.pass_context
@report_errors
def command(
    ctx: click.Context, session: str, fail_on: Severity, *, as_json: bool, store_path: StoreName | None
) -> None:
    """Exit with 4 when an alert fired in SESSION, with 0 when none did.

    \b
    Example:
      windowpane check 198393f2 --fail-on warning
    """
    with open_to_read(store_path) as store:
        row = pick_session(store, session)
        alerts = store.alerts(AlertFilter(session_id=row.session_id, limit=10_000))
    failing = [alert for alert in alerts if alert.severity in SEVERITIES[SEVERITIES.index(fail_on) :]]
    if as_json:
        print_json(CheckDocument(session_id=row.session_id, failed=bool(failing), alerts=tuple(failing)))
    else:
        for alert in failing:
            summary = plain(alert.summary)
            click.echo(f"{alert.severity:<8} {alert.alert:<22} turn {alert.fired_turn:>4}  {summary}")
        verdict = f"{len(failing)} of {len(alerts)} alerts at {fail_on} or worse"
        name = plain(row.session_id)
        click.echo(f"{name}: {verdict}" if failing else f"{name}: passed; {verdict}")
    if failing:
        ctx.exit(EXIT_ALERTS)
