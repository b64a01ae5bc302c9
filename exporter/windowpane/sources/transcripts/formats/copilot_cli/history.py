"""Sessions of Copilot CLI's first releases, until October 2025: one document with the messages that it sends.

Beside the messages the document has a timeline of what was shown, which repeats them and is not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from windowpane.sources.transcripts.formats.copilot_cli.reader import AGENT
from windowpane.sources.transcripts.formats.openai_chat import Chat, conversation, opening
from windowpane.sources.transcripts.json_document import (
    DocumentLog,
    document_key,
    load_list,
    record_digest,
    shape_of,
)
from windowpane.sources.transcripts.reader import FileStats, Problem
from windowpane.sources.transcripts.records import Record, SessionOpened


class CopilotHistoryReader:
    """Reads the documents under `~/.copilot/history-session-state`, built from the descriptions of others."""

    format: ClassVar[str] = "copilot_cli"
    experimental: ClassVar[bool] = True

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether the file is an object with a session and its chat messages."""
        del path
        return {"sessionId", "chatMessages"} <= shape_of(head)

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Yield the records of the session. Raises `SourceError` when the file holds no messages."""
        log = DocumentLog(path, stats, problems)
        document = load_list(path, log, of="chatMessages")
        stats.sessions += 1
        key = document.name("sessionId")
        if key is None:
            key = document_key(None, digest=record_digest(opening(document.value["chatMessages"])))
        model = document.name("selectedModel") or ""
        yield SessionOpened(key, AGENT, model, at=document.time("startTime"))
        chat = Chat(stats, calls_are_content=True)
        yield from conversation(document.items("chatMessages"), chat, stats)
        log.unstated("the usage of the calls, nor the times of the messages")
