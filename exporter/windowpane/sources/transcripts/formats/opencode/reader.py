"""The recordings of opencode: its database, the folders of earlier releases, and the exported document.

The database `opencode.db` and the folders `storage/session`, `message` and `part` are built from opencode's
source; no recorded ones were available. Messages and parts are the exported ones in each.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from windowpane.exceptions import SourceError
from windowpane.sources.transcripts.databases import MAGIC, SessionState, columns_of, opened, tables_of
from windowpane.sources.transcripts.folders import names_in
from windowpane.sources.transcripts.formats.opencode.session import Message, OpencodeSession, is_earlier
from windowpane.sources.transcripts.formats.opencode.session_messages import SessionMessages, first_message
from windowpane.sources.transcripts.json_document import (
    DocumentLog,
    JsonObject,
    load_document,
    load_list,
    parse_object,
    shape_of,
)
from windowpane.sources.transcripts.json_lines import mapping, milliseconds
from windowpane.sources.transcripts.reader import FileStats, Problem
from windowpane.sources.transcripts.records import Record
from windowpane.sources.transcripts.transcript import IDLE_SECONDS, GrowingReader

_TABLES: Final = frozenset({"session", "message", "part"})
_CHANGES: Final = """
    SELECT session.id, session.time_updated, last.id, last.time_updated
    FROM session LEFT JOIN message AS last ON last.id = (
        SELECT id FROM message WHERE session_id = session.id ORDER BY time_created DESC, id DESC LIMIT 1
    )
    ORDER BY session.time_created, session.id
"""
"""The last message of each session, which an index finds: earlier ones do not change the window any more."""
_FIELDS: Final = ("id", "parent_id", "directory", "title", "version", "time_created", "time_updated", "revert")
_MESSAGES: Final = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id"
_UNCHANGED: Final = "SELECT id, time_updated, NULL, NULL FROM session ORDER BY time_created, id"
_NEW_TABLE: Final = "session_message"
_NEW_SESSIONS: Final = "session_v2"
"""Sessions since release 2, which copies the rows of the earlier tables, which stay as they were."""
_NEW_UNCHANGED: Final = "SELECT id, time_updated FROM session_v2 ORDER BY time_created, id"
_NEW_CHANGES: Final = "SELECT session_id, max(time_updated), count(*) FROM session_message GROUP BY session_id"
_NEW_MESSAGES: Final = "SELECT id, type, data FROM session_message WHERE session_id = ? ORDER BY {order}"
_ORIGINALS: Final = """
    SELECT json_extract(data, '$.time.created'), json_extract(data, '$.time.completed')
    FROM (
        SELECT CASE WHEN json_valid({table}.data) THEN {table}.data END AS data
        FROM {table} JOIN {sessions} AS older ON older.id = {table}.session_id
        WHERE (older.time_created, older.id) < (?, ?) AND {table}.time_created < ?
    )
