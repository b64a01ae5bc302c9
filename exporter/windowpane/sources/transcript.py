"""One pass over one JSON Lines recording: rows in, records out, whatever is in the rows."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from windowpane.sources.json_lines import JsonRow, rows
from windowpane.sources.reader import FileStats, Problem, ProblemLog
from windowpane.sources.records import Broken, Record

IDLE_SECONDS: Final = 120.0
"""A file not written to for so long is taken as finished: no model streams a reply more slowly."""
MAXIMUM_HELD: Final = 2_000
"""Records held back at most until the model is known."""
MAXIMUM_BROKEN: Final = 10
"""Lost lines that are told apart as `Broken`; more are reported as problems only."""
BACKWARDS_SECONDS: Final = 60.0
"""Rows may be written out of order by as much without it being worth a remark."""


class TranscriptReader(ABC):
    """What the readers of JSON Lines share: one pass over a file, at once or as it is written."""

    def __init__(self, *, complete: bool | None = None) -> None:
        """*complete* says whether files are finished; None: those not written to for two minutes are."""
        self._complete = complete

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Records of the file in order. Raises `SourceError` only when it cannot be opened."""
        return self.transcript(path, stats=stats, problems=problems).records()

    def transcript(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Transcript:
        """One pass over the file, for whoever feeds it rows as they are written."""
        return self._begin(path, ProblemLog(path, stats, problems), complete=self._complete)

    @abstractmethod
    def _begin(self, path: Path, reading: ProblemLog, *, complete: bool | None) -> Transcript:
        """The format's own pass."""


class Transcript(ABC):
    """The state of reading one file; a format says what a row means.

    Records go to `out` in the order in which content entered the window. With *complete* a model call or a
    compaction that the file leaves open is closed at its end; without, it is held back, because more may follow,
    and so is a session whose model is not known yet.
    """

    def __init__(self, path: Path, reading: ProblemLog, *, complete: bool | None) -> None:
        self.path = path
        self.reading = reading
        self.stats = reading.stats
        self.complete = _is_idle(path) if complete is None else complete
        self._by_age = complete is None
        self.out: list[Record] = []
        self.line = 0
        self._latest: float | None = None
        self._broken: list[Broken] = []
        self._told = 0
        self._flowing = False

    @abstractmethod
    def take(self, row: dict[str, Any]) -> None:
        """One row of the file."""

    @abstractmethod
    def finish(self) -> None:
        """The file has ended."""

    @property
    @abstractmethod
    def settled(self) -> bool:
        """Whether the session's model is known; the first events depend on it."""

    @property
    @abstractmethod
    def opened(self) -> bool:
        """Whether a session is open that a lost line can be told of."""

    def records(self) -> Iterator[Record]:
        """The file's records in order."""
        out = self.out
        for row in rows(self.path, self.reading):
            if self._step(row):
                yield from out
                out.clear()
        self.finish()
        if not self._flowing and not self.complete and not self.settled:
            self.hold("the session, whose model is not known yet, is")
            return
        if self.opened:
            self._tell()
        yield from out
        out.clear()

    def feed(self, more: Iterable[JsonRow]) -> list[Record]:
        """The records that *more* rows of a growing file make, in order; what may go on is held back."""
        found: list[Record] = []
        for row in more:
            if self._step(row):
                found += self.out
                self.out.clear()
        return found

    def pause(self) -> list[Record]:
        """The records of what is over at the end of the rows so far; more may follow."""
        assert not self.complete, "a file that is fed is not finished"
        self.finish()
        if not self._flowing and not self.settled:
            return []
        found = self.out.copy()
        self.out.clear()
        return found

    def _step(self, row: JsonRow) -> bool:
        """Take one row; whether `out` can go."""
        self.line = row.line
        if row.value is None:
            self._lose(row)
        else:
            self.take(row.value)
        if self._broken and self.opened:
            self._tell()
        return bool(self.out) and (self._flowing or self._begins())

    def at(self, when: float | None) -> float | None:
        """*when*, reported where it lies before what was read already."""
        if when is None:
            return None
        if self._latest is None or when >= self._latest:
            self._latest = when
        elif when < self._latest - BACKWARDS_SECONDS:
            self.reading.odd(
                self.line, "timestamp", f"out of order: {self._latest - when:.0f} s before a row above it"
            )
            self._latest = when
        return when

    def hold(self, what: str) -> None:
        """Say what is held back, where the file's age alone decided it."""
        if self._by_age:
            self.reading.odd(None, "", f"{what} held back: the file was just written to and may go on")

    def _begins(self) -> bool:
        self._flowing = self.settled or len(self.out) >= MAXIMUM_HELD
        return self._flowing

    def _lose(self, row: JsonRow) -> None:
        if (row.last and not self.complete) or self._told >= MAXIMUM_BROKEN:
            return
        self._told += 1
        self._broken.append(Broken(row.lost, row.line))

    def _tell(self) -> None:
        self.out.extend(self._broken)
        self._broken.clear()


def _is_idle(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime > IDLE_SECONDS
    except OSError:
        return True
