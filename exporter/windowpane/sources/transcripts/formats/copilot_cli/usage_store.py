"""The usage of single calls in Copilot's session store, the database beside the folder of the sessions.

Its rows name session and sub-agent, but no reply. They are in the order of the calls, and a reply states the same
output tokens as its row.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict, deque
from pathlib import Path
from typing import Any, Final, NamedTuple

from windowpane.core.events import Usage
from windowpane.exceptions import SourceError
from windowpane.models.wire.usage import FLAT
from windowpane.sources.transcripts.databases import columns_of, opened
from windowpane.sources.transcripts.json_lines import count, duration_seconds, text

FOLDER: Final = "session-state"
STORE: Final = "session-store.db"
TABLE: Final = "assistant_usage_events"
COMPACTION: Final = "compaction"
_COLUMNS: Final = frozenset({"id", "session_id", "model", "input_tokens", "output_tokens"})
_ROWS: Final = "SELECT * FROM assistant_usage_events WHERE session_id = ? AND id > ? ORDER BY id"


class StoredCall(NamedTuple):
    """One call of a session."""

    model: str
    usage: Usage
    latency_seconds: float | None

    @classmethod
    def of(cls, row: dict[str, Any]) -> StoredCall:
        """Return the call of a row, whose input includes the cache."""
        return cls(text(row["model"]), FLAT.read(row) or Usage(), duration_seconds(row.get("duration_ms")))


class UsageStore:
    """Reads the calls of one file's session, each once."""

    def __init__(self, file: Path) -> None:
        """*file* holds the session's events."""
        folder = next((parent for parent in file.absolute().parents if parent.name == FOLDER), None)
        self._path = None if folder is None else folder.parent / STORE
        self._calls: dict[str, deque[StoredCall]] = defaultdict(deque)
        """Calls that no reply has had, by the tool call that started the sub-agent; empty for the main agent."""
        self._last_row = 0

    def take(self, session: str, *, started_by: str, model: str, output_tokens: int) -> StoredCall | None:
        """Return the next call with this output, and drop those before it; None without one."""
        position = self._find(started_by, model, output_tokens)
        if position is None:
            self._load(session)
            position = self._find(started_by, model, output_tokens)
        if position is None:
            return None
        calls = self._calls[started_by]
        for _ in range(position):
            calls.popleft()
        return calls.popleft()

    def _find(self, started_by: str, model: str, output_tokens: int) -> int | None:
        return next(
            (
                number
                for number, call in enumerate(self._calls[started_by])
                if call.usage.output_tokens == output_tokens and model in ("", call.model)
            ),
            None,
        )

    def _load(self, session: str) -> None:
        """Add the rows that were written since the last look."""
        if self._path is None or not self._path.is_file():
            return
        try:
            with opened(self._path) as connection:
                if not columns_of(connection, TABLE) >= _COLUMNS:
                    return
                connection.row_factory = sqlite3.Row
                rows = [dict(row) for row in connection.execute(_ROWS, (session, self._last_row))]
        except SourceError:  # in use, damaged, or of another release: the usage is not known
            return
        for row in rows:
            self._last_row = max(self._last_row, count(row["id"]))
            if row.get("initiator") != COMPACTION:
                self._calls[text(row.get("parent_tool_call_id"))].append(StoredCall.of(row))
