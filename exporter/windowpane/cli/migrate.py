"""`windowpane migrate`: move a store to another database."""

from __future__ import annotations

import click

from windowpane.cli.options import StoreOption, open_to_read, open_to_write, report_errors
from windowpane.cli.output import progress_bar
from windowpane.core.characters import plain
from windowpane.core.store_names import StoreName, full_name
from windowpane.text import formats


@click.command("migrate")
@click.argument("source", type=StoreOption())
@click.argument("target", type=StoreOption())
@report_errors
def command(source: StoreName, target: StoreName) -> None:
    """Copy the store SOURCE into TARGET, a path or the URL of a database, with its audit chain as it is.

    TARGET must be empty or new. An interrupted copy continues when the command is run again. Agents may go on
    writing to SOURCE meanwhile: the command prints how many events came too late, and a further run after the
    agents have stopped, or write to TARGET from then on, copies only those.

    \b
    Example:
      windowpane migrate windowpane.db postgresql://windowpane@db.internal/windowpane
    """
    from windowpane.store.copying import Progress, copy_store

    if full_name(source) == full_name(target):
        raise click.UsageError("SOURCE and TARGET are the same store")
    with open_to_read(source) as reader, open_to_write(target) as store, progress_bar(quiet=False) as bar:
        task = bar.add_task("reading", total=None)

        def show(progress: Progress) -> None:
            bar.update(task, description=progress.part, completed=progress.done, total=progress.total)

        outcome = copy_store(reader, store, on_progress=show)
        names = f"{reader.name} to {store.name}"
    click.echo(
        f"{names}: copied {formats.count(outcome.events, 'event')} and {formats.count(outcome.texts, 'text')}; "
        f"the copy holds {formats.count(outcome.sessions, 'session')} and equals its source"
    )
    for link in outcome.broken:
        click.echo(plain(f"broken in the source, too: session {link.session_id}: {link.problem}"), err=True)
    if outcome.later_events:
        click.echo(
            f"{formats.count(outcome.later_events, 'event')} came to the source meanwhile and not into the copy: "
            "stop the agents or let them write to the new store, then run this command again"
        )