"""
_PARTS: Final = "SELECT id, data FROM part WHERE message_id = ? ORDER BY id"

_Times = tuple[float | None, float | None]
"""The start and end of a message, which no other message of a computer has."""


def _records(
    session: OpencodeSession, info: JsonObject, messages: Iterator[Message], log: DocumentLog, field: str
) -> Iterator[Record]:
    """Yield the records of a session; a reply that is held back is reported for *field*."""
    yield from session.read(info, messages)
    if session.deferred:
        log.odd(None, field, "the last reply is in progress, or none has come; held back")


class OpencodeDatabaseReader(GrowingReader):
    """Reads all sessions of a database."""

    format: ClassVar[str] = "opencode"

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether the file is a database with opencode's tables."""
        if not head.startswith(MAGIC):
            return False
        tables = tables_of(path)
        if tables >= _TABLES or tables >= {_NEW_SESSIONS, _NEW_TABLE}:
            return True
        return tables >= {"session", _NEW_TABLE} and "part" not in tables

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Yield the records of all sessions, one after the other."""
        for key in self.sessions(path):
            yield from self.read_session(path, key, stats=stats, problems=problems)

    def sessions(self, path: Path) -> dict[str, SessionState]:
        """Return the states of the sessions by their last message."""
        with opened(path) as connection:
            rows = _sessions(connection)
            is_second = bool(columns_of(connection, _NEW_SESSIONS))
            new: dict[str, tuple[object, int]] = {}
            if columns_of(connection, _NEW_TABLE):
                new = {key: (changed, number) for key, changed, number in connection.execute(_NEW_CHANGES)}
        states = {}
        for key, (updated, last, changed) in rows.items():
            if key in new and (last is None or (is_second and _is_later(new[key][0], changed))):
                changed, last = new[key]  # noqa: PLW2901  # the messages of this session are in the newer table
            times = [at for at in map(milliseconds, (updated, changed)) if at is not None]
            state = f"{updated} {last} {changed} {self._is_settled(changed)}"
            states[str(key)] = SessionState(max(times, default=None), state)
        return states

    def read_session(
        self, path: Path, key: str, *, stats: FileStats, problems: list[Problem]
    ) -> Iterator[Record]:
        """Yield the records of one session."""
        log = DocumentLog(path, stats, problems)
        with opened(path) as connection:
            info = _info(connection, key, log)
            table, messages = "message", _messages
            if _is_new(connection, key):
                table, messages = _NEW_TABLE, _new_messages
            changed = connection.execute(f"SELECT max(time_updated) FROM {table} WHERE session_id = ?", (key,))  # noqa: S608
            (updated,) = changed.fetchone()
            session = OpencodeSession(stats, complete=self._is_settled(updated))
            marked = _marked(connection, info, messages(connection, key, log), table)
            yield from _records(session, info, marked, log, f"session {key}")

    def _is_settled(self, updated: object) -> bool:
        if self._complete is not None:
            return self._complete
        at = milliseconds(updated)
        return at is None or time.time() - at > IDLE_SECONDS


def _sessions(connection: sqlite3.Connection) -> dict[str, tuple[object, object, object]]:
    """Return the time of the last change of each session, and its last message in the earlier table."""
    sessions: dict[str, tuple[object, object, object]] = {}
    if columns_of(connection, "session"):
        query = _CHANGES if columns_of(connection, "message") else _UNCHANGED
        sessions = {str(key): tuple(stated) for key, *stated in connection.execute(query)}
    if columns_of(connection, _NEW_SESSIONS):
        for key, updated in connection.execute(_NEW_UNCHANGED):
            _, last, changed = sessions.get(str(key), (None, None, None))
            sessions[str(key)] = (updated, last, changed)
    return sessions


def _is_later(new: object, old: object) -> bool:
    """Return whether a session's rows of the newer table are at least as recent as those of the earlier one."""
    newest, oldest = milliseconds(new), milliseconds(old)
    return newest is not None and (oldest is None or newest >= oldest)


def _info(connection: sqlite3.Connection, key: str, log: DocumentLog) -> JsonObject:
    """Return a session's row in the form of its exported `info`."""
    stated: dict[str, Any] = {}
    for table in (_NEW_SESSIONS, "session"):
        fields = [name for name in _FIELDS if name in columns_of(connection, table)]
        if fields and not stated:
            row = connection.execute(f"SELECT {', '.join(fields)} FROM {table} WHERE id = ?", (key,)).fetchone()  # noqa: S608
            stated = dict(zip(fields, row or (), strict=False))
    path = f"session {key}"
    info = {
        "id": key,
        "parentID": stated.get("parent_id"),
        "directory": stated.get("directory"),
        "title": stated.get("title"),
        "version": stated.get("version"),
        "time": {"created": stated.get("time_created"), "updated": stated.get("time_updated")},
        "revert": parse_object(stated.get("revert"), f"{path}.revert", log).value,
    }
    return JsonObject(info, path, log)


def _messages(connection: sqlite3.Connection, key: str, log: DocumentLog) -> Iterator[Message]:
    for message_id, data in connection.execute(_MESSAGES, (key,)):
        info = parse_object(data, f"message {message_id}", log)
        info.value["id"] = message_id
        parts = connection.execute(_PARTS, (message_id,))
        yield Message(info, [parse_object(part, f"part {part_id}", log) for part_id, part in parts])


def _marked(
    connection: sqlite3.Connection, info: JsonObject, messages: Iterable[Message], table: str
) -> Iterator[Message]:
    """Yield the messages; the copies of a fork are marked where an older session has the original.

    A fork has copies of all messages before it, with their times and usage under new ids. opencode states
    neither that they are copies nor of which session.
    """
    originals: set[_Times] | None = None
    for message in messages:
        if not is_earlier(message.info, info):
            yield message
            continue
        if originals is None:
            originals = set(_originals(connection, info, table))
        stated = message.info.item("time").value
        yield message._replace(is_copy=_times(stated.get("created"), stated.get("completed")) in originals)


