"""`windowpane import`: read recorded sessions into the store."""

from __future__ import annotations

import os
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from windowpane.cli.documents import Document
from windowpane.cli.options import (
    EXIT_FAILED,
    EXIT_PARTIAL,
    capture_option,
    json_option,
    limit_option,
    open_to_write,
    project_config,
    project_option,
    recording_folders,
    report_errors,
    store_option,
)
from windowpane.cli.output import frameless_table, print_json, print_table, progress_bar
from windowpane.core.characters import plain
from windowpane.exceptions import StoreError, WindowpaneError
from windowpane.sources.hooks import failed_import
from windowpane.sources.hooks.input import configured_store
from windowpane.sources.transcripts.reader import FileStats
from windowpane.store.records import ImportOutcome
from windowpane.text import formats

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.table import Table

    from windowpane.alerts.rules import Rule
    from windowpane.config.schema import Config
    from windowpane.core.store_names import StoreName
    from windowpane.sources.imports.file_report import FileReport
    from windowpane.sources.imports.importer import Outlines, Progress
    from windowpane.sources.imports.workers import ReadingWorkers
    from windowpane.sources.transcripts.playback_settings import AgentSettings, PlaybackSettings
    from windowpane.store.store import Store

MAXIMUM_PROBLEMS = 20
COMPARED_SESSIONS = 200
"""New sessions that are compared with sessions of other sources."""


class ImportOptions(NamedTuple):
    """The options on which stored events depend."""

    limit_tokens: int | None = None
    agent: str | None = None
    model: str = ""
    project: str | None = None
    capture: bool = False
    live: bool = False
    """The settings of the agent count for a live session only, which its hook imports."""


@click.command("import")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path, exists=True))
@limit_option
@click.option("--agent", help="Name of the agent; by default the tool that recorded the session.")
@click.option("--model", default="", help="Model of recordings that do not name one.")
@project_option
@capture_option
@click.option("--session", help="Read only the recording of this session, by its id.")
@click.option("--newest-first", is_flag=True, help="Store the latest sessions first, to look at them early.")
@click.option("--live", is_flag=True, hidden=True, help="A hook of the agent starts this import.")
@json_option
@store_option
@click.pass_context
@report_errors
def command(
    ctx: click.Context,
    paths: tuple[Path, ...],
    limit_tokens: int | None,
    agent: str | None,
    model: str,
    *,
    project: str | None,
    capture: bool,
    session: str | None,
    newest_first: bool,
    live: bool,
    as_json: bool,
    store_path: StoreName | None,
) -> None:
    """Read recorded sessions from PATHS (files or folders) into the store.

    Without PATHS the default folders of the supported tools are read. The format is detected from the content.
    Importing again reads only the files that changed, and adds only new
    events. Exits with 3 when some files could not be read, with 1 when none could.

    \b
    Example:
      windowpane import ~/.claude/projects --capture
    """
    options = ImportOptions(limit_tokens, agent, model, project, capture, live)
    chosen = paths or recording_folders()
    if session is not None:
        chosen = [_recording_of(session, chosen)]
    store_file = configured_store(None if store_path is None else str(store_path))
    if not os.path.exists(store_file):  # noqa: PTH110  # pathlib is slow
        _load_workers(chosen)
    from windowpane.sources.imports.last_import import import_key, unchanged_reports  # meanwhile

    key = import_key(chosen, options._asdict())
    reports = unchanged_reports(store_file, key)
    if reports is None:
        with recorded_failure() if live else nullcontext():
            reports = import_recordings(
                chosen, key, store_path, options, newest_first=newest_first, quiet=as_json
            )
    if live:
        failed_import.record(next((f"{one.file}: {one.error}" for one in reports if _is_failure(one)), ""))
    if not reports:
        from windowpane.sources.transcripts.discovery import SUFFIXES  # loads all readers

        searched = ", ".join(map(str, chosen))
        raise click.ClickException(
            f"no recording in {searched}; expected files that end in {', '.join(sorted(SUFFIXES))}"
        )
    if as_json:
        print_json([report_document(report) for report in reports])
    else:
        _print(reports)
    ctx.exit(_exit_code(reports))


@contextmanager
def recorded_failure() -> Iterator[None]:
    """Keep the reason for the next hook where an import fails that no one sees."""
    try:
        yield
    except (WindowpaneError, OSError, click.ClickException) as error:
        failed_import.record(str(error))
        raise


def _is_failure(report: FileReport) -> bool:
    """Return whether a transcript was not stored, other than one without a row that shows its format yet."""
    return bool(report.error) and not report.unknown


