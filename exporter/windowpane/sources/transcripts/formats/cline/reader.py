"""The reader of the task folders of Cline and Roo Code.

Built from the source of both; no recording was available.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from windowpane.exceptions import SourceError
from windowpane.sources.installed_agents.locations import CLINE, CLINE_EXTENSIONS, ROO
from windowpane.sources.transcripts.formats.cline.task import Task
from windowpane.sources.transcripts.json_document import (
    DocumentLog,
    JsonObject,
    load_document,
    load_list,
    shape_of,
)
from windowpane.sources.transcripts.json_lines import mapping, milliseconds, sequence, text
from windowpane.sources.transcripts.reader import FileStats, Problem
from windowpane.sources.transcripts.records import Record, SessionDescribed, SessionOpened

HISTORY: Final = "api_conversation_history.json"
SHOWN: Final = "ui_messages.json"
METADATA: Final = "task_metadata.json"
ITEM: Final = "history_item.json"
"""Of Roo Code: title, folder and parent of the task."""
EARLIER_SHOWN: Final = "claude_messages.json"
"""The name of the messages to the user in releases of 2024."""
FILES: Final = (HISTORY, SHOWN, EARLIER_SHOWN, METADATA, ITEM, "context_history.json", "settings.json")
"""Files of a task; the last two hold nothing of the window."""


class ClineReader:
    """Reads a folder of a task: the messages that were sent, and beside them those that the user sees."""

    format: ClassVar[str] = "cline"
    experimental: ClassVar[bool] = True

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether the file is the list of a task's messages."""
        return path.name == HISTORY and not shape_of(head).isdisjoint({"[].role", "messages[].role"})

    @staticmethod
    def parts(folder: Path, files: Sequence[str]) -> list[str]:
        """Return the files of a task, if its messages are among *files*."""
        del folder
        return [name for name in FILES if name in files] if HISTORY in files else []

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Yield the records of the task. Raises `SourceError` when its messages cannot be read."""
        folder = path.parent if path.name == HISTORY else path
        log = DocumentLog(folder, stats, problems)
        history = load_list(folder / HISTORY, log, of="messages")
        visible = sequence(_beside(folder / SHOWN, log) or _beside(folder / EARLIER_SHOWN, log))
        metadata = mapping(_beside(folder / METADATA, log))
        item = mapping(_beside(folder / ITEM, log))
        models = sorted(_models(metadata))
        messages = [JsonObject(message.value, message.path, log) for message in history.items("messages")]
        times = [milliseconds(message.value.get("ts")) for message in messages]
        agent = _agent(folder, item)
        stats.sessions += 1
        yield SessionOpened(
            folder.name,
            agent,
            models[0][1] if models else "",
            text(item.get("parentTaskId")) or None,
            at=next((at for at in times if at is not None), None),
            agent_version=_version(metadata),
        )
        yield SessionDescribed(text(item.get("title")), "user", folder=text(item.get("workspace")))
        task = Task(stats, visible, models=models)
        yield from task.read(messages)
        _report(task, visible, log)


def _report(task: Task, visible: list[Any], log: DocumentLog) -> None:
    for kind in sorted(task.unknown):
        log.odd(None, "content", f"blocks of the unknown type {kind!r} are skipped")
    if not visible:
        log.unstated(f"the usage of the calls, which would be in {SHOWN}")
    elif task.unmatched:
        log.odd(None, SHOWN, f"{task.unmatched} replies have no call: their usage is not known")


def _beside(file: Path, log: DocumentLog) -> object:
    """Return the document of a file that may be missing; None, reported, where it cannot be read."""
    if not file.is_file():
        return None
    try:
        return load_document(file, log)
    except SourceError:
        return None


def _agent(folder: Path, item: dict[str, Any]) -> str:
    extension = next((CLINE_EXTENSIONS[part] for part in folder.parts if part in CLINE_EXTENSIONS), CLINE)
    return ROO if item and extension == CLINE else extension


def _models(metadata: dict[str, Any]) -> Iterator[tuple[float, str]]:
    for use in map(mapping, sequence(metadata.get("model_usage"))):
        at, name = milliseconds(use.get("ts")), text(use.get("model_id"))
        if at is not None and name:
            yield at, name[:200]


def _version(metadata: dict[str, Any]) -> str:
    versions = [text(mapping(use).get("cline_version")) for use in sequence(metadata.get("environment_history"))]
    return next((version[:64] for version in versions if version), "")
