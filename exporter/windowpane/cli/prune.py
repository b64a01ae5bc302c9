"""`windowpane prune`: delete old sessions; a tombstone of each remains."""

from __future__ import annotations

import click

from windowpane.alerts.rules import configured
from windowpane.cli.options import open_existing, report_errors, store_option
from windowpane.config.loading import load_config
from windowpane.core.store_names import StoreName
from windowpane.outputs.http.maintenance import StoreMaintenance
from windowpane.text import formats


@click.command("prune")
@click.option(
    "--older-than", type=click.IntRange(1), help="Days since the last event.  [default: the configured retention]"
)
@click.option(
    "--max-bytes",
    type=click.IntRange(1),
    help="Also delete the oldest until the store fits.  [default: the configured retention]",
)
@store_option
@report_errors
def command(older_than: int | None, max_bytes: int | None, *, store_path: StoreName | None) -> None:
    """Delete whole sessions, oldest first. Counters and the audit chain continue.

    Projects with a retention keep their sessions for that time, unless --older-than is given.

    \b
    Example:
      windowpane prune --older-than 14
    """
    config = load_config()
    with open_existing(store_path) as store:
        deleted = StoreMaintenance(store, rules=configured(**config.alert_settings())).prune(
            days=older_than or config.store.retention_days,
            max_bytes=max_bytes or config.store.retention_bytes,
            projects={} if older_than else config.project_retention(),
        )
    click.echo(f"deleted {formats.count(deleted, 'session')}")
