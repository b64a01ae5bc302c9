"""The readers of Goose: its database, an exported session, and the file per session of earlier releases.

Built from Goose's source; no recording was available.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from windowpane.sources.transcripts.databases import SessionState, columns_of, has_columns, opened, tables_of
from windowpane.sources.transcripts.formats.goose.session import (
    AGENT,
    SUBAGENT,
    SUBAGENT_TYPE,
    GooseMessage,
    GooseMessages,
    ledger_row,
    seconds_of,
)
from windowpane.sources.transcripts.json_document import (
    DocumentLog,
    load_list,
    parse_list,
    parse_object,
    shape_of,
)
from windowpane.sources.transcripts.json_lines import (
    count,
    head_rows,
    instant,
    mapping,
    read_rows,
    sequence,
    text,
)
from windowpane.sources.transcripts.reader import FileStats, Problem, ProblemLog
from windowpane.sources.transcripts.records import Record, SessionDescribed, SessionOpened
from windowpane.sources.transcripts.transcript import unnamed_key

_TABLES: Final = frozenset({"sessions", "messages", "schema_version"})
_MESSAGE_COLUMNS: Final = frozenset({"session_id", "role", "content_json", "created_timestamp"})
_MESSAGES: Final = "SELECT * FROM messages WHERE session_id = ? ORDER BY created_timestamp, id"
_EXPORTED: Final = frozenset({"id", "working_dir", "conversation"})
_CHANGES: Final = """
    SELECT sessions.id, sessions.updated_at, count(messages.id), max(messages.id)
    FROM sessions LEFT JOIN messages ON messages.session_id = sessions.id
    GROUP BY sessions.id ORDER BY sessions.created_at, sessions.id
"""
UNSTATED: Final = "the usage of single calls, only sums of the session"
LEDGER: Final = "usage_ledger"
_CALLS: Final = """
    SELECT * FROM usage_ledger WHERE session_id = ? AND coalesce(is_compaction, 0) = 0
    AND coalesce(cost_source, '') != 'carried_forward' ORDER BY id
"""
"""Calls of a session, without those that wrote a summary and without sums of what was not listed."""
_LEDGER_COLUMNS: Final = frozenset({"id", "session_id", "is_compaction", "cost_source"})
TOTALS: Final = ("accumulated_input_tokens", "accumulated_output_tokens", "accumulated_total_tokens")


class GooseDatabaseReader:
    """Reads all sessions of a database."""

    format: ClassVar[str] = "goose"
    experimental: ClassVar[bool] = True

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether the file is a database with Goose's tables."""
        return has_columns(path, head, "messages", _MESSAGE_COLUMNS) and tables_of(path) >= _TABLES

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
        with opened(path) as connection:
            connection.row_factory = sqlite3.Row
            row = connection.execute("SELECT * FROM sessions WHERE id = ?", (key,)).fetchone()
            session = dict(row) if row is not None else {}
            rows = connection.execute(_MESSAGES, (key,))
            messages = [_of_row(dict(row), log) for row in rows]
            has_ledger = columns_of(connection, LEDGER) >= _LEDGER_COLUMNS
            ledger = [ledger_row(dict(row)) for row in connection.execute(_CALLS, (key,))] if has_ledger else []
        stats.sessions += 1
        stats.add_usage(**{name: count(session.get(name)) for name in TOTALS})
        model = parse_object(session.get("model_config_json"), f"session {key}.model_config_json", log)
        name = model.name("model_name") or ""
        yield _opened(key, session, name)
        yield _described(session)
        yield from _records(GooseMessages(stats, model=name, ledger=ledger), messages, log, problems)


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
        session: dict[str, Any] = {}
        messages = []
        for row in read_rows(path, log):
            value = row.value
            if value is None:
                continue
            if "role" in value:
                messages.append(_of_object(value))
            elif not session:
                session = value
            else:
                log.odd_line(row.line, "role", "expected a message")
        stats.sessions += 1
        key = path.stem if path.suffix == ".jsonl" else unnamed_key(session)
        yield SessionOpened(key, AGENT, at=next((message.at for message in messages), None))
        yield _described(session)
        yield from _records(GooseMessages(stats), messages, log, problems)


class GooseExportReader:
    """Reads a session that `goose session export --format json` wrote."""

    format: ClassVar[str] = "goose"
    experimental: ClassVar[bool] = True

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether the document is a session with the agent's fields."""
        del path
        return shape_of(head) >= _EXPORTED

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Yield the records of the session. Raises `SourceError` when it cannot be read."""
        log = DocumentLog(path, stats, problems)
        session = load_list(path, log, of="conversation")
        messages = [_of_object(message.value) for message in session.items("conversation")]
        model = text(mapping(session.value.get("model_config")).get("model_name"))
        stats.sessions += 1
        yield _opened(session.name("id") or unnamed_key(session.value), session.value, model)
        yield _described(session.value)
        yield from _records(GooseMessages(stats, model=model), messages, log, problems)


def _of_object(value: Mapping[str, Any]) -> GooseMessage:
    content, metadata = sequence(value.get("content")), mapping(value.get("metadata"))
    return GooseMessage(text(value.get("role")), content, metadata, seconds_of(value.get("created")))


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


def _records(
    reader: GooseMessages, messages: list[GooseMessage], log: ProblemLog, problems: list[Problem]
) -> Iterator[Record]:
    yield from reader.read(messages)
    for kind in sorted(reader.unknown):
        log.odd(None, "content", f"items of the unknown type {kind!r} are skipped")
    if reader.unstated and not any(UNSTATED in problem.problem for problem in problems):  # once for all sessions
        log.unstated(UNSTATED)
