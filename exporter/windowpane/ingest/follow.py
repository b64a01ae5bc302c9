"""Follows a recording that is still being written: only what is new is read.

A JSON Lines file is read once from its beginning; from then on each look reads from where the last one ended, as
long as what stood before is unchanged. The reader and the sessions stay where they were, so the events are those
an import of the longer file would have made. A file that shrank or was rewritten is read from the beginning.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, Protocol, runtime_checkable

from windowpane.core.events import Event
from windowpane.sources.json_lines import parse_rows
from windowpane.sources.playback import DeferredPlayer, PlaybackSettings
from windowpane.sources.reader import MAXIMUM_RECORD_BYTES, FileStats, Problem
from windowpane.sources.records import Record, SessionOpened
from windowpane.sources.transcript import Transcript

PIECE_BYTES: Final = 8 * 2**20
CHECKED_BYTES: Final = 4_096
"""Of the beginning, and of what stood before the last offset: enough to notice that a file was rewritten."""
MAXIMUM_PROBLEMS: Final = 100
"""Problems remembered of one followed file."""


@runtime_checkable
class LineReader(Protocol):
    """A reader whose files grow line by line."""

    @property
    def format(self) -> str:
        """Its name."""
        ...

    def transcript(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Transcript:
        """One pass over the file, to be fed rows."""
        ...


class Rewritten(Exception):  # noqa: N818  # not an error: the caller reads from the beginning
    """What was read of the file is no longer what stands there."""


class _Mark(NamedTuple):
    """By what a file is known to be the one that was read."""

    inode: int
    head: bytes
    before: bytes
    """Digest of what stands before the offset."""


@dataclass(slots=True)
class FollowedFile:
    """One growing file, its transcript, and the sessions in it."""

    path: Path
    reader: LineReader
    playback: PlaybackSettings
    offset: int = 0
    """Bytes that were read, to the end of a line."""
    problems: list[Problem] = field(default_factory=list)
    _transcript: Transcript | None = None
    _stages: dict[str, DeferredPlayer] = field(default_factory=dict)
    _current: DeferredPlayer | None = None
    _emitted: list[Event] = field(default_factory=list)
    _line: int = 0
    _mark: _Mark | None = None

    def read(self) -> list[Event]:
        """The events of what was written since the last call; all sessions', in the order they were written.

        Raises `Rewritten` where what was read has changed, and `OSError` when the file cannot be read.
        """
        with self.path.open("rb") as file:
            self._check(file)
            file.seek(self.offset)
            while lines := _whole_lines(file, skip=self._skip):
                self.offset += len(lines)
                self._feed(lines)
                file.seek(self.offset)
            self._mark = _mark(file, self.offset)
        for record in () if self._transcript is None else self._transcript.pause():
            self._take(record)
        for stage in self._stages.values():
            stage.flush()
        del self.problems[:-MAXIMUM_PROBLEMS]
        emitted, self._emitted[:] = self._emitted.copy(), []
        return emitted

    def _skip(self, skipped: int) -> None:
        """A line over the cap is passed over."""
        self.problems.append(Problem(str(self.path), self._line + 1, "", f"a line of {skipped:,} bytes skipped"))
        self.offset += skipped
        self._line += 1

    def _check(self, file: BinaryIO) -> None:
        if self._mark is not None and _mark(file, self.offset) != self._mark:
            raise Rewritten(str(self.path))

    def _feed(self, lines: bytes) -> None:
        if self._transcript is None:
            stats = FileStats()
            self._transcript = self.reader.transcript(self.path, stats=stats, problems=self.problems)
        transcript = self._transcript
        for record in transcript.feed(parse_rows(lines, transcript.log, after_line=self._line)):
            self._take(record)
        self._line += lines.count(b"\n")

    def _take(self, record: Record) -> None:
        if isinstance(record, SessionOpened):
            stage = self._stages.get(record.session_key)
            if stage is None:
                stage = DeferredPlayer(record.session_key, self.reader.format, self.playback, self._emitted)
                self._stages[record.session_key] = stage
            self._current = stage
        if self._current is not None:
            self._current.play(record)


def _whole_lines(file: BinaryIO, *, skip: Callable[[int], None]) -> bytes:
    """The next lines up to about 8 MB, each whole; empty where no line has ended."""
    lines = file.read(PIECE_BYTES)
    while lines and b"\n" not in lines:
        if len(lines) > MAXIMUM_RECORD_BYTES:
            skipped = len(lines)
            while piece := file.readline(PIECE_BYTES):
                skipped += len(piece)
                if piece.endswith(b"\n"):
                    skip(skipped)
                    lines = file.read(PIECE_BYTES)
                    break
            else:
                return b""
            continue
        more = file.read(PIECE_BYTES)
        if not more:
            return b""
        lines += more
    return lines[: lines.rfind(b"\n") + 1]


def _mark(file: BinaryIO, offset: int) -> _Mark:
    status = os.fstat(file.fileno())
    file.seek(0)
    head = blake2b(file.read(min(CHECKED_BYTES, offset))).digest()
    file.seek(max(0, offset - CHECKED_BYTES))
    return _Mark(status.st_ino, head, blake2b(file.read(min(CHECKED_BYTES, offset))).digest())
