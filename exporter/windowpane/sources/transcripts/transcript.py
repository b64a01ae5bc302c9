"""The base of the JSON Lines readers: one pass over a file, which turns rows into records."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from windowpane.sources.transcripts.inherited import InheritedHistory
from windowpane.sources.transcripts.json_lines import HEAD_LINES, JsonRow, instant, read_rows
from windowpane.sources.transcripts.reader import FileStats, Problem, ProblemLog
from windowpane.sources.transcripts.records import Broken, Record

IDLE_SECONDS: Final = 120.0
"""A file without a write for so long is finished: no model streams a reply more slowly."""
MAXIMUM_DEFERRED: Final = 2_000
"""Records deferred at most until the model is known."""
MAXIMUM_UNKNOWN: Final = 100
"""Unknown types of rows and of content that are reported, each once per file."""
MAXIMUM_BROKEN: Final = 10
"""Lost lines that become `Broken` records; further ones are reported as problems only."""
BACKWARDS_SECONDS: Final = 60.0
"""Rows may be out of order by so much without being reported."""
MAXIMUM_LATENCY_SECONDS: Final = 3_600.0
"""A longer time between a request and its reply includes a pause of the user."""


class GrowingReader:
    """A reader of recordings that their tool may still write."""

    def __init__(self, *, complete: bool | None = None) -> None:
        """*complete* is whether recordings are finished; None: those that are idle (`is_idle`)."""
        self._complete = complete

    def _is_complete(self, path: Path, updated_at: float | None = None) -> bool:
        return is_idle(path, updated_at=updated_at) if self._complete is None else self._complete


class TranscriptReader(GrowingReader, ABC):
    """A reader of JSON Lines: one pass over a file, at once or as it is written."""

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Yield the file's records in order. Raises `SourceError` only when it cannot be opened."""
        return self.transcript(path, stats=stats, problems=problems).records()

    def transcript(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Transcript:
        """Return one pass over the file, to be fed rows as they are written."""
        return self._start(path, ProblemLog(path, stats, problems), complete=self._complete)

    @abstractmethod
    def _start(self, path: Path, log: ProblemLog, *, complete: bool | None) -> Transcript:
        """Return a pass of the reader's format."""


class Transcript(ABC):
    """The state of reading one file; a subclass per format reads the rows.

    Records are added to `out` in the order in which content entered the window. With *complete* a model call or a
    compaction that is open at the end of the file is closed; without, it is deferred, because more may follow,
    and so is a session whose model is unknown so far.
    """

    def __init__(self, path: Path, log: ProblemLog, *, complete: bool | None) -> None:
        self.path = path
        self.log = log
        self.stats = log.stats
        self._complete = complete
        self._dated: dict[str, Any] = {}
        """The last row that states its time."""
        self.out: list[Record] = []
        self.line = 0
        self._model = ""
        """The model of the session, once a row has named it."""
        self._latest: float | None = None
        self._broken: list[Broken] = []
        self._broken_count = 0
        self._is_named = False
        """A row has named the session, or too many have not."""
        self._before_name: list[tuple[int, dict[str, Any]]] = []
        """Rows, with their lines, that are read after the one that names the session."""
        self._releasing = False
        """Records are released as they are made: the model is known, or enough were deferred."""
        self._unknown: set[str] = set()
        self.inherited: InheritedHistory | None = None
        """The history that a fork repeats, while its rows are read."""

    @abstractmethod
    def read_row(self, row: dict[str, Any]) -> None:
        """Add the records of one row to `out`."""

    def names_session(self, row: dict[str, Any]) -> bool:
        """Return whether *row* names the session; it is read before the rows above it that would open one."""
        del row
        return True

    def opens_session(self, row: dict[str, Any]) -> bool:
        """Return whether a session is opened for *row* where none is open."""
        del row
        return True

    @abstractmethod
    def finish(self) -> None:
        """Add the records that are due at the end of the file, or of the rows so far."""

    def end_repeated(self) -> None:  # noqa: B027  # most formats have nothing that is open between two rows
        """Add the records that are due at the end of the rows that a fork repeats."""

    @property
    def complete(self) -> bool:
        """Return whether the file is finished, by its age and that of the last row that was read."""
        if self._complete is None:
            return is_idle(self.path, updated_at=instant(self._dated.get("timestamp")))
        return self._complete

    @property
    def settled(self) -> bool:
        """Return whether the session's model is known; the first events depend on it."""
        return bool(self._model)

    @property
    def awaits_other_file(self) -> bool:
        """Return whether another file states the end of what is deferred, which then changes without this one."""
        return False

    @property
    @abstractmethod
    def opened(self) -> bool:
        """Return whether a session is open that a lost line can belong to."""

    def records(self, rows: Iterable[JsonRow] | None = None) -> Iterator[Record]:
        """Yield the records in order: of *rows*, by default those of the file."""
        out = self.out
        for row in read_rows(self.path, self.log) if rows is None else rows:
            if self._step(row):
                yield from out
                out.clear()
        self._finish()
        if not self._releasing and not self.complete and not self.settled:
            self.report_deferred("the session, whose model is not known yet, is")
            return
        if self.opened:
            self._add_broken()
        yield from out
        out.clear()

    def feed(self, more: Iterable[JsonRow]) -> list[Record]:
        """Return the records of *more* rows of a growing file, in order; what may still grow is deferred."""
        records: list[Record] = []
        for row in more:
            if self._step(row):
                records += self.out
                self.out.clear()
        return records

    def pause(self) -> list[Record]:
        """Return the records that are complete at the end of the rows so far; more may follow."""
        assert not self.complete, "a file that is fed is not finished"
        self._finish()
        if not self._releasing and not self.settled:
            return []
        records = self.out.copy()
        self.out.clear()
        return records

    def _step(self, row: JsonRow) -> bool:
        """Read one row; returns whether `out` can be released."""
        self.line = row.line
        if row.value is None:
            self._lose(row)
        else:
            if "timestamp" in row.value:
                self._dated = row.value
            self._take_named(row.value)
        if self._broken and self.opened:
            self._add_broken()
        return bool(self.out) and (self._releasing or self._release())

    def _take_named(self, row: dict[str, Any]) -> None:
        """Read a row, or defer it until one names the session."""
        if not self._is_named:
            self._is_named = self.names_session(row)
            if not self._is_named and self.opens_session(row):
                self._before_name.append((self.line, row))
                if len(self._before_name) >= HEAD_LINES:
                    self._take_before_name()
                return
        self._take(row)
        if self._is_named and self._before_name:
            self._take_before_name()

    def _take_before_name(self) -> None:
        """Read the rows above the one that names the session; they are not of what a fork repeats."""
        self._is_named, line = True, self.line
        rows, self._before_name = self._before_name, []
        for self.line, row in rows:
            if self.inherited is None:
                self._take(row)
            else:
                self.read_row(row)
        self.line = line

    def _take(self, row: dict[str, Any]) -> None:
        inherited, start = self.inherited, len(self.out)
        if inherited is not None and not inherited.repeats(row):
            self._end_inherited(inherited)
            inherited = None
        self.read_row(row)
        if inherited is not None:
            self.out[start:] = inherited.add(self.out[start:])

    def _end_inherited(self, inherited: InheritedHistory) -> None:
        """Add the content that a fork starts with."""
        start = len(self.out)
        self.end_repeated()
        self.out[start:] = [*inherited.add(self.out[start:]), *inherited.contents()]
        self.inherited = None
        if inherited.is_required and not inherited.repeated:
            self.report_copied("", "differs from it")

    def report_unknown(self, kind: str, what: str = "rows", field: str = "type") -> None:
        """Report that *what* of an unknown type, which a later release may write, are skipped; once per type."""
        if kind not in self._unknown and len(self._unknown) < MAXIMUM_UNKNOWN:
            self._unknown.add(kind)
            self.log.odd(self.line or None, field, f"{what} of the unknown type {kind[:64]!r} are skipped")

    def report_copied(self, field: str, reason: str) -> None:
        """Report that the calls that a fork repeats count in both sessions."""
        self.log.odd(
            self.line,
            field,
            f"a fork of another session, whose file {reason}: the calls it repeats count here too",
        )

    def _finish(self) -> None:
        if self._before_name and self.complete:
            self._take_before_name()
        if self.inherited is None:
            self.finish()
        elif self.complete:
            self._end_inherited(self.inherited)
            self.finish()

    def at(self, when: float | None) -> float | None:
        """Return *when*; a time before the rows above it is reported."""
        if when is None:
            return None
        if self._latest is None or when >= self._latest:
            self._latest = when
        elif when < self._latest - BACKWARDS_SECONDS:
            self.log.odd(
                self.line, "timestamp", f"out of order: {self._latest - when:.0f} s before a row above it"
            )
            self._latest = when
        return when

    def report_deferred(self, what: str) -> None:
        """Report *what* is deferred, where only the file's age decided it."""
        if self._complete is None:
            self.log.odd(None, "", f"{what} held back: the file was just written to and may go on")

    def _release(self) -> bool:
        self._releasing = self.settled or len(self.out) >= MAXIMUM_DEFERRED
        return self._releasing

    def _lose(self, row: JsonRow) -> None:
        if (row.last and not self.complete) or self._broken_count >= MAXIMUM_BROKEN:
            return
        self._broken_count += 1
        self._broken.append(Broken(row.lost, row.line))

    def _add_broken(self) -> None:
        self.out.extend(self._broken)
        self._broken.clear()


def is_idle(path: Path, *, updated_at: float | None = None) -> bool:
    """Return whether the file had no write for two minutes, or was deleted.

    *updated_at* is when the session last changed, where the recording states it: a copy is younger than that.
    """
    now = time.time()
    if updated_at is not None and now - updated_at > IDLE_SECONDS:
        return True
    try:
        return now - path.stat().st_mtime > IDLE_SECONDS
    except OSError:
        return True


def latency_seconds(started_at: float | None, ended_at: float | None) -> float | None:
    """Return the time between both; None where one is unknown, or where it is negative or over an hour."""
    if started_at is None or ended_at is None or not 0 <= ended_at - started_at <= MAXIMUM_LATENCY_SECONDS:
        return None
    return ended_at - started_at


def unnamed_key(row: dict[str, Any]) -> str:
    """Return a session key made of the content of *row*, for a recording without an id."""
    return f"unnamed-{blake2b(repr(row)[:4_096].encode(errors='replace'), digest_size=8).hexdigest()}"
