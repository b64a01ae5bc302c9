"""The events that `opencode run --format json` prints, saved to a file: the parts of the replies as they end.

Neither the messages of the user nor the model are printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

from windowpane.sources.transcripts.formats.opencode.session import Message, OpencodeSession
from windowpane.sources.transcripts.json_document import DocumentLog, JsonObject
from windowpane.sources.transcripts.json_lines import head_rows, mapping, read_rows, text
from windowpane.sources.transcripts.reader import FileStats, Problem
from windowpane.sources.transcripts.records import Record

_EVENTS: Final = frozenset({"error", "reasoning", "step_finish", "step_start", "text", "tool_use"})

Json = dict[str, Any]


class OpencodeStreamReader:
    """Reads printed events, of one run or of several."""

    format: ClassVar[str] = "opencode"

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether a row is an event with a session and a part."""
        del path
        return any(_is_event(row) and isinstance(row.get("part"), dict) for row in head_rows(head))

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Yield the records of all sessions, one after the other."""
        log = DocumentLog(path, stats, problems)
        sessions: dict[str, dict[str, list[Json]]] = {}
        """The events of each message of each session."""
        for row in read_rows(path, log):
            if row.value is None:
                continue
            if not _is_event(row.value):
                log.odd_line(row.line, "type", "expected an event of opencode with its session")
                continue
            messages = sessions.setdefault(row.value["sessionID"], {})
            name = text(mapping(row.value.get("part")).get("messageID")) or next(reversed(messages), "")
            messages.setdefault(name, []).append(row.value)
        for session_id, messages in sessions.items():
            info = JsonObject({"id": session_id}, f"session {session_id}", log)
            yield from OpencodeSession(stats, complete=True).read(info, _messages(messages, log))
        log.unstated("the messages of the user, nor the model")


def _is_event(row: Json) -> bool:
    return text(row.get("type")) in _EVENTS and isinstance(row.get("sessionID"), str) and "timestamp" in row


def _messages(messages: dict[str, list[Json]], log: DocumentLog) -> Iterator[Message]:
    for name, events in messages.items():
        times = {"created": events[0]["timestamp"], "completed": events[-1]["timestamp"]}
        info: Json = {"id": name, "role": "assistant", "time": times}
        parts = [event["part"] for event in events if isinstance(event.get("part"), dict)]
        for finished in (part for part in parts if part.get("type") == "step-finish"):
            info["tokens"] = _sum(mapping(info.get("tokens")), mapping(finished.get("tokens")))
        info |= _error(events)
        path = f"message {name}"
        yield Message(JsonObject(info, path, log), [JsonObject(part, f"{path}.parts", log) for part in parts])


def _sum(totals: Json, step: Json) -> Json:
    """Return the counts of the message with those of another step."""
    summed = dict(totals)
    for name, value in step.items():
        if isinstance(value, dict):
            summed[name] = _sum(mapping(totals.get(name)), value)
        elif isinstance(value, int) and not isinstance(value, bool):
            summed[name] = value + (totals.get(name) or 0)
    return summed


def _error(events: Iterable[Json]) -> Json:
    errors = [mapping(event.get("error")) for event in events if event["type"] == "error"]
    return {"error": {"name": text(errors[-1].get("name")) or "error"}} if errors else {}
