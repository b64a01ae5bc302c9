"""Imports recordings into a store, file by file; a bad file never stops the rest."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Final, Protocol

from windowpane.core.events import Event
from windowpane.exceptions import OtherSessionError, SourceError, StoreError, UnknownFormatError
from windowpane.sources.imports.file_report import FileReport
from windowpane.sources.transcripts.databases import DatabaseReader, SessionState
from windowpane.sources.transcripts.discovery import by_start, files_of, reader_for, stamp, unreadable
from windowpane.sources.transcripts.playback import session_events, session_keys
from windowpane.sources.transcripts.playback_settings import PlaybackSettings
from windowpane.sources.transcripts.reader import EXPERIMENTAL, FileStats, Problem, Reader
from windowpane.sources.transcripts.records import Record
from windowpane.store.read_files import FileState
from windowpane.store.records import ImportOutcome

_log: Final = logging.getLogger(__name__)

IN_MEMORY_BYTES: Final = 32 * 2**20
"""Files up to this size are read once into memory; larger ones are read again for each session."""
FIRST_GROUP_BYTES: Final = 8 * 2**20
FIRST_GROUP_FILES: Final = 100
GROUP_BYTES: Final = 64 * 2**20
"""Size of the second of the groups that are read newest first; each further one is twice as large."""
OUTLINED_GROUPS: Final = 2
"""Groups whose sessions are listed before any is read: what takes less than a second."""


class SessionStore(Protocol):
    """The part of a store that the importer uses."""

    def import_session(self, events: Callable[[], Iterable[Event]]) -> ImportOutcome:
        """Store a recorded session. Raises `OtherSessionError` where another one is stored under its id."""
        ...


class ImportMemory(Protocol):
    """The memory of files that were imported; see `remembered_files`."""

    def state(self, path: Path) -> FileState | None:
        """Return the state of a finished file."""
        ...

    def report(self, path: Path, state: FileState) -> FileReport | None:
        """Return the report on a file in a state that was read before."""
        ...

    def remember(self, path: Path, state: FileState, report: FileReport) -> None:
        """Remember the report on a file."""
        ...


class ReadingAhead(Protocol):
    """Processes that read files before their turn, then store and remember them; see `workers`."""

    def start(self, paths: Collection[Path]) -> bool:
        """Start the processes that will read these files; False if the files have to be read here."""
        ...

    def add(self, files: Mapping[Path, FileState | None]) -> None:
        """Read further files, given with their states, in this order."""
        ...

    def import_file(self, path: Path) -> FileReport | None:
        """Return the report on the next file once it is stored; None where it has to be read here."""
        ...


class Outlines(Protocol):
    """A callback that lists the sessions of files before these are read."""

    def __call__(self, paths: Sequence[Path], *, are_last: bool) -> None:
        """List the sessions of *paths*; *are_last* if all sessions are listed then."""
        ...


class Progress(Protocol):
    """A callback before every file."""

    def __call__(self, path: Path, *, number: int, total: int) -> None:
        """Report that *path* is read, file *number* of *total*, from 1."""
        ...


def import_paths(
    paths: Iterable[Path],
    store: SessionStore,
    *,
    playback: PlaybackSettings,
    readers: Sequence[Reader],
    progress: Progress | None = None,
    memory: ImportMemory | None = None,
    workers: ReadingAhead | None = None,
    newest_first: bool = False,
    outline: Outlines | None = None,
) -> list[FileReport]:
    """Import every recording among *paths* and below the folders among them; returns a report per file.

    They are read in the order in which they started, and reported in the order of their names. A file of unknown
    format, and what is not a file at all, is an error if *paths* contains it, and skipped if it
    comes from a folder. *workers* read ahead in other processes, and what is stored is the same. *newest_first*
    reads them in groups, the latest changed first; it learns less from earlier sessions. *outline* is called with
    the files of the first groups before these are read, and with the rest after the first group.
    """
    paths = list(paths)
    given = {path for path in paths if not path.is_dir()}
    files = list(files_of(paths))
    reports = {path: reason for path in files if path not in given and (reason := _skipped(path)) is not None}
    recordings = [path for path in files if path not in reports]
    read = partial(_read, store=store, playback=playback, readers=readers, memory=memory)
    groups = list(groups_by_change(recordings)) if newest_first else [recordings]
    changed: dict[Path, FileState | None] = {}
    for path in chain.from_iterable(groups):
        state, report = _remembered(path, memory)
        if report is None:
            changed[path] = state
        else:
            reports[path] = report
    newest, older = (
        [path for path in chain.from_iterable(several) if path in changed]
        for several in (groups[:OUTLINED_GROUPS], groups[OUTLINED_GROUPS:])
    )
    if outline is not None:
        outline(newest, are_last=not older)
    ahead = workers if workers is not None and workers.start(changed) else None
    number = 0
    for position, group in enumerate(groups):
        if position == 1 and outline is not None and older:
            outline(older, are_last=True)
        ordered = by_start(group)
        if ahead is not None:
            ahead.add({path: changed[path] for path in ordered if path in changed})
        for path in ordered:
            number += 1
            if progress is not None:
                progress(path, number=number, total=len(recordings))
            if path in changed:
                report = None if ahead is None else ahead.import_file(path)
                reports[path] = report or read(path, changed[path])
            if path not in given:
                reports[path].skip_unknown()
    return [reports[path] for path in files]


def groups_by_change(files: Sequence[Path]) -> Iterator[list[Path]]:
    """Yield the files in groups of growing size, the latest changed first.

    The first group is small, so that something is stored at once: it has no large file.
    """
    statuses = []
    for path in files:
        try:
            status = path.stat()
        except OSError:
            continue
        statuses.append((status.st_mtime, status.st_size, path))
    statuses.sort(key=itemgetter(0), reverse=True)
    first, size = [], 0
    for _, bytes_, path in statuses:
        if bytes_ <= FIRST_GROUP_BYTES // 2 and size + bytes_ <= FIRST_GROUP_BYTES:
            first.append(path)
            size += bytes_
        if size > FIRST_GROUP_BYTES // 2 or len(first) >= FIRST_GROUP_FILES:
            break
    yield first
    in_first = set(first)
    group: list[Path] = []
    size, limit = 0, GROUP_BYTES
    for _, bytes_, path in statuses:
        if path not in in_first:
            group.append(path)
            size += bytes_
        if size >= limit:
            yield group
            group, size, limit = [], 0, 2 * limit
    yield group
    yield sorted(set(files) - {path for _, _, path in statuses})


def _skipped(path: Path) -> FileReport | None:
    """Return the report on a file that is not one to read."""
    reason = unreadable(path)
    return FileReport(path, skipped=reason, unknown=True) if reason else None


def _remembered(path: Path, memory: ImportMemory | None) -> tuple[FileState | None, FileReport | None]:
    """Return the state of a file, and the report on it if it was read in this state."""
    state = None if memory is None else memory.state(path)
    return state, None if memory is None or state is None else memory.report(path, state)


def import_file(
    path: Path,
    store: SessionStore,
    *,
    playback: PlaybackSettings,
    readers: Sequence[Reader],
    memory: ImportMemory | None = None,
    imported: dict[str, SessionState] | None = None,
    since: float | None = None,
) -> FileReport:
    """Import one recording, unless *memory* has a report on it as it is; errors are in the report.

    *imported* holds the states of the sessions of a database that were imported: those that have others since are
    read, and added to it. Those without a change since *since* are not.
    """
    state, report = _remembered(path, memory)
    return report or _read(
        path,
        state,
        store=store,
        playback=playback,
        readers=readers,
        memory=memory,
        imported=imported,
        since=since,
    )


def _read(
    path: Path,
    state: FileState | None,
    store: SessionStore,
    *,
    playback: PlaybackSettings,
    readers: Sequence[Reader],
    memory: ImportMemory | None,
    imported: dict[str, SessionState] | None = None,
    since: float | None = None,
) -> FileReport:
    """Import one recording, and remember the report on it in the state before."""
    report = read_file(FileReport(path), store, playback, readers, imported=imported, since=since)
    if memory is not None and state is not None and not report.partly:
        memory.remember(path, state, report)
    return report


def read_file(
    report: FileReport,
    store: SessionStore,
    playback: PlaybackSettings,
    readers: Sequence[Reader],
    *,
    imported: dict[str, SessionState] | None = None,
    since: float | None = None,
) -> FileReport:
    """Import the recording that *report* is on, and fill it meanwhile."""
    path = report.path
    try:
        reader = reader_for(path, readers)
        report.format = reader.format
        if getattr(reader, "experimental", False):
            report.problems.append(Problem(report.file, None, "", f"{reader.format}: {EXPERIMENTAL}", "odd"))
        if isinstance(reader, DatabaseReader):
            _import_database(
                reader, store, playback, report, imported={} if imported is None else imported, since=since
            )
        else:
            recording = _Recording(path, reader, report)
            _import_sessions(recording, store, playback, report)
    except Exception as error:  # noqa: BLE001
        # An internal error in one file must not prevent the import of the others.
        if not isinstance(error, SourceError | OSError):
            _log.exception("importing %s failed", path)
        report.error, report.unknown = problem_of(error), isinstance(error, UnknownFormatError)
    return report


def problem_of(error: Exception) -> str:
    """Return the reason, for a report, why a file could not be read."""
    if isinstance(error, SourceError):
        return error.problem
    if isinstance(error, OSError):
        return error.strerror or "cannot be read"
    return f"internal error, please report it: {error!r:.200}"


def _import_database(
    reader: DatabaseReader,
    store: SessionStore,
    playback: PlaybackSettings,
    report: FileReport,
    *,
    imported: dict[str, SessionState],
    since: float | None,
) -> None:
    """Import the sessions of a database, one after the other; one that cannot be read never stops the rest."""
    for name, state in reader.sessions(report.path).items():
        is_old = since is not None and state.changed_at is not None and state.changed_at < since
        if is_old or imported.get(name) == state:
            report.partly = True
            continue
        try:
            recording = _DatabaseSession(name, reader, report)
        except SourceError as error:
            report.error = f"session {name}: {error.problem}"
            continue
        _import_sessions(recording, store, playback, report)
        imported[name] = state


def _import_sessions(
    recording: _Sessions, store: SessionStore, playback: PlaybackSettings, report: FileReport
) -> None:
    distinct_ids: dict[str, str] = {}
    playback = replace(playback, distinct_ids=distinct_ids)
    for key in recording.keys:
        try:
            events = RecordedEvents(recording.factory(key, playback), distinct_ids)
            report.outcomes.append(events.store_with(partial(store.import_session, events)))
        except StoreError as error:
            report.error = f"session {key}: {error}"


@dataclass(frozen=True, slots=True)
class RecordedEvents:
    """All events of one session of a recording, as often as it is called."""

    play: Callable[[], Iterable[Event]]
    distinct_ids: dict[str, str]
    """The distinct ids of the recording's sessions, with which it is played."""

    def __call__(self) -> Iterable[Event]:
        """Return the events."""
        return self.play()

    def store_with(self, store: Callable[[], ImportOutcome]) -> ImportOutcome:
        """Store the session, under a distinct id where another session has its own."""
        stated_id = ""
        while True:
            try:
                outcome = store()
            except OtherSessionError as error:
                if error.session_id in self.distinct_ids:
                    raise
                stated_id = stated_id or error.session_id
                self.distinct_ids[error.session_id] = error.distinct_id
            else:
                return replace(outcome, stated_id=stated_id) if stated_id else outcome