def _originals(connection: sqlite3.Connection, info: JsonObject, table: str) -> Iterator[_Times]:
    """Yield the times of the messages that older sessions had when this one was started."""
    name = _NEW_SESSIONS if table == _NEW_TABLE and columns_of(connection, _NEW_SESSIONS) else "session"
    started = mapping(info.value["time"])["created"]
    query = _ORIGINALS.format(table=table, sessions=name)
    for created, completed in connection.execute(query, (started, info.value["id"], started)):
        yield _times(created, completed)


def _times(created: object, completed: object) -> _Times:
    return milliseconds(created), milliseconds(completed)


def _is_new(connection: sqlite3.Connection, key: str) -> bool:
    """Return whether the messages of a session are only in the table of newer releases, or more recent there."""
    if not columns_of(connection, _NEW_TABLE):
        return False
    if not columns_of(connection, "message"):
        return True
    latest = "SELECT max(time_updated) FROM {} WHERE session_id = ?"
    (old,) = connection.execute(latest.format("message"), (key,)).fetchone()
    (new,) = connection.execute(latest.format(_NEW_TABLE), (key,)).fetchone()
    if old is None or new is None:
        return old is None and new is not None
    return bool(columns_of(connection, _NEW_SESSIONS)) and _is_later(new, old)


def _new_messages(connection: sqlite3.Connection, key: str, log: DocumentLog) -> Iterator[Message]:
    order = "seq" if "seq" in columns_of(connection, _NEW_TABLE) else "time_created, id"
    rows = SessionMessages(log)
    for row_id, kind, data in connection.execute(_NEW_MESSAGES.format(order=order), (key,)):
        stated = parse_object(data, f"{_NEW_TABLE} {row_id}", log)
        yield from rows.message(str(row_id), str(kind), stated.value)


class OpencodeStorageReader(GrowingReader):
    """Reads a folder with the messages of one session."""

    format: ClassVar[str] = "opencode"
    experimental: ClassVar[bool] = True

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

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Yield the records of the session. Raises `SourceError` when the folder cannot be read."""
        log = DocumentLog(path, stats, problems)
        storage, names = path.parent.parent, self.parts(path, names_in(path))
        if not names:
            log.fail("expected files of messages, named msg_….json")
        info = _info_in(storage, path.name, log)
        updated_at = milliseconds(info.item("time").value.get("updated"))
        complete = self._is_complete(path / names[-1], updated_at)
        session = OpencodeSession(stats, complete=complete)
        yield from _records(session, info, _messages_in(storage, [path / name for name in names], log), log, "")


def _info_in(storage: Path, session_id: str, log: DocumentLog) -> JsonObject:
    """Return the session's own file, which is in its project's folder; its id alone without such a file."""
    projects = [storage / "session" / project for project in sorted(names_in(storage / "session"))]
    for folder in (*projects, storage / "info"):  # the first releases had all three folders in `session`
        file = folder / f"{session_id}.json"
        if file.is_file():
            return JsonObject({"id": session_id} | _object(file, log), f"session {session_id}", log)
    log.odd(None, f"session {session_id}", "no file of the session in storage/session: title and folder unknown")
    return JsonObject({"id": session_id}, f"session {session_id}", log)


def _messages_in(storage: Path, files: list[Path], log: DocumentLog) -> Iterator[Message]:
    for file in files:
        folder = storage / "part" / file.stem
        if not folder.is_dir():
            folder = storage / "part" / file.parent.name / file.stem
        parts = [
            JsonObject(_object(folder / name, log), f"part {name}", log)
            for name in sorted(names_in(folder))
            if name.endswith(".json")
        ]
        info = {"id": file.stem} | _object(file, log)
        if isinstance(info.get("parts"), list):
            info, inline = first_message(info)
            parts = [JsonObject(part, f"message {file.stem}.parts", log) for part in inline]
        yield Message(JsonObject(info, f"message {file.stem}", log), parts)


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


_SESSION_PATHS: Final = ({"info.id"}, {"info.slug"}, {"info.projectID"}, {"info.directory", "info.time"})


class OpencodeExportReader(GrowingReader):
    """Reads exported sessions, which may still be in progress."""

    format: ClassVar[str] = "opencode"

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
        updated_at = milliseconds(info.item("time").value.get("updated"))
        session = OpencodeSession(stats, complete=self._is_complete(path, updated_at))
        yield from _records(session, info, messages, log, "messages")
