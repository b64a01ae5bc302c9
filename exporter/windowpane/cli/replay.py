"""`windowpane replay`: run recorded sessions under other policies, presets, windows and thresholds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from windowpane.cli.documents import document_of
from windowpane.cli.options import (
    EXIT_FAILED,
    EXIT_PARTIAL,
    InvalidOption,
    json_option,
    open_to_read,
    open_to_write,
    pick_session,
    report_errors,
    store_option,
)
from windowpane.cli.output import frameless_table, print_json, print_table, progress_bar
from windowpane.core.characters import plain
from windowpane.core.store_names import StoreName
from windowpane.evaluation.replay import (
    ReplayFailure,
    ReplayMatrix,
    ReplaySetup,
    StoreSource,
    combine_setups,
    find_recordings,
    parse_thresholds,
    parse_window,
    run_matrix,
    summarize_runs,
    to_stored_replay,
)
from windowpane.evaluation.replay.recordings import RecordingSource
from windowpane.evaluation.replay.setups import DEFAULT_KEEP_GROUPS, format_window
from windowpane.exceptions import ConfigurationError, SourceError
from windowpane.store.replays import ReplayRow, ReplayRunRow
from windowpane.text import formats

if TYPE_CHECKING:
    from rich.table import Table

    from windowpane.evaluation.replay import SetupSummary
    from windowpane.store.replays import StoredReplay

ReplayDocument = document_of(ReplayRow, results=tuple[ReplayRunRow, ...])
DEFAULT_POLICY = "hybrid"
MAXIMUM_NOTES = 10
COLUMNS = {
    "window": 6, "over": 4, "sent": 6, "cost": 6, "dollars": 7, "rem": 4, "cmp": 3, "names": 5, "again": 5,
    "of": 5,
}  # fmt: skip
"""The columns of numbers, with their minimum widths."""
LEGEND = """\
over: calls that do not fit; sent: tokens; cost: tokens at the price of fresh input, with the prompt cache;
rem: removed blocks; cmp: compactions; names: share of removed names still visible;
again: removed blocks that were needed again; of: their share of all content"""


@click.command("replay")
@click.argument("sessions", nargs=-1, required=True, metavar="SESSION|FILE...")
@click.option("--policy", "policies", multiple=True, help="Eviction policies, comma-separated; `all` for each.")
@click.option("--preset", "presets", multiple=True, help="Presets, comma-separated; `all` for each.")
@click.option("--window", "windows", multiple=True, default=("32k",), show_default=True, help="Sizes: 8k,200k.")
@click.option(
    "--threshold",
    "thresholds",
    multiple=True,
    help="Where eviction starts, such as 0.7, or yellow/orange/red as 0.5/0.7/0.9; comma-separated.",
)
@click.option(
    "--baselines", is_flag=True, help="Add baselines: truncation at the limit, and keeping the last groups."
)
@click.option(
    "--keep", multiple=True, help=f"Groups kept by the second baseline [default: {DEFAULT_KEEP_GROUPS}]."
)
@click.option("--name", help="Name of the result.")
@click.option("--workers", type=click.IntRange(1), help="Number of processes; by default one per processor.")
@json_option
@store_option
@click.pass_context
@report_errors
def command(
    ctx: click.Context,
    sessions: tuple[str, ...],
    policies: tuple[str, ...],
    presets: tuple[str, ...],
    windows: tuple[str, ...],
    *,
    thresholds: tuple[str, ...],
    keep: tuple[str, ...],
    name: str | None,
    workers: int | None,
    store_path: StoreName | None,
    baselines: bool,
    as_json: bool,
) -> None:
    """Replay recorded sessions under other settings and compare.

    Each SESSION of the store, or of each FILE or folder, is managed under every combination of the given options.
    Messages and tool results come from the recording; the window is simulated. A session of the store needs
    captured content, else only policies that read no content can be replayed. The result is printed, and stored
    separately from all sessions. Exits with 3 when some sessions could not be replayed.

    \b
    Example:
      windowpane replay session.jsonl --policy hybrid,fifo --window 8k,32k --baselines
    """
    if not _split(windows):
        raise click.BadParameter("no size given", param_hint="--window")
    chosen = _split(policies) or ([] if presets else [DEFAULT_POLICY])
    try:
        setups = combine_setups(
            limits=[parse_window(text) for text in _split(windows)],
            policies=chosen,
            presets=_split(presets),
            thresholds=[parse_thresholds(text) for text in _split(thresholds)] or [None],
            baselines=baselines or bool(keep),
            keep_groups=[_groups(text) for text in _split(keep)] or [DEFAULT_KEEP_GROUPS],
        )
    except ConfigurationError as error:
        raise InvalidOption(str(error)) from error
    sources, unread = _sources(sessions, store_path)
    matrix = _run(sources, setups, workers=workers, quiet=as_json)
    matrix = replace(matrix, failures=(*unread, *matrix.failures))
    stored = to_stored_replay(matrix, name=name or _name(sources), at=time.time())
    if matrix.runs:
        with open_to_write(store_path) as store:
            store.save_replay(stored)
            store.flush()
    if as_json:
        print_json(ReplayDocument.of(stored.row, results=stored.runs))
    else:
        _print(matrix, stored)
    if matrix.failures:
        ctx.exit(EXIT_PARTIAL if matrix.runs else EXIT_FAILED)


def _split(given: Sequence[str]) -> list[str]:
    return [part.strip() for text in given for part in text.split(",") if part.strip()]


def _groups(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise click.BadParameter(f"{text!r} is not a number of groups", param_hint="--keep")
    return int(text)


def _sources(
    sessions: Sequence[str], store_path: StoreName | None
) -> tuple[list[RecordingSource], list[ReplayFailure]]:
    """Find the recordings of files, folders and stored sessions, which are given by the start of their id.

    An unreadable file is an error only where nothing else can be read.
    """
    recordings: list[RecordingSource] = []
    unread: list[ReplayFailure] = []
    for session in sessions:
        if Path(session).exists():
            try:
                recordings += find_recordings([Path(session)])
            except SourceError as error:
                unread.append(ReplayFailure(session, "", error.problem))
            continue
        with open_to_read(store_path) as store:
            recordings.append(StoreSource(store.address, pick_session(store, session).session_id))
    if not recordings:
        reasons = "\n".join(plain(f"{failure.session}: {failure.reason}") for failure in unread)
        raise click.ClickException(reasons or "the given paths hold no recorded session")
    return list(dict.fromkeys(recordings)), unread


def _name(sources: Sequence[RecordingSource]) -> str:
    first = sources[0].name
    return first if len(sources) == 1 else f"{first} and {len(sources) - 1} more"


def _run(
    sources: Sequence[RecordingSource], setups: Sequence[ReplaySetup], *, workers: int | None, quiet: bool
) -> ReplayMatrix:
    with progress_bar(quiet=quiet) as bar:
        task = bar.add_task("replaying", total=None)

        def show(session: str, done: int, total: int) -> None:
            bar.update(task, description=session[:40], completed=done, total=total)

        return run_matrix(sources, setups, workers=workers, progress=show)


def _print(matrix: ReplayMatrix, stored: StoredReplay) -> None:
    summaries = summarize_runs(matrix.runs)
    if summaries:
        print_table(replay_table(summaries))
        click.echo(f"\n{LEGEND}")
        sessions = formats.count(stored.row.sessions, "session")
        click.echo(f"{sessions}, stored as replay {stored.row.id}")
    if any(run.note for run in matrix.runs):
        note = next(run.note for run in matrix.runs if run.note)
        click.echo(f"some sessions: {note}")
    for line in stored.row.notes[:MAXIMUM_NOTES]:
        click.echo(plain(f"not replayed: {line}"), err=True)
    if len(stored.row.notes) > MAXIMUM_NOTES:
        click.echo(f"and {len(stored.row.notes) - MAXIMUM_NOTES} more; --json lists them all", err=True)


def replay_table(summaries: Sequence[SetupSummary]) -> Table:
    """Return the setups as a table of at most 100 columns, one row each."""
    table = frameless_table({"under": (14, 24)}, COLUMNS)
    for summary in summaries:
        setup = summary.setup
        zones = "" if setup.thresholds is None else f" {setup.thresholds.orange:g}"
        table.add_row(
            f"{setup.name}{zones}", format_window(setup.limit_tokens), f"{summary.overflows:,}",
            formats.tokens_short(summary.tokens_sent), formats.tokens_short(summary.cost_tokens),
            formats.dollars(summary.cost_dollars), f"{summary.evicted_blocks:,}", f"{summary.compressions:,}",
            formats.ratio(summary.fidelity), f"{summary.regrets:,}", formats.small_percent(summary.regret_ratio),
        )  # fmt: skip
    return table
