"""Imports recordings into a store, file by file; a bad file never stops the rest."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from windowpane.core.events import Event
from windowpane.exceptions import SourceError, StoreError, UnknownFormatError
from windowpane.sources.discovery import files_of, reader_for
from windowpane.sources.playback import PlaybackSettings, session_events, session_keys
from windowpane.sources.reader import FileStats, Problem, Reader
from windowpane.sources.records import Record
from windowpane.store.records import ImportOutcome

_log: Final = logging.getLogger(__name__)

KEPT_RECORDS_BYTES: Final = 32 * 2**20
"""Files up to this size are read once and their records kept; larger ones are read again for each session."""


class SessionStore(Protocol):
    """What importing needs of a store."""

    def import_session(self, events: Callable[[], Iterable[Event]]) -> ImportOutcome:
        """Store a recorded session, given what makes its whole event sequence."""
        ...


class Progress(Protocol):
    """Told of every file before it is read."""

    def __call__(self, path: Path, *, number: int, total: int) -> None:
        """*path* is file *number* of *total*, from 1."""
        ...


@dataclass(slots=True)
class FileReport:
    """What became of one file."""

    path: Path
    format: str | None = None
    """None where no reader recognised it."""
    stats: FileStats = field(default_factory=FileStats)
    problems: list[Problem] = field(default_factory=list)
    outcomes: list[ImportOutcome] = field(default_factory=list)
    error: str = ""
    """Why nothing, or not everything, of the file could be stored."""
    left_out: str = ""
    """Why a file that was found in a folder, and not named, was passed over."""
    unknown: bool = False
    """No reader recognised it."""

    @property
    def partial(self) -> bool:
        """Whether something of the file is not in the store."""
        return bool(self.error) or any(problem.severity == "bad" for problem in self.problems)


def import_paths(
    paths: Iterable[Path],
    store: SessionStore,
    *,
    playback: PlaybackSettings,
    readers: Sequence[Reader],
    progress: Progress | None = None,
) -> list[FileReport]:
    """Import every recording among *paths* and below the folders among them; a report a file.

    A file of no known format that was not named but found in a folder is reported and is no error.
    """
    paths = list(paths)
    named = {path for path in paths if not path.is_dir()}
    files = list(files_of(paths))
    reports = []
    for number, path in enumerate(files, 1):
        if progress is not None:
            progress(path, number=number, total=len(files))
        report = import_file(path, store, playback=playback, readers=readers)
        if report.unknown and path not in named:
            report.left_out, report.error = report.error, ""
        reports.append(report)
    return reports


def import_file(
    path: Path, store: SessionStore, *, playback: PlaybackSettings, readers: Sequence[Reader]
) -> FileReport:
    """Import one recording; what goes wrong is in the report."""
    report = FileReport(path)
    try:
        _import(path, store, playback, readers, report)
    except UnknownFormatError as error:
        report.error, report.unknown = error.problem, True
    except SourceError as error:
        report.error = error.problem
    except OSError as error:
        report.error = error.strerror or "cannot be read"
    except Exception as error:  # noqa: BLE001
        # A fault of ours in one file must not cost the user all the others.
        _log.exception("importing %s failed", path)
        report.error = f"internal error, please report it: {error!r:.200}"
    return report


def _import(
    path: Path, store: SessionStore, playback: PlaybackSettings, readers: Sequence[Reader], report: FileReport
) -> None:
    reader = reader_for(path, readers)
    report.format = reader.format
    recording = _Recording(path, reader, report)
    for key in recording.keys:
        try:
            report.outcomes.append(store.import_session(recording.factory(key, playback)))
        except StoreError as error:
            report.error = f"session {key}: {error}"


class _Recording:
    """The records of one file, to be gone through several times."""

    def __init__(self, path: Path, reader: Reader, report: FileReport) -> None:
        self._path = path
        self._reader = reader
        self._kept: list[Record] | None = None
        records = reader.read(path, stats=report.stats, problems=report.problems)
        if path.stat().st_size <= KEPT_RECORDS_BYTES:
            self._kept = list(records)
            records = iter(self._kept)
        self.keys = session_keys(records)

    def factory(self, key: str, playback: PlaybackSettings) -> Callable[[], Iterable[Event]]:
        """What makes the event sequence of one session, as often as it is called."""

        def events() -> Iterable[Event]:
            return session_events(self._records(), key=key, source=self._reader.format, playback=playback)

        return events

    def _records(self) -> Iterable[Record]:
        if self._kept is not None:
            return self._kept
        return self._reader.read(self._path, stats=FileStats(), problems=[])
