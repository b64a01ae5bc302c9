"""Aider's log of analytics (`--analytics-log`): the usage and price of every message, without any content."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Final

from windowpane.models.wire.usage import CHAT
from windowpane.sources.transcripts.json_document import MAXIMUM_NAME_CHARS, compact, record_digest
from windowpane.sources.transcripts.json_lines import EARLIEST, LATEST, count, dollars, head_rows, mapping, text
from windowpane.sources.transcripts.reader import ProblemLog
from windowpane.sources.transcripts.records import Cleared, ModelCalled, SessionClosed, SessionOpened
from windowpane.sources.transcripts.transcript import Transcript, TranscriptReader

AGENT: Final = "aider"
_ROW: Final = frozenset({"event", "properties", "user_id", "time"})


class AiderAnalyticsReader(TranscriptReader):
    """Reads the log of analytics."""

    format: ClassVar[str] = "aider"

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether a row is an event of Aider's."""
        del path
        return any(row.keys() >= _ROW for row in head_rows(head)[:5])

    def _start(self, path: Path, log: ProblemLog, *, complete: bool | None) -> Transcript:
        return _Analytics(path, log, complete=complete)


class _Analytics(Transcript):
    def __init__(self, path: Path, log: ProblemLog, *, complete: bool | None) -> None:
        super().__init__(path, log, complete=complete)
        self._launched: tuple[str, float | None] | None = None
        """Key and time of a launch whose first message is not sent yet."""
        self._open = False
        self._called = False

    @property
    def settled(self) -> bool:
        return self._called

    @property
    def opened(self) -> bool:
        return self._open

    def read_row(self, row: dict[str, Any]) -> None:
        self.stats.messages += 1
        self.stats.content_chars += len(compact(row)) + 1
        event, at = text(row.get("event")), self.at(_seconds(row.get("time")))
        if event == "launched" or (event == "cli session" and self._launched is None and not self._open):
            self._launched, self._open = (self._key(row), at), False
        elif event == "message_send":
            self._send(row, mapping(row.get("properties")), at)
        elif event in ("command_clear", "command_reset") and self._open:
            self.out.append(Cleared(at))
        elif event == "exit" and self._open:
            self.out.append(SessionClosed("completed", at))
            self._open = False

    def finish(self) -> None:
        """Every row is whole, so nothing is due; what the log never states is reported once."""
        if self.complete and self._called:
            self.log.unstated("any content, nor which chat a message is of where several run at once")

    def _key(self, row: dict[str, Any]) -> str:
        return record_digest([row.get("user_id"), row.get("time"), self.line])

    def _send(self, row: dict[str, Any], properties: dict[str, Any], at: float | None) -> None:
        model = text(properties.get("main_model"))[:MAXIMUM_NAME_CHARS]
        if not self._open:
            key, launched_at = self._launched or (self._key(row), at)
            self._launched, self._open, self._called = None, True, True
            self.stats.sessions += 1
            self.out.append(SessionOpened(key, AGENT, model, at=launched_at))
        prompt, completion = count(properties.get("prompt_tokens")), count(properties.get("completion_tokens"))
        stats = self.stats
        stats.user_turns += 1
        stats.api_calls += 1
        stats.peak_context = max(stats.peak_context, prompt)
        stats.add_usage(
            prompt_tokens=prompt, completion_tokens=completion, total_tokens=count(properties.get("total_tokens"))
        )
        self.out.append(ModelCalled(CHAT.read_sent(properties), model, dollars(properties.get("cost")), at=at))


def _seconds(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and EARLIEST <= value <= LATEST:
        return float(value)
    return None
