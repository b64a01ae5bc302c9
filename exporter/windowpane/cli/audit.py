"""`windowpane audit`: verify the hash chain, print its heads, export events."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from windowpane.cli.options import (
    EXIT_FAILED,
    json_option,
    open_existing,
    open_to_read,
    pick_session,
    report_errors,
    store_option,
)
from windowpane.cli.output import print_json
from windowpane.text import formats

if TYPE_CHECKING:
    from windowpane.store.export import ExportFormat


@click.group("audit")
def command() -> None:
    """Prove that the stored events are complete and unaltered."""


@command.command("verify")
@click.argument("session", required=False)
@click.option(
    "--heads", type=click.Path(path_type=Path, exists=True), help="Compare the chain with exported heads."
)
@json_option
@store_option
@click.pass_context
@report_errors
def verify(
    ctx: click.Context, session: str | None, heads: Path | None, *, as_json: bool, store_path: Path | None
) -> None:
    """Recompute the hash chain of SESSION, or of every session; exits with 1 when a link is broken.

    \b
    Example:
      windowpane audit verify --heads heads.jsonl
    """
    with open_existing(store_path) as store:
        chosen = None if session is None else pick_session(store, session).session_id
        result = store.verify(chosen, heads_file=heads)
    if as_json:
        print_json({**asdict(result), "intact": result.intact})
    else:
        kind = "keyed: detects tampering" if result.keyed else "no key: detects accidents, not tampering"
        click.echo(f"{result.sessions:,} sessions, {result.events:,} events ({kind})")
        if result.explained_gaps:
            click.echo(f"{result.explained_gaps} gaps, each explained by a telemetry.dropped event")
        for link in result.broken:
            link_name = f"session {link.session_id} revision {link.revision}, event {link.seq}"
            click.echo(formats.plain(f"broken: {link_name}: {link.problem}"))
        broken = formats.count(len(result.broken), "place")
        click.echo("chain intact" if result.intact else f"chain BROKEN in {broken}")
        if not result.sessions and heads is None:
            click.echo("the store is empty; only exported heads (--heads) can show that sessions were deleted")
    if not result.intact:
        ctx.exit(EXIT_FAILED)


@command.command("heads")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the heads to a file instead of printing them.",
)
@json_option
@store_option
@report_errors
def heads(output: Path | None, *, as_json: bool, store_path: Path | None) -> None:
    """Print the store-wide chain of session heads and tombstones; keep a copy outside the store.

    \b
    Example:
      windowpane audit heads --output heads.jsonl
    """
    with open_existing(store_path) as store:
        if output is not None:
            click.echo(f"wrote {store.export_heads(output)} heads to {output}")
            return
        entries = store.heads()
    if as_json:
        print_json([asdict(entry) for entry in entries])
        return
    for entry in entries:
        click.echo(formats.plain("  ".join(str(value) for value in asdict(entry).values())))


@command.command("export")
@click.argument("session", required=False)
@click.option("--format", "kind", type=click.Choice(["jsonl", "parquet"]), default="jsonl", show_default=True)
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), required=True)
@store_option
@report_errors
def export(session: str | None, kind: ExportFormat, output: Path, store_path: Path | None) -> None:
    """Write the stored events of SESSION, or of all sessions, with sequence numbers and hashes.

    \b
    Example:
      windowpane audit export 198393f2 --output session.jsonl
    """
    with open_to_read(store_path) as store:
        chosen = None if session is None else pick_session(store, session).session_id
        count = store.export(output, form=kind, session_id=chosen)
    click.echo(f"wrote {count:,} events to {output}")
