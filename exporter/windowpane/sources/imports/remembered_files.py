"""The memory of an importer: a file that did not change costs a look at its metadata, and is not read again.

It is valid for one release and one set of settings, and while the store holds the sessions of the file.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from windowpane.core.decoders import json_decoder
from windowpane.core.version import package_version
from windowpane.exceptions import StoreError
from windowpane.sources.imports.file_report import FileReport
from windowpane.sources.transcripts.reader import FileStats, Problem
from windowpane.store.read_files import FileState, ReadFile
from windowpane.store.records import ImportOutcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windowpane.alerts.rules import Rule
    from windowpane.sources.transcripts.playback_settings import PlaybackSettings

_log: Final = logging.getLogger(__name__)

MAXIMUM_PROBLEMS: Final = 100
"""A file with more problems is read each time, so that all are listed."""


class StoredSession(Protocol):
    """The part of a session's row that shows whether the store still has it."""

    @property
    def revision(self) -> int:
        """Its revision."""
        ...

    @property
    def events(self) -> int:
        """The number of its events."""
        ...


class RememberedResults(Protocol):
    """The part of a store that returns what is remembered of files."""

    def read_file(self, path: str) -> ReadFile | None:
        """Return a remembered file."""
        ...

    def session(self, session_id: str) -> StoredSession | None:
        """Return one session, or None."""
        ...


class FileMemory(RememberedResults, Protocol):
    """The part of a store that remembers files."""

    @property
    def captures(self) -> bool:
        """Texts are stored."""
        ...

    def remember_file(self, path: str, read: ReadFile) -> None:
        """Remember a file."""
        ...


class _Result(msgspec.Struct):
    """The result of reading a file."""

    format: str | None
    stats: FileStats
    problems: list[Problem]
    sessions: list[ImportOutcome]
    events: list[int]
    """Events that the store held of each session."""
    error: str = ""
    unknown: bool = False


_encoder: Final = msgspec.json.Encoder()
_decoder: Final = json_decoder(_Result)


class RememberedFiles:
    """The files that a store remembers, as far as they were read with the same settings."""

    def __init__(
        self,
        store: FileMemory,
        playback: PlaybackSettings,
        *,
        rules: Sequence[Rule] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._reading = _reading(playback, rules, captures=store.captures)
        self._clock = clock

    def state(self, path: Path) -> FileState | None:
        """Return the state of a file that is finished; None for one that may still grow, or cannot be read."""
        from windowpane.sources.transcripts.discovery import (
            stamp,  # loads all readers, which a report does not need
        )
        from windowpane.sources.transcripts.transcript import IDLE_SECONDS

        try:
            inode, present = path.stat().st_ino, stamp(path)
        except OSError:
            return None
        if self._clock() - present.mtime_ns / 1e9 <= IDLE_SECONDS:
            return None
        return FileState(inode, present.size, present.mtime_ns, self._reading)

    def report(self, path: Path, state: FileState) -> FileReport | None:
        """Return the report on a file that is in the same state as when it was read, else None."""
        return remembered_report(self._store, path, state)

    def remember(self, path: Path, state: FileState, report: FileReport) -> None:
        """Remember the report on a file that was in *state* before it was read; not one that failed."""
        failed = report.error and not report.unknown
        if failed or len(report.problems) > MAXIMUM_PROBLEMS:
            return
        rows = [self._store.session(outcome.session_id) for outcome in report.outcomes]
        events = [0 if row is None else row.events for row in rows]
        result = _Result(
            report.format, report.stats, report.problems, report.outcomes, events, report.error, report.unknown
        )
        try:
            self._store.remember_file(str(path), ReadFile(state, _encoder.encode(result)))
        except StoreError as error:
            _log.warning("%s: will be read again: %s", path, error)


def remembered_report(store: RememberedResults, path: Path, state: FileState) -> FileReport | None:
    """Return the report on a file that is in the same state as when it was read, else None."""
    read = store.read_file(str(path))
    if read is None or read.state != state:
        return None
    try:
        result = _decoder.decode(read.report)
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError):
        return None
    if not all(map(partial(_holds, store), result.sessions, result.events)):
        return None
    outcomes = [_unchanged(outcome) for outcome in result.sessions]
    return FileReport(
        path, result.format, result.stats, result.problems, outcomes, result.error, unknown=result.unknown
    )


def _holds(store: RememberedResults, outcome: ImportOutcome, events: int) -> bool:
    """Return whether the store still has a session, or more of it."""
    row = store.session(outcome.session_id)
    return row is not None and row.revision == outcome.revision and row.events >= events


def _unchanged(outcome: ImportOutcome) -> ImportOutcome:
    stored = outcome.appended + outcome.unchanged
    return ImportOutcome(
        outcome.session_id, outcome.revision, 0, stored,
        revised=False, is_shorter=outcome.is_shorter, turns=outcome.turns, stated_id=outcome.stated_id,
    )  # fmt: skip


def _reading(playback: PlaybackSettings, rules: Sequence[Rule] | None, *, captures: bool) -> str:
    """Return a digest of everything but the file that events depend on."""
    settings = (
        package_version(), playback.limit_tokens, playback.agent, playback.model, playback.settings,
        playback.thresholds, playback.evaluate is None, playback.first_message_titles, rules, captures,
    )  # fmt: skip
    return blake2b(repr(settings).encode(), digest_size=16).hexdigest()
