"""Outlines of the sessions that an import has not read yet, beside the store; loaded without the readers.

They are there while the import runs: the pages of a dashboard list these sessions, and read one that is opened.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from windowpane.sources.imports.note_file import Note, NoteFile

SUFFIX: Final = ".outlines.json"
MAXIMUM_SESSIONS: Final = 50_000
"""Sessions that are noted, the latest ones: about 20 MB."""


class SessionOutline(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Statements of a recording about a session; what only playing it shows is absent."""

    session_id: str
    file: str
    agent: str
    model: str = ""
    parent_session_id: str | None = None
    title: str = ""
    folder: str = ""
    repository: str = ""
    branch: str = ""
    first_at: float | None = None
    last_at: float | None = None
    calls: int | None = None
    """None where the calls have to be played to be counted; likewise the values below."""
    compactions: int | None = None
    last_tokens: int | None = None
    """Tokens that the last call sent."""
    limit_tokens: int | None = None
    """The size of the window, where the recording states it."""
    cost_dollars: float | None = None
    """Cost of what the recording states of its calls."""
    is_cost_partial: bool = False
    """Of some calls only the start of the output is stated: they cost more."""
    first_call: str = ""
    """The provider's id of its first call, which a fork of the session repeats."""


class _Outlines(Note, frozen=True):
    """The outlines of the sessions that are not read yet."""

    outlines: list[SessionOutline]
    is_complete: bool = False
    """Every session that is not read yet is noted, or is beyond the maximum."""


class OutlineFile(NoteFile[_Outlines]):
    """The outlines of an import into the store beside *base*."""

    def __init__(self, base: Path) -> None:
        super().__init__(base.with_name(base.name + SUFFIX), _Outlines)
        self._outlines: dict[str, list[SessionOutline]] = {}
        """By file."""
        self._first_calls = Counter[str]()
        self._reading = ""
        self._is_complete = False

    def add(self, file: Path, outlines: list[SessionOutline]) -> None:
        """Note the sessions of a file."""
        self._outlines[str(file)] = outlines
        self._first_calls.update(one.first_call for one in outlines if one.first_call)
        self.write(self._note)

    def start_reading(self, file: Path) -> None:
        """Forget the sessions of the file that was read before this one."""
        read, self._reading = self._reading, str(file)
        if self._outlines.pop(read, None):
            self.write(self._note)

    def finish(self, *, is_complete: bool = True) -> None:
        """Note at once all files that have been added; *is_complete* if no other file will be."""
        self._is_complete = is_complete
        self.write(self._note, at_once=True)

    def _note(self) -> _Outlines:
        outlines = [self._noted(one) for several in self._outlines.values() for one in several]
        return _Outlines(outlines[:MAXIMUM_SESSIONS], self._is_complete, pid=os.getpid())

    def _noted(self, outline: SessionOutline) -> SessionOutline:
        """Return an outline, without its cost where another session repeats its calls, which count once."""
        return outline if self._first_calls[outline.first_call] < 2 else replace(outline, cost_dollars=None)


def outlined_sessions(base: Path) -> list[SessionOutline]:
    """Return the sessions that the import running into the store beside *base* has not read yet."""
    note = OutlineFile(base).read()
    return [] if note is None else note.outlines
