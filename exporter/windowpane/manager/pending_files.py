"""The files of one session, written in the background: originals stay readable until they are written.

An original that could not be written stays readable in this process, within a bounded memory.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from windowpane.core.protocols import Archive
from windowpane.effects.background_writer import BackgroundWriter
from windowpane.effects.commands import CommandResult
from windowpane.exceptions import UnfinishedWriteError
from windowpane.manager.plans.notes import Note, NoteStore

MAXIMUM_CHARACTERS: Final = 32_000_000
"""Characters of originals in memory; the oldest are dropped first."""


class PendingOriginals:
    """Originals on their way to the archive."""

    def __init__(self, writer: BackgroundWriter, archive: Archive, session_id: str) -> None:
        self._writer = writer
        self._archive = archive
        self._session_id = session_id
        self._lock = threading.Lock()  # guards the texts, which the writer's thread removes
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._characters = 0

    def put(self, items: Sequence[tuple[str, str]]) -> CommandResult:
        """Archive the texts by handle; succeeds for a write that is under way, because they can be retrieved."""
        if not items:
            return CommandResult()
        for handle, text in items:
            self._remember(handle, text)
        result = self._writer.run(lambda: self._write(items), characters=sum(len(text) for _, text in items))
        if isinstance(result.error, UnfinishedWriteError):
            return CommandResult()
        if result.failed:
            for handle, text in items:
                self._forget(handle, text)
        return result

    def get(self, handle: str) -> str | None:
        """Return the original, from memory while it is not written yet."""
        with self._lock:
            text = self._texts.get(handle)
        return self._archive.get(self._session_id, handle) if text is None else text

    def _write(self, items: Sequence[tuple[str, str]]) -> None:
        for handle, text in items:
            self._archive.put(self._session_id, handle, text)
            self._forget(handle, text)

    def _remember(self, handle: str, text: str) -> None:
        with self._lock:
            self._characters += len(text) - len(self._texts.pop(handle, ""))
            self._texts[handle] = text
            while self._characters > MAXIMUM_CHARACTERS:
                self._characters -= len(self._texts.popitem(last=False)[1])

    def _forget(self, handle: str, text: str) -> None:
        with self._lock:
            if self._texts.get(handle) is text:  # else it was replaced meanwhile
                self._characters -= len(self._texts.pop(handle))


class BackgroundNotes:
    """A `NoteStore` that saves in the background."""

    def __init__(self, store: NoteStore, writer: BackgroundWriter) -> None:
        self._store = store
        self._writer = writer

    def load(self) -> Sequence[Note]:
        """Return the stored notes, oldest first."""
        return self._store.load()

    def save(self, notes: Sequence[Note]) -> None:
        """Replace the stored notes. Raises what the store raises, if that is known soon."""
        saved = tuple(notes)
        result = self._writer.run(
            lambda: self._store.save(saved), characters=sum(len(note.text) for note in saved)
        )
        if result.error is not None and not isinstance(result.error, UnfinishedWriteError):
            raise result.error
