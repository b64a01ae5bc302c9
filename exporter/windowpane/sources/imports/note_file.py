"""Notes of a running import beside the store, for the pages of a dashboard; loaded without the readers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final, Generic, Self, TypeVar

import msgspec

from windowpane.core.decoders import decode_json
from windowpane.effects.private_files import write_whole
from windowpane.effects.processes import MAXIMUM_PROCESSES, is_running

WRITE_SECONDS: Final = 0.5
"""Time between two notes."""


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A note of an import."""

    pid: Annotated[int, msgspec.Meta(gt=0, lt=MAXIMUM_PROCESSES)]
    """The process that wrote it."""


NoteT = TypeVar("NoteT", bound=Note)
ReadT = TypeVar("ReadT", bound=Note)


class NoteFile(Generic[NoteT]):
    """A note that this process writes, at most every `WRITE_SECONDS`, and removes when its block ends.

    One that cannot be written is not, nor is it while another process that runs has its note there.
    """

    def __init__(self, file: Path, kind: type[NoteT]) -> None:
        self._file = file
        self._kind = kind
        self._next_at = 0.0

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Remove the note, unless it is of another process that runs."""
        if not self._is_of_another():
            with suppress(OSError):
                self._file.unlink(missing_ok=True)

    def read(self) -> NoteT | None:
        """Return the note, if the process that wrote it runs."""
        note = self._read(self._kind)
        return note if note is not None and is_running(note.pid) else None

    def write(self, note: Callable[[], NoteT], *, at_once: bool = False) -> None:
        """Write a note, unless one was just written; *at_once* in any case."""
        if not at_once and time.monotonic() < self._next_at:
            return
        self._next_at = time.monotonic() + WRITE_SECONDS
        if not self._is_of_another():
            with suppress(OSError):
                write_whole(self._file, msgspec.json.encode(note()), is_durable=False)

    def _is_of_another(self) -> bool:
        """Return whether another process that runs has its note there."""
        note = self._read(Note)
        return note is not None and note.pid != os.getpid() and is_running(note.pid)

    def _read(self, kind: type[ReadT]) -> ReadT | None:
        try:
            return decode_json(self._file.read_bytes(), kind)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return None