class _Sessions(Protocol):
    """Records with one or more sessions."""

    keys: tuple[str, ...]

    def factory(self, key: str, playback: PlaybackSettings) -> Callable[[], Iterable[Event]]:
        """Return a function that yields all events of one session, as often as it is called."""
        ...


class _DatabaseSession:
    """The records of one session of a database, and of the sub-agents in it."""

    def __init__(self, name: str, reader: DatabaseReader, report: FileReport) -> None:
        self._format = reader.format
        self._records = list(reader.read_session(report.path, name, stats=report.stats, problems=report.problems))
        self.keys = session_keys(self._records)

    def factory(self, key: str, playback: PlaybackSettings) -> Callable[[], Iterable[Event]]:
        """Return a function that yields all events of one session, as often as it is called."""
        return lambda: session_events(self._records, key=key, source=self._format, playback=playback)


class _Recording:
    """The records of one file, which can be iterated several times."""

    def __init__(self, path: Path, reader: Reader, report: FileReport) -> None:
        self._path = path
        self._reader = reader
        self._records_read: list[Record] | None = None
        records = reader.read(path, stats=report.stats, problems=report.problems)
        if stamp(path).size <= IN_MEMORY_BYTES:
            self._records_read = list(records)
            records = iter(self._records_read)
        self.keys = session_keys(records)

    def factory(self, key: str, playback: PlaybackSettings) -> Callable[[], Iterable[Event]]:
        """Return a function that yields all events of one session, as often as it is called."""

        def events() -> Iterable[Event]:
            return session_events(self._records(), key=key, source=self._reader.format, playback=playback)

        return events

    def _records(self) -> Iterable[Record]:
        if self._records_read is not None:
            return self._records_read
        return self._reader.read(self._path, stats=FileStats(), problems=[])
