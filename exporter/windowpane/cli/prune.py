"""`windowpane prune`: delete old sessions, keep a tombstone of each."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from windowpane.cli.options import open_existing, plain_errors, store_option
from windowpane.config import load_config
from windowpane.limits import PriceCatalogue
from windowpane.metrics.labels import LabelPolicy, catalogue_model
from windowpane.upkeep import Upkeep


@click.command("prune")
@click.option(
    "--older-than", type=click.IntRange(1), default=30, show_default=True, help="Days since the last event."
)
@click.option("--max-bytes", type=click.IntRange(1), default=None, help="Also delete the oldest until it fits.")
@store_option
@plain_errors
def command(older_than: int, max_bytes: int | None, *, store_path: Path | None) -> None:
    """Delete whole sessions, oldest first. Counters and the audit chain go on.

    \b
    Example:
      windowpane prune --older-than 14
    """
    with open_existing(store_path) as store:
        labels = LabelPolicy(agent=store.admit_agent, model=catalogue_model(PriceCatalogue()))
        upkeep = Upkeep(store, rules=load_config().alert_rules(), labels=labels)
        deleted = upkeep.prune(days=older_than, max_bytes=max_bytes or sys.maxsize)
    click.echo(f"deleted {deleted} session{'' if deleted == 1 else 's'}")
