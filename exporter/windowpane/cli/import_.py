"""`windowpane import`: recorded sessions into the store."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from windowpane.cli.options import (
    EXIT_FAILED,
    EXIT_PARTIAL,
    json_option,
    open_to_write,
    plain_errors,
    print_json,
    print_table,
    store_option,
)
from windowpane.config.loading import load_config
from windowpane.ingest.importer import FileReport, import_paths
from windowpane.ingest.pipeline import AlertingStore, playback_settings
from windowpane.sources.discovery import SUFFIXES, all_readers, default_places
from windowpane.text import formats

if TYPE_CHECKING:
    from collections.abc import Sequence

PROBLEMS_SHOWN = 20
ENDINGS = sorted(SUFFIXES)


@click.command("import")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path, exists=True))
@click.option("--limit", "limit_tokens", type=click.IntRange(1), help="Size of the context window, in tokens.")
@click.option("--agent", help="Name the sessions' agent instead of the tool that recorded them.")
@click.option("--model", default="", help="Model of the recordings that name none.")
@click.option(
    "--capture", is_flag=True, help="Keep the texts as well, secrets redacted, for diffs and time travel."
)
@json_option
@store_option
@click.pass_context
@plain_errors
def command(
    ctx: click.Context,
    paths: tuple[Path, ...],
    limit_tokens: int | None,
    agent: str | None,
    model: str,
    *,
    capture: bool,
    as_json: bool,
    store_path: Path | None,
) -> None:
    """Read recorded sessions from PATHS (files or folders) into the store.

    Without PATHS the places where the known tools keep their sessions are read. The format is told by content.
    Importing again changes nothing, or adds what is new. Exits with 3 when something could not be read.

    \b
    Example:
      windowpane import ~/.claude/projects --capture
    """
    config = load_config()
    readers = all_readers()
    chosen = paths or default_places(readers)
    if not chosen:
        places = "\n".join(f"  {place}" for reader in readers for place in reader.default_paths())
        raise click.ClickException(
            f"no recordings in the usual places; name a file or folder. Looked in:\n{places}"
        )
    with open_to_write(store_path, capture=capture) as store, _bar(quiet=as_json) as progress:
        playback = playback_settings(
            store.digester(), limit_tokens=limit_tokens, agent=agent, model=model, config=config
        )
        task = progress.add_task("reading", total=None)

        def tell(path: Path, *, number: int, total: int) -> None:
            progress.update(task, description=path.name[:40], completed=number - 1, total=total)

        judged = AlertingStore(store, rules=config.alert_rules())
        reports = import_paths(chosen, judged, playback=playback, readers=readers, progress=tell)
        progress.update(task, completed=len(reports))
        progress.update(task, description="indexing for search")
        while store.index_text():
            progress.refresh()
        store.flush()
    if not reports:
        named = ", ".join(str(path) for path in chosen)
        raise click.ClickException(f"no recording in {named}; expected files that end in {', '.join(ENDINGS)}")
    if as_json:
        print_json([report_document(report) for report in reports])
    else:
        _print(reports)
    ctx.exit(_exit_code(reports))


def report_document(report: FileReport) -> dict[str, Any]:
    """The report of one file as plain JSON types."""
    return {
        "file": str(report.path),
        "format": report.format,
        "stats": asdict(report.stats),
        "problems": [str(problem) for problem in report.problems],
        "sessions": [asdict(outcome) for outcome in report.outcomes],
        "error": report.error or None,
        "left_out": report.left_out or None,
        "partial": report.partial,
    }


def _exit_code(reports: Sequence[FileReport]) -> int:
    if not any(report.partial for report in reports):
        return 0
    return EXIT_PARTIAL if any(report.outcomes for report in reports) else EXIT_FAILED


def _bar(*, quiet: bool) -> Progress:
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=quiet,
    )


def _print(reports: Sequence[FileReport]) -> None:
    found = [report for report in reports if not (report.unknown and not report.error)]
    if found:
        print_table(report_table(found))
    problems = [str(problem) for report in reports for problem in report.problems]
    problems += [f"{report.path}: {report.error}" for report in reports if report.error]
    problems += [f"{report.path}: left out: {report.left_out}" for report in reports if report.left_out]
    for problem in problems[:PROBLEMS_SHOWN]:
        click.echo(formats.plain(problem), err=True)
    if len(problems) > PROBLEMS_SHOWN:
        click.echo(f"and {len(problems) - PROBLEMS_SHOWN} more; --json lists them all", err=True)
    sessions = sum(len(report.outcomes) for report in reports)
    new = sum(outcome.appended for report in reports for outcome in report.outcomes)
    revised = sum(outcome.revised for report in reports for outcome in report.outcomes)
    said = f"{sessions} session{'' if sessions == 1 else 's'}, {new:,} new events"
    click.echo(said + (f", {revised} with a changed past (kept as a new revision)" if revised else ""))


def report_table(reports: Sequence[FileReport]) -> Table:
    """What was found, one row a file, at most 80 columns."""
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("file", no_wrap=True, overflow="ellipsis", max_width=24)
    table.add_column("format", no_wrap=True, overflow="ellipsis", max_width=14, min_width=11)
    widths = {"sess": 4, "calls": 5, "tools": 5, "cmp": 3, "evt": 3, "peak": 5, "bad": 3, "new": 6}
    for name, width in widths.items():
        table.add_column(name, justify="right", no_wrap=True, min_width=width)
    for report in reports:
        stats = report.stats
        table.add_row(
            Text(formats.plain(report.path.name)), report.format or formats.UNKNOWN, f"{len(report.outcomes)}",
            f"{stats.api_calls:,}", f"{stats.tool_calls:,}", f"{stats.compactions}", f"{stats.evictions}",
            formats.tokens_short(stats.peak_context) if stats.peak_context else formats.UNKNOWN,
            f"{stats.bad_lines}", f"{sum(outcome.appended for outcome in report.outcomes):,}",
        )  # fmt: skip
    return table
