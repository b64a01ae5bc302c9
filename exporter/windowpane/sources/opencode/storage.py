"""The folders in which earlier releases of opencode keep a session: `storage/session`, `message` and `part`.

Built from opencode's source; no recorded folder was at hand. A recording is the folder with a session's messages;
the session's own file and the parts of each message are in the folders beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from windowpane.exceptions import SourceError
from windowpane.sources.folders import names_in
from windowpane.sources.json_document import DocumentLog, JsonObject, load_document
from windowpane.sources.opencode.database import data_folder
from windowpane.sources.opencode.session import Message, OpencodeSession
from windowpane.sources.reader import FileStats, Problem
from windowpane.sources.records import Record
from windowpane.sources.transcript import is_idle


class OpencodeStorageReader:
    """Reads a folder with the messages of one session."""

    format: ClassVar[str] = "opencode"
    experimental: ClassVar[bool] = True

    def __init__(self, *, complete: bool | None = None) -> None:
        """*complete* is whether sessions are finished; None: those without a write for two minutes are."""
        self._complete = complete

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return False: a recording is a folder."""
        del path, head
        return False

    @staticmethod
    def parts(folder: Path, files: Sequence[str]) -> list[str]:
        """Return the files of the messages; ids sort by time."""
        if folder.parent.name != "message":
            return []
        return sorted(name for name in files if name.startswith("msg_") and name.endswith(".json"))

    @staticmethod
    def default_paths() -> tuple[Path, ...]:
        """Return the folder with the messages of all sessions."""
        return (data_folder() / "storage" / "message",)

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Yield the records of the session. Raises `SourceError` when the folder cannot be read."""
        log = DocumentLog(path, stats, problems)
        storage, names = path.parent.parent, self.parts(path, names_in(path))
        if not names:
            log.fail("expected files of messages, named msg_….json")
        info = _info(storage, path.name, log)
        newest = path / names[-1]
        complete = is_idle(newest) if self._complete is None else self._complete
        session = OpencodeSession(stats, complete=complete)
        yield from session.read(info, _messages(storage, [path / name for name in names], log))
        if session.deferred:
            log.odd(None, "", "the last reply is in progress, or none has come; held back")


def _info(storage: Path, session_id: str, log: DocumentLog) -> JsonObject:
    """Return the session's own file, which is in its project's folder; its id alone without such a file."""
    for project in sorted(names_in(storage / "session")):
        file = storage / "session" / project / f"{session_id}.json"
        if file.is_file():
            return JsonObject({"id": session_id} | _object(file, log), f"session {session_id}", log)
    log.odd(None, f"session {session_id}", "no file of the session in storage/session: title and folder unknown")
    return JsonObject({"id": session_id}, f"session {session_id}", log)


def _messages(storage: Path, files: list[Path], log: DocumentLog) -> Iterator[Message]:
    for file in files:
        folder = storage / "part" / file.stem
        parts = [
            JsonObject(_object(folder / name, log), f"part {name}", log)
            for name in sorted(names_in(folder))
            if name.endswith(".json")
        ]
        yield Message(JsonObject({"id": file.stem} | _object(file, log), f"message {file.stem}", log), parts)


def _object(file: Path, log: DocumentLog) -> dict[str, object]:
    """Return the object of a file; an empty one, reported, where it holds none."""
    try:
        value = load_document(file, log)
    except SourceError:
        return {}
    if isinstance(value, dict):
        return value
    log.bad(file.name, "expected an object")
    return {}
