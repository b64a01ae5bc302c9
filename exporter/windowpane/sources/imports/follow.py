"""Follows a recording that is still being written, and reads only its new lines.

A JSON Lines file is read once from its start; each later read starts where the last one ended, as long as the
text before is unchanged. The state of the reader and of the sessions is retained, so the events are those of an
import of the longer file. A file that shrank or was rewritten is read from its start.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, Protocol, runtime_checkable

from windowpane.core.characters import encodable
from windowpane.core.events import Event
from windowpane.sources.transcripts.json_lines import parse_rows
from windowpane.sources.transcripts.playback import DeferredPlayer
from windowpane.sources.transcripts.playback_settings import PlaybackSettings
from windowpane.sources.transcripts.reader import MAXIMUM_RECORD_BYTES, FileStats, Problem
from windowpane.sources.transcripts.records import Record, SessionOpened
from windowpane.sources.transcripts.transcript import Transcript

PIECE_BYTES: Final = 2**20
"""Lines that are read at once, whose records and events are held together."""
CHECKED_BYTES: Final = 4_096
"""Bytes at the start, and before the last offset, whose digests show that a file was not rewritten."""
MAXIMUM_PROBLEMS: Final = 100
"""Problems listed of one followed file, the latest."""


@runtime_checkable
class LineReader(Protocol):
    """A reader whose files grow line by line."""

    @property
    def format(self) -> str:
        """Its name."""
        ...

    def transcript(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Transcript:
        """Return one pass over the file, to be fed rows."""
        ...


class Rewritten(Exception):  # noqa: N818  # not an error: the caller reads from the start
    """The part of the file that was read has changed."""


class _Mark(NamedTuple):
    """The identity of a file as far as it was read."""

    inode: int
    head: bytes
    before: bytes
    """Digest of the bytes before the offset."""


@dataclass(slots=True)
class FollowedFile:
    """One growing file, its transcript, and the sessions in it."""

    path: Path
    reader: LineReader
    playback: PlaybackSettings
    offset: int = 0
    """Number of bytes that were read, to the end of a line."""
    problems: list[Problem] = field(default_factory=list)
    _transcript: Transcript | None = None
    _players: dict[str, DeferredPlayer] = field(default_factory=dict)
    _current: DeferredPlayer | None = None
    _emitted: list[Event] = field(default_factory=list)
    _line: int = 0
    _mark: _Mark | None = None

    @property
    def awaits_other_file(self) -> bool:
        """Return whether another file states the end of what is deferred: this one is read although unchanged."""
        return self._transcript is not None and self._transcript.awaits_other_file

    def pieces(self, until: float = math.inf) -> Iterator[list[Event]]:
        """Yield the events of the lines written since the last call, of all sessions, in the order of the file.

        There is one list for each piece of the file, up to the offset *until*. Raises `Rewritten` where the part
        that was read has changed, and `OSError` when the file cannot be read.
        """
        with self.path.open("rb") as file:
            self._check(file)
            file.seek(self.offset)
            while self.offset < until and (lines := _whole_lines(file, skip=self._skip)):
                lines = lines[: int(min(len(lines), until - self.offset))]
                self.offset += len(lines)
                self._feed(lines)
                file.seek(self.offset)
                yield self._released()
            self._mark = _mark(file, self.offset)
        for record in () if self._transcript is None else self._transcript.pause():
            self._play(record)
        for player in self._players.values():
            player.flush()
        del self.problems[:-MAXIMUM_PROBLEMS]
        yield self._released()

    def _released(self) -> list[Event]:
        emitted, self._emitted[:] = self._emitted.copy(), []
        return emitted

    def _skip(self, skipped: int) -> None:
        """Skip a line over the cap."""
        problem = f"a line of {skipped:,} bytes skipped"
        self.problems.append(Problem(encodable(str(self.path)), self._line + 1, "", problem))
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
            self._play(record)
        self._line += lines.count(b"\n")

    def _play(self, record: Record) -> None:
        if isinstance(record, SessionOpened):
            player = self._players.get(record.session_key)
            if player is None:
                player = DeferredPlayer(record.session_key, self.reader.format, self.playback, self._emitted)
                self._players[record.session_key] = player
            self._current = player
        if self._current is not None:
            self._current.play(record)


def _whole_lines(file: BinaryIO, *, skip: Callable[[int], None]) -> bytes:
    """Return the next whole lines, a piece or one longer line; empty where no line has ended."""
    while lines := file.read(PIECE_BYTES):
        if b"\n" not in lines:
            lines += file.readline(MAXIMUM_RECORD_BYTES)
        if b"\n" in lines:
            return lines[: lines.rfind(b"\n") + 1]
        if len(lines) <= MAXIMUM_RECORD_BYTES:
            break
        skipped = len(lines)
        while piece := file.readline(PIECE_BYTES):
            skipped += len(piece)
            if piece.endswith(b"\n"):
                skip(skipped)
                break
        else:
            break
    return b""


def _mark(file: BinaryIO, offset: int) -> _Mark:
    status = os.fstat(file.fileno())
    file.seek(0)
    head = blake2b(file.read(min(CHECKED_BYTES, offset))).digest()
    file.seek(max(0, offset - CHECKED_BYTES))
    return _Mark(status.st_ino, head, blake2b(file.read(min(CHECKED_BYTES, offset))).digest())
