"""`windowpane replay`: recorded sessions again, under other policies, presets, windows and thresholds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from windowpane.cli.options import (
    EXIT_FAILED,
    EXIT_PARTIAL,
    Refused,
    json_option,
    open_to_read,
    open_to_write,
    pick_session,
    plain_errors,
    print_json,
    print_table,
    store_option,
)
from windowpane.exceptions import ConfigurationError, SourceError
from windowpane.replay import (
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
from windowpane.replay.recordings import RecordingSource
from windowpane.replay.setups import DEFAULT_KEEP_GROUPS, format_window
from windowpane.text import formats

if TYPE_CHECKING:
    from windowpane.replay import SetupSummary
    from windowpane.store.replays import StoredReplay

DEFAULT_POLICY = "hybrid"
NOTES_SHOWN = 10
COLUMNS = {
    "window": 6, "over": 4, "sent": 6, "cost": 6, "dollars": 7, "evict": 5, "cmp": 3, "fid": 4, "regr": 4, "of": 5
}  # fmt: skip
"""Of the table, with their least widths."""
LEGEND = """\
over: calls that do not fit; sent: tokens; cost: tokens at the price of fresh input, with the prompt cache;
fid: mean probe fidelity of what left; regr: content needed again; of: its share of all content"""


@click.command("replay")
@click.argument("sessions", nargs=-1, required=True, metavar="SESSION|FILE...")
@click.option("--policy", "policies", multiple=True, help="Eviction policies, comma-separated; `all` for each.")
@click.option("--preset", "presets", multiple=True, help="Presets, comma-separated; `all` for each.")
@click.option("--window", "windows", multiple=True, default=("32k",), show_default=True, help="Sizes: 8k,200k.")
@click.option(
    "--threshold",
    "thresholds",
    multiple=True,
    help="Where eviction begins, such as 0.7, or yellow/orange/red as 0.5/0.7/0.9; comma-separated.",
)
@click.option("--baselines", is_flag=True, help="Also: truncation at the limit, and keeping the last groups.")
@click.option("--keep", multiple=True, help=f"Groups the second baseline keeps [default: {DEFAULT_KEEP_GROUPS}].")
@click.option("--name", help="What to call the result.")
@click.option("--workers", type=click.IntRange(1), help="Processes; one a processor by default.")
@json_option
@store_option
@click.pass_context
@plain_errors
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
    store_path: Path | None,
    baselines: bool,
    as_json: bool,
) -> None:
    """Simulate recorded sessions again and compare.

    Each SESSION of the store, or of each FILE or folder, is managed again under every combination of what is
    named. What people, tools and the model said is taken from the recording; what the window does is simulated.
    A session of the store needs its content captured, else only policies that read none can be replayed. The
    result is printed and stored, apart from all sessions. Exits with 3 when something could not be replayed.

    \b
    Example:
      windowpane replay session.jsonl --policy hybrid,fifo --window 8k,32k --baselines
    """
    if not _split(windows):
        raise click.BadParameter("names no size", param_hint="--window")
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
        raise Refused(str(error)) from error
    sources, unread = _sources(sessions, store_path)
    matrix = _run(sources, setups, workers=workers, quiet=as_json)
    matrix = replace(matrix, failures=(*unread, *matrix.failures))
    stored = to_stored_replay(matrix, name=name or _name(sources), at=time.time())
    if matrix.runs:
        with open_to_write(store_path) as store:
            store.save_replay(stored)
            store.flush()
    if as_json:
        print_json(_document(stored))
    else:
        _print(matrix, stored)
    if matrix.failures:
        ctx.exit(EXIT_PARTIAL if matrix.runs else EXIT_FAILED)


def _split(given: Sequence[str]) -> list[str]:
    return [part.strip() for text in given for part in text.split(",") if part.strip()]


def _groups(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise click.BadParameter(f"{text!r} is no number of groups", param_hint="--keep")
    return int(text)


def _sources(
    sessions: Sequence[str], store_path: Path | None
) -> tuple[list[RecordingSource], list[ReplayFailure]]:
    """Files and folders as they are, anything else as the beginning of a stored session's id.

    A file that cannot be read stops the others only where there are none.
    """
    found: list[RecordingSource] = []
    unread: list[ReplayFailure] = []
    for session in sessions:
        if Path(session).exists():
            try:
                found += find_recordings([Path(session)])
            except SourceError as error:
                unread.append(ReplayFailure(session, "", error.problem))
            continue
        with open_to_read(store_path) as store:
            found.append(StoreSource(store.path, pick_session(store, session).session_id))
    if not found:
        told = "\n".join(formats.plain(f"{one.session}: {one.reason}") for one in unread)
        raise click.ClickException(told or "no recorded session in what was named")
    return list(dict.fromkeys(found)), unread


def _name(sources: Sequence[RecordingSource]) -> str:
    first = sources[0].name
    return first if len(sources) == 1 else f"{first} and {len(sources) - 1} more"


def _run(
    sources: Sequence[RecordingSource], setups: Sequence[ReplaySetup], *, workers: int | None, quiet: bool
) -> ReplayMatrix:
    columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=24), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=quiet) as bar:
        task = bar.add_task("replaying", total=None)

        def tell(session: str, done: int, total: int) -> None:
            bar.update(task, description=session[:40], completed=done, total=total)

        return run_matrix(sources, setups, workers=workers, progress=tell)


def _document(stored: StoredReplay) -> dict[str, Any]:
    return {**asdict(stored.row), "results": [asdict(run) for run in stored.runs]}


def _print(matrix: ReplayMatrix, stored: StoredReplay) -> None:
    found = summarize_runs(matrix.runs)
    if found:
        print_table(replay_table(found))
        click.echo(f"\n{LEGEND}")
        sessions = formats.count(stored.row.sessions, "session")
        click.echo(f"{sessions}, stored as replay {stored.row.id}")
    if any(run.note for run in matrix.runs):
        note = next(run.note for run in matrix.runs if run.note)
        click.echo(f"some sessions: {note}")
    for line in stored.row.notes[:NOTES_SHOWN]:
        click.echo(formats.plain(f"not replayed: {line}"), err=True)
    if len(stored.row.notes) > NOTES_SHOWN:
        click.echo(f"and {len(stored.row.notes) - NOTES_SHOWN} more; --json lists them all", err=True)


def replay_table(found: Sequence[SetupSummary]) -> Table:
    """One row a setup, within 100 columns."""
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("under", no_wrap=True, overflow="ellipsis", min_width=14, max_width=24)
    for column, width in COLUMNS.items():
        table.add_column(column, justify="right", no_wrap=True, min_width=width)
    for one in found:
        setup = one.setup
        zones = "" if setup.thresholds is None else f" {setup.thresholds.orange:g}"
        table.add_row(
            f"{setup.name}{zones}", format_window(setup.limit_tokens), f"{one.overflows:,}",
            formats.tokens_short(one.tokens_sent), formats.tokens_short(one.cost_tokens),
            formats.dollars(one.cost_dollars), f"{one.evicted_blocks:,}", f"{one.compressions:,}",
            formats.ratio(one.fidelity), f"{one.regrets:,}", _percent(one.regret_ratio),
        )  # fmt: skip
    return table


def _percent(ratio: float | None) -> str:
    return formats.UNKNOWN if ratio is None else f"{ratio:.1%}"
