"""The readers of Gemini CLI's two formats: one document per session, and JSON Lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from windowpane.sources.transcripts.formats.gemini.session import GeminiSession
from windowpane.sources.transcripts.json_document import DocumentLog, load_list, shape_of
from windowpane.sources.transcripts.json_lines import head_rows, instant
from windowpane.sources.transcripts.reader import FileStats, Problem, ProblemLog
from windowpane.sources.transcripts.records import Record
from windowpane.sources.transcripts.transcript import GrowingReader, Transcript, TranscriptReader


class GeminiDocumentReader(GrowingReader):
    """Reads sessions of releases that rewrite one JSON document per session."""

    format: ClassVar[str] = "gemini_cli"

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether the file is an object with a session, a project and messages."""
        del path
        paths = shape_of(head)
        return {"sessionId", "projectHash"} <= paths and bool(paths & {"messages", "startTime", "lastUpdated"})

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Yield the records of the session. Raises `SourceError` when the file holds no messages."""
        log = DocumentLog(path, stats, problems)
        document = load_list(path, log, of="messages")
        complete = self._is_complete(path, instant(document.value.get("lastUpdated")))
        session = GeminiSession(path, log, complete=complete)
        session.read_row({name: value for name, value in document.value.items() if name != "messages"})
        for message in document.items("messages"):
            session.location = f"{message.path}."
            session.read_row(message.value)
            if session.settled:
                yield from session.out
                session.out.clear()
        session.finish()
        if session.complete or session.settled:
            yield from session.out
        else:
            session.report_deferred("the session, whose model is not known yet, is")


class GeminiLinesReader(TranscriptReader):
    """Reads sessions of releases that append rows."""

    format: ClassVar[str] = "gemini_cli"

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether a row is a header with a session and a project."""
        del path
        return any(
            "sessionId" in row and "projectHash" in row and "messages" not in row for row in head_rows(head)
        )

    def _start(self, path: Path, log: ProblemLog, *, complete: bool | None) -> Transcript:
        return GeminiSession(path, log, complete=complete)
