"""The readers of Goose: its database, and the JSON Lines file per session of earlier releases.

Built from Goose's source; no recording was at hand.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from windowpane.exceptions import SourceError
from windowpane.sources.databases import MAGIC, SessionState, columns_of, opened, tables_of
from windowpane.sources.goose.session import (
    AGENT,
    SUBAGENT,
    SUBAGENT_TYPE,
    GooseMessage,
    GooseMessages,
    seconds_of,
)
from windowpane.sources.json_document import DocumentLog, parse_list, parse_object
from windowpane.sources.json_lines import count, head_rows, instant, mapping, read_rows, sequence, text
from windowpane.sources.reader import FileStats, Problem, ProblemLog
from windowpane.sources.records import Record, SessionDescribed, SessionOpened
from windowpane.sources.transcript import unnamed_key

_TABLES: Final = frozenset({"sessions", "messages", "schema_version"})
_MESSAGE_COLUMNS: Final = frozenset({"session_id", "role", "content_json", "created_timestamp"})
_CHANGES: Final = """
    SELECT sessions.id, sessions.updated_at, count(messages.id), max(messages.id)
    FROM sessions LEFT JOIN messages ON messages.session_id = sessions.id
    GROUP BY sessions.id ORDER BY sessions.created_at, sessions.id
"""
UNSTATED: Final = "the usage of single calls, only sums of the session"
LEDGER: Final = "usage_ledger"
UNASSIGNED: Final = (
    f"which reply a row of {LEDGER} is the usage of, so calls have none; sums are those of the session"
)
"""Recent releases list calls in a table that names only session and second."""
TOTALS: Final = ("accumulated_input_tokens", "accumulated_output_tokens", "accumulated_total_tokens")


class GooseDatabaseReader:
    """Reads all sessions of a database."""

    format: ClassVar[str] = "goose"
    experimental: ClassVar[bool] = True

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether the file is a database with Goose's tables."""
        if not head.startswith(MAGIC) or not tables_of(path) >= _TABLES:
            return False
        try:
            with opened(path) as connection:
                return columns_of(connection, "messages") >= _MESSAGE_COLUMNS
        except SourceError:
            return False

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Yield the records of all sessions, one after the other."""
        for key in self.sessions(path):
            yield from self.read_session(path, key, stats=stats, problems=problems)

    def sessions(self, path: Path) -> dict[str, SessionState]:
        """Return the states of the sessions by the number of their messages."""
        with opened(path) as connection:
            return {
                str(key): SessionState(instant(change[0]), " ".join(map(str, change)))
                for key, *change in connection.execute(_CHANGES)
            }

    def read_session(
        self, path: Path, key: str, *, stats: FileStats, problems: list[Problem]
    ) -> Iterator[Record]:
        """Yield the records of one session."""
        log = DocumentLog(path, stats, problems)
        unstated = UNASSIGNED if LEDGER in tables_of(path) else UNSTATED
        if not any(unstated in problem.problem for problem in problems):  # once for all sessions
            log.unstated(unstated)
        with opened(path) as connection:
            connection.row_factory = sqlite3.Row
            row = connection.execute("SELECT * FROM sessions WHERE id = ?", (key,)).fetchone()
            session = dict(row) if row is not None else {}
            rows = connection.execute("SELECT * FROM messages WHERE session_id = ? ORDER BY id", (key,))
            messages = [_of_row(dict(row), log) for row in rows]
        stats.sessions += 1
        stats.add_usage(**{name: count(session.get(name)) for name in TOTALS})
        model = parse_object(session.get("model_config_json"), f"session {key}.model_config_json", log)
        name = model.name("model_name") or ""
        yield _opened(key, session, name)
        yield _described(session)
        yield from _records(messages, log, stats, name)


class GooseLinesReader:
    """Reads a file of earlier releases: a line of metadata, and a line per message."""

    format: ClassVar[str] = "goose"
    experimental: ClassVar[bool] = True

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether the first row is a session's metadata, or a row is a message of the agent's shape."""
        del path
        rows = head_rows(head)
        if rows and "working_dir" in rows[0] and "role" not in rows[0]:
            return True
        return any(
            row.get("role") in ("user", "assistant") and "created" in row and isinstance(row.get("content"), list)
            for row in rows
        )

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Yield the records of the session, which is named by its file."""
        log = ProblemLog(path, stats, problems)
        log.unstated(UNSTATED)
        session: dict[str, Any] = {}
        messages = []
        for row in read_rows(path, log):
            value = row.value
            if value is None:
                continue
            if "role" in value:
                messages.append(
                    GooseMessage(
                        text(value.get("role")),
                        sequence(value.get("content")),
                        mapping(value.get("metadata")),
                        seconds_of(value.get("created")),
                    )
                )
            elif not session:
                session = value
            else:
                log.odd_line(row.line, "role", "expected a message")
        stats.sessions += 1
        key = path.stem if path.suffix == ".jsonl" else unnamed_key(session)
        yield SessionOpened(key, AGENT, at=next((message.at for message in messages), None))
        yield _described(session)
        yield from _records(messages, log, stats, "")


def _of_row(row: Mapping[str, Any], log: DocumentLog) -> GooseMessage:
    where = f"message {row.get('id')}"
    content = parse_list(row.get("content_json"), f"{where}.content_json", log)
    metadata = parse_object(row.get("metadata_json"), f"{where}.metadata_json", log)
    return GooseMessage(text(row.get("role")), content, metadata.value, seconds_of(row.get("created_timestamp")))


def _opened(key: str, session: Mapping[str, Any], model: str) -> SessionOpened:
    agent = SUBAGENT if session.get("session_type") == SUBAGENT_TYPE else AGENT
    parent = text(session.get("parent_session_id")) or None
    return SessionOpened(key, agent, model, parent, at=instant(session.get("created_at")))


def _described(session: Mapping[str, Any]) -> SessionDescribed:
    title = text(session.get("name")) or text(session.get("description"))
    is_own = not session.get("user_set_name")
    return SessionDescribed(title, "agent" if is_own else "user", folder=text(session.get("working_dir")))


def _records(messages: list[GooseMessage], log: ProblemLog, stats: FileStats, model: str) -> Iterator[Record]:
    reader = GooseMessages(stats, model=model)
    yield from reader.read(messages)
    for kind in sorted(reader.unknown):
        log.odd(None, "content", f"items of the unknown type {kind!r} are skipped")