def _load_workers(paths: Sequence[Path]) -> None:
    """Load what workers need while this process loads the rest, where so much will be read."""
    from windowpane.sources.imports.worker_processes import load_workers, worthwhile
    from windowpane.sources.transcripts.discovery import files_of

    if worthwhile(files_of(paths)):
        load_workers()


def _workers(store: Store, playback: PlaybackSettings, rules: Sequence[Rule]) -> ReadingWorkers:
    from windowpane.sources.imports.workers import ReadingWorkers  # not needed for one session of a hook

    return ReadingWorkers(store, playback=playback, rules=rules)


def _recording_of(session: str, paths: Sequence[Path]) -> Path:
    from windowpane.sources.transcripts.discovery import recording_of  # loads all readers

    recording = recording_of(session, paths)
    if recording is None:
        searched = ", ".join(map(str, paths))
        raise click.ClickException(f"no recording named by {plain(session)} in {searched}")
    return recording


def import_recordings(
    paths: Sequence[Path],
    key: str,
    store_path: StoreName | None,
    options: ImportOptions,
    *,
    newest_first: bool = False,
    quiet: bool = False,
) -> list[FileReport]:
    """Import what has changed, and remember the import under *key*."""
    from windowpane.config.paths import local_base
    from windowpane.effects.processes import rare_collection
    from windowpane.sources.imports.last_import import LastImport
    from windowpane.sources.imports.noted_outlines import OutlineFile
    from windowpane.sources.imports.progress import ProgressFile, another_import

    config = project_config(options.project)
    last_import = LastImport(key, paths)
    with (
        rare_collection(),
        open_to_write(store_path, capture=options.capture) as store,
        progress_bar(quiet=quiet) as progress,
        ProgressFile(local_base(store.address)) as note,
        OutlineFile(local_base(store.address)) as outlines,
    ):
        task = progress.add_task("reading", total=None)

        def index() -> int:
            # what another import has stored meanwhile is much, and that one indexes it
            return 0 if another_import(local_base(store.address)) else store.index_text()

        def show(path: Path, *, number: int, total: int) -> None:
            progress.update(task, description=path.name[:40], completed=number - 1, total=total)
            note.show(number - 1, total)
            outlines.start_reading(path)
            with suppress(StoreError):  # indexed at the end
                index()

        def outline(paths: Sequence[Path], *, are_last: bool) -> None:
            from windowpane.sources.imports.outline import outlined_files
            from windowpane.sources.imports.worker_processes import load_workers, worthwhile

            if worthwhile(paths):
                load_workers()  # meanwhile
            done = outlined_files(paths, first_message_titles=config.store.first_message_titles)
            for number, (path, sessions) in enumerate(done, 1):
                outlines.add(path, sessions)
                progress.update(task, description="listing sessions", completed=number, total=len(paths))
            outlines.finish(is_complete=are_last)

        reports = _read(
            paths, store, config, options, newest_first=newest_first, progress=show,
            outline=outline if newest_first and options == ImportOptions() else None,
        )  # fmt: skip
        progress.update(task, completed=len(reports), description="indexing for search")
        while index():
            progress.refresh()
        last_import.remember(store, reports)
        store.flush()
        unidentified = _unidentified(store, reports)
    if unidentified:
        click.echo(unidentified, err=True)
    return reports


def _read(
    paths: Sequence[Path],
    store: Store,
    config: Config,
    options: ImportOptions,
    *,
    newest_first: bool,
    progress: Progress,
    outline: Outlines | None,
) -> list[FileReport]:
    from windowpane.alerts.rules import configured
    from windowpane.sources.imports.importer import import_paths
    from windowpane.sources.imports.pipeline import AlertingStore, playback_settings
    from windowpane.sources.imports.remembered_files import RememberedFiles
    from windowpane.sources.transcripts.discovery import all_readers

    rules = configured(**config.alert_settings())
    playback = playback_settings(
        store.digester(),
        limit_tokens=options.limit_tokens,
        agent=options.agent,
        model=options.model,
        config=config,
        history=store.earlier_sessions,
        stored_projects=store.stored_project,
        agent_settings=_agent_settings() if options.live else None,
    )
    with nullcontext() if options.live else _workers(store, playback, rules) as workers:
        return import_paths(
            paths,
            AlertingStore(store, rules=rules),
            playback=playback,
            readers=all_readers(),
            progress=progress,
            memory=RememberedFiles(store, playback, rules=rules),
            workers=workers,
            newest_first=newest_first,
            outline=outline,
        )


def _agent_settings() -> AgentSettings:
    from windowpane.sources.installed_agents.settings import LocalSettings

    return LocalSettings(os.environ)


class FileDocument(Document):
    """The import of one file."""

    file: str
    format: str | None
    stats: FileStats
    problems: tuple[str, ...]
    sessions: tuple[ImportOutcome, ...]
    error: str | None
    left_out: str | None
    partial: bool


