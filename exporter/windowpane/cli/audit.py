"""`windowpane audit`: verify the hash chain, print its heads, export events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from windowpane.cli.documents import document_of
from windowpane.cli.options import (
    EXIT_FAILED,
    json_option,
    of_project,
    open_existing,
    open_to_read,
    pick_session,
    project_filter_option,
    report_errors,
    store_option,
)
from windowpane.cli.output import print_json
from windowpane.core.characters import plain
from windowpane.core.store_names import StoreName
from windowpane.store.records import Verification
from windowpane.store.writes.chain import Head
from windowpane.text import formats

if TYPE_CHECKING:
    from windowpane.store.reads.export import ExportFormat
    from windowpane.store.records import BrokenLink


VerificationDocument = document_of(Verification, intact=bool)


@click.group("audit")
def command() -> None:
    """Prove that the stored events are complete and unaltered."""


@command.command("verify")
@click.argument("session", required=False)
@click.option(
    "--heads", type=click.Path(path_type=Path, exists=True), help="Compare the chain with exported heads."
)
@click.option(
    "--projections/--no-projections",
    default=True,
    show_default=True,
    help="Fold the events again and compare the result with the stored rows; takes five times as long.",
)
@click.option(
    "--expect-key/--no-expect-key",
    default=None,
    help="Report what was recorded without a key and never accepted.  [default: where a key is set]",
)
@json_option
@store_option
@click.pass_context
@report_errors
def verify(
    ctx: click.Context,
    session: str | None,
    heads: Path | None,
    *,
    projections: bool,
    expect_key: bool | None,
    as_json: bool,
    store_path: StoreName | None,
) -> None:
    """Recompute the hash chain of SESSION, or of every session; exits with 1 when a link is broken.

    The rows that pages and reports read (cost, zones, alerts, windows) are compared with the events as well.

    \b
    Example:
      windowpane audit verify --heads heads.jsonl
    """
    with open_existing(store_path) as store:
        chosen = None if session is None else pick_session(store, session).session_id
        result = store.verify(chosen, heads_file=heads, projections=projections, expect_key=expect_key)
        name = store.name
    if as_json:
        print_json(VerificationDocument.of(result))
    else:
        for line in _verification_lines(result, name):
            click.echo(plain(line))
    if not result.intact:
        ctx.exit(EXIT_FAILED)


def _verification_lines(result: Verification, name: str) -> Iterator[str]:
    kind = "keyed: detects tampering" if result.keyed else "no key: detects accidents, not tampering"
    yield f"{result.sessions:,} sessions, {result.events:,} events ({kind})"
    if result.unkeyed_events:
        yield (
            f"{formats.count(result.unkeyed_events, 'event')} recorded without the key and accepted: "
            "unaltered since then, not proven before"
        )
    for accepted in result.accepted:
        yield (
            f"accepted on {formats.utc(accepted.at)} under the key {accepted.key}: "
            f"{formats.count(accepted.events, 'event')} without one"
        )
    if result.explained_gaps:
        yield f"{result.explained_gaps} gaps, each explained by a telemetry.dropped event"
    if result.sender_gaps:
        yield f"{formats.count(result.sender_gaps, 'gap')} in what other hosts sent: those events never arrived"
    for link in result.broken:
        yield f"broken: {_position(link)}: {link.problem}"
    broken = formats.count(len(result.broken), "place")
    yield "chain intact" if result.intact else f"chain BROKEN in {broken} of {name}"
    if result.intact and not result.projections:
        yield "the rows that pages read were not compared with the events"
    if result.exported_heads is None:
        yield "an older copy of the file, or one with a cut end, shows only against exported heads (--heads)"
    else:
        yield f"compared with {formats.count(result.exported_heads, 'exported head')}"


def _position(link: BrokenLink) -> str:
    if not link.session_id:
        return "store" if link.seq is None else f"store, event {link.seq}"
    where = f"session {link.session_id} revision {link.revision}"
    return where if link.seq is None else f"{where}, event {link.seq}"


@command.command("rebuild")
@store_option
@report_errors
def rebuild(store_path: StoreName | None) -> None:
    """Make the rows that pages and reports read again from the events, which stay as they are.

    \b
    Example:
      windowpane audit rebuild
    """
    with open_existing(store_path) as store:
        sessions = store.rebuild_projections()
    click.echo(f"rebuilt the rows of {formats.count(sessions, 'session')}")


@command.command("accept")
@store_option
@report_errors
def accept(store_path: StoreName | None) -> None:
    """Sign the events that the store holds without a key; signed events stay as they are.

    For a store that got its key later, and for events of your own agent that ran without the key. First find out
    who wrote them: `audit verify` cannot prove what happened before. The store-wide chain records time and key.

    \b
    Example:
      windowpane audit accept
    """
    with open_existing(store_path) as store:
        accepted = store.accept_unkeyed()
    click.echo(
        f"accepted {formats.count(accepted.events, 'event')} recorded without a key, under the key {accepted.key}"
    )


@command.command("heads")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the heads to a file instead of printing them.",
)
@json_option
@store_option
@report_errors
def heads(output: Path | None, *, as_json: bool, store_path: StoreName | None) -> None:
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
        print_json(entries, list[Head])
        return
    for entry in entries:
        click.echo(plain("  ".join(str(value) for value in asdict(entry).values())))


@command.command("export")
@click.argument("session", required=False)
@click.option("--format", "kind", type=click.Choice(["jsonl", "parquet"]), default="jsonl", show_default=True)
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), required=True)
@project_filter_option
@store_option
@report_errors
def export(
    session: str | None, kind: ExportFormat, output: Path, project: str | None, store_path: StoreName | None
) -> None:
    """Write the stored events of SESSION, or of all sessions, with sequence numbers and hashes.

    \b
    Example:
      windowpane audit export 198393f2 --output session.jsonl
    """
    with open_to_read(store_path) as store:
        chosen = None if session is None else pick_session(of_project(store, project), session).session_id
        count = store.export(output, form=kind, session_id=chosen, project=project)
    click.echo(f"wrote {count:,} events to {output}")
