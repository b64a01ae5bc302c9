"""The document that `opencode export` writes: one session with all its messages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Final

from windowpane.sources.json_document import DocumentLog, DocumentReader, load_list, shape_of
from windowpane.sources.json_lines import milliseconds
from windowpane.sources.opencode.session import Message, OpencodeSession
from windowpane.sources.reader import FileStats, Problem
from windowpane.sources.records import Record
from windowpane.sources.transcript import is_idle

_SESSION_PATHS: Final = ({"info.id"}, {"info.slug"}, {"info.projectID"}, {"info.directory", "info.time"})


class OpencodeExportReader(DocumentReader):
    """Reads exported sessions, which may still be in progress."""

    format: ClassVar[str] = "opencode"

    def __init__(self, *, complete: bool | None = None) -> None:
        """*complete* is whether files are finished; None: those without a write for two minutes are."""
        self._complete = complete

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether the file is an object with a session's `info`, and messages of `info` and `parts`."""
        del path
        paths = shape_of(head)
        if {"messages[].info", "messages[].parts"} <= paths:
            return True
        return "messages" in paths and any(session <= paths for session in _SESSION_PATHS)

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Yield the records of the session. Raises `SourceError` when the file holds no messages."""
        log = DocumentLog(path, stats, problems)
        document = load_list(path, log, of="messages")
        messages = (
            Message(message.item("info"), list(message.items("parts"))) for message in document.items("messages")
        )
        info = document.item("info")
        complete = self._complete
        if complete is None:
            complete = is_idle(path, updated_at=milliseconds(info.item("time").value.get("updated")))
        session = OpencodeSession(stats, complete=complete)
        yield from session.read(info, messages)
        if session.deferred:
            log.odd(None, "messages", "the last reply is in progress, or none has come; held back")