def report_document(report: FileReport) -> FileDocument:
    """Return the report of one file as a document."""
    return FileDocument.of(
        report,
        problems=tuple(map(str, report.problems)),
        sessions=tuple(report.outcomes),
        error=report.error or None,
        left_out=report.skipped or None,
    )


def _unidentified(store: Store, reports: Sequence[FileReport]) -> str:
    """Return that sessions may count twice, since no id shows that other sources recorded them; else nothing."""
    new = [outcome.session_id for report in reports for outcome in report.outcomes if outcome.appended]
    del new[COMPARED_SESSIONS:]
    pairs = [(session_id, match) for session_id in new if (match := store.unidentified_record(session_id))]
    if not pairs:
        return ""
    session_id, (other, source) = pairs[0]
    return (
        f"{formats.count(len(pairs), 'session')} may be recorded by another source too, such as {session_id} by "
        f"{source} ({other}): their calls have no ids to compare, so both count"
    )


def _exit_code(reports: Sequence[FileReport]) -> int:
    if not any(report.format for report in reports):
        return EXIT_FAILED
    if not any(report.partial for report in reports):
        return 0
    return EXIT_PARTIAL if any(report.outcomes for report in reports) else EXIT_FAILED


def _print(reports: Sequence[FileReport]) -> None:
    recognized = [report for report in reports if not (report.unknown and not report.error)]
    if recognized:
        print_table(report_table(recognized))
    differing = _differing_turns(reports)
    if differing:
        click.echo(plain(differing))
    problems = [str(problem) for report in reports for problem in report.problems]
    problems += [f"{report.file}: {report.error}" for report in reports if report.error]
    problems += [
        f"{report.file}: session {outcome.session_id} is stored with more turns and another past; nothing changed"
        for report in reports
        for outcome in report.outcomes
        if outcome.is_shorter
    ]
    problems += [
        f"{report.file}: stored as session {outcome.session_id}: another session with the id "
        f"{outcome.stated_id}, and no call in common, was stored before"
        for report in reports
        for outcome in report.outcomes
        if outcome.stated_id
    ]
    problems += [f"{report.file}: skipped: {report.skipped}" for report in reports if report.skipped]
    for problem in problems[:MAXIMUM_PROBLEMS]:
        click.echo(plain(problem), err=True)
    if len(problems) > MAXIMUM_PROBLEMS:
        click.echo(f"and {len(problems) - MAXIMUM_PROBLEMS} more; --json lists them all", err=True)
    sessions = sum(len(report.outcomes) for report in reports)
    new = sum(outcome.appended for report in reports for outcome in report.outcomes)
    revised = sum(outcome.revised for report in reports for outcome in report.outcomes)
    summary = f"{formats.count(sessions, 'session')}, {new:,} new events"
    click.echo(summary + (f", {revised} with a changed past (stored as a new revision)" if revised else ""))


def _differing_turns(reports: Sequence[FileReport]) -> str:
    """Return a note about recordings with other numbers of turns than of reported calls; empty without any."""
    turns = [(sum(outcome.turns for outcome in report.outcomes), report) for report in reports]
    differing = [(number, report) for number, report in turns if number != report.stats.api_calls]
    if not differing:
        return ""
    number, report = differing[0]
    more = f" ({len(differing) - 1} more files differ too)" if len(differing) > 1 else ""
    return (
        f"{Path(report.file).name} has {formats.count(number, 'turn')} but reports "
        f"{formats.count(report.stats.api_calls, 'call')}{more}. No action is needed: a recording may lack "
        "the report of a call, or its reply."
    )


def report_table(reports: Sequence[FileReport]) -> Table:
    """Return the files as a table of at most 80 columns, one row each."""
    from rich.text import Text

    numbers = {"sess": 4, "turns": 5, "tools": 5, "cmp": 3, "rem": 3, "peak": 5, "bad": 3, "new": 6}
    table = frameless_table({"file": (None, 24), "format": (11, 14)}, numbers)
    for report in reports:
        stats = report.stats
        turns = sum(outcome.turns for outcome in report.outcomes)
        new = sum(outcome.appended for outcome in report.outcomes)
        table.add_row(
            Text(plain(Path(report.file).name)), report.format or formats.UNKNOWN, f"{len(report.outcomes)}",
            f"{turns:,}", f"{stats.tool_calls:,}", f"{stats.compactions}", f"{stats.evictions}",
            formats.tokens_short(stats.peak_context) if stats.peak_context else formats.UNKNOWN,
            f"{stats.bad_lines}", f"{new:,}",
        )  # fmt: skip
    return table
