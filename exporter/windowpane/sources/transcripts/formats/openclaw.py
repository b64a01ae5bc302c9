"""The reader of OpenClaw's database, which holds the entries that it wrote to a file per session before.

Built from descriptions of the database; no recording was available.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

from windowpane.sources.transcripts.compressed import NEEDED, decompressed
from windowpane.sources.transcripts.databases import SessionState, has_columns, opened
from windowpane.sources.transcripts.formats.pi import OPENCLAW, PiTranscript
from windowpane.sources.transcripts.json_document import parse_embedded
from windowpane.sources.transcripts.json_lines import JsonRow, milliseconds
from windowpane.sources.transcripts.reader import MAXIMUM_RECORD_BYTES, FileStats, Problem, ProblemLog
from windowpane.sources.transcripts.records import Record
from windowpane.sources.transcripts.transcript import GrowingReader

TABLE: Final = "transcript_events"
_COLUMNS: Final = frozenset({"session_id", "seq", "event_json", "created_at"})
COMPRESSED_COLUMN: Final = "event_zstd"
_SESSIONS: Final = """
    SELECT session_id, max(created_at), count(*), max(seq) FROM transcript_events GROUP BY session_id
    ORDER BY min(created_at), session_id
"""
_ENTRIES: Final = "SELECT * FROM transcript_events WHERE session_id = ? ORDER BY seq"
COMPRESSED: Final = f"entries are skipped: they are {NEEDED}"


class OpenClawDatabaseReader(GrowingReader):
    """Reads all sessions of an agent's database."""

    format: ClassVar[str] = "pi"
    experimental: ClassVar[bool] = True

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether the file is a database with the table of entries."""
        return has_columns(path, head, TABLE, _COLUMNS)

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Yield the records of all sessions, one after the other."""
        for key in self.sessions(path):
            yield from self.read_session(path, key, stats=stats, problems=problems)

    def sessions(self, path: Path) -> dict[str, SessionState]:
        """Return the states of the sessions by the number of their entries."""
        with opened(path) as connection:
            return {
                str(key): SessionState(milliseconds(changed), f"{changed} {count} {last}")
                for key, changed, count, last in connection.execute(_SESSIONS)
            }

    def read_session(
        self, path: Path, key: str, *, stats: FileStats, problems: list[Problem]
    ) -> Iterator[Record]:
        """Yield the records of one session."""
        log = ProblemLog(path, stats, problems)
        with opened(path) as connection:
            connection.row_factory = sqlite3.Row
            entries = [dict(row) for row in connection.execute(_ENTRIES, (key,))]
        changed = max((at for entry in entries if (at := milliseconds(entry["created_at"]))), default=None)
        complete = self._is_complete(path, changed)
        transcript = PiTranscript(path, log, complete=complete, agent=OPENCLAW)
        yield from transcript.records(_rows(entries, log, problems))


def _rows(entries: list[dict[str, Any]], log: ProblemLog, problems: list[Problem]) -> Iterator[JsonRow]:
    """Yield the entries that are JSON objects; others are lost."""
    for entry in entries:
        stated = entry["event_json"]
        number = entry["seq"] if isinstance(entry["seq"], int) else 0
        compressed = entry.get(COMPRESSED_COLUMN)
        if stated is None and isinstance(compressed, bytes):
            raw = decompressed(compressed, limit_bytes=MAXIMUM_RECORD_BYTES)
            stated = None if raw is None else raw.decode(errors="replace")
            if stated is None and not any(COMPRESSED in problem.problem for problem in problems):
                log.odd(None, COMPRESSED_COLUMN, COMPRESSED)
        value = parse_embedded(stated) if isinstance(stated, str) else None
        if isinstance(value, dict):
            yield JsonRow(number, value)
            continue
        if stated is not None:
            log.bad_line(number, "expected a JSON object")
        yield JsonRow(number, None, "a damaged entry")
