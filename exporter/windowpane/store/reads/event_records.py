"""Reads for a copy of the whole store: its events as they are stored, and the sums of its sessions."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from windowpane.store.database import Engine
from windowpane.store.events import AUDIT_COLUMNS
from windowpane.store.projections import trends
from windowpane.store.reads import fleet
from windowpane.store.records import TrendRow

BATCH_BYTES: Final = 32_000_000
"""Bytes of events after which a batch ends, however few they are."""

_AFTER: Final = (
    f"SELECT {AUDIT_COLUMNS} FROM events AS e JOIN sessions AS s ON s.key = e.session "  # noqa: S608  # our columns
    "WHERE e.seq > ? ORDER BY e.seq LIMIT ?"
)
FOLDED_SUMS: Final = (
    "revision", "events", "cost_dollars", "input_tokens", "output_tokens", "cache_read_tokens", "turns",
    "compressions", "evicted_blocks", "evicted_tokens", "regrets", "cache_breaks", "overflows",
    "peak_used_tokens",
)  # fmt: skip
"""Columns of a session by which a copy notices that its events were folded again with another result."""
_SUMS: Final = (
    f"SELECT session_id, {', '.join(FOLDED_SUMS)} FROM sessions "  # noqa: S608  # our columns
    "WHERE +current = 1 AND session_id > ? ORDER BY session_id LIMIT ?"
)
_NEWEST: Final = "SELECT max(seq) FROM events"


class EventRecord(NamedTuple):
    """An event as it is stored, intact or damaged; its fields are `AUDIT_COLUMNS`."""

    seq: int
    revision: int
    counted: bool
    hash: bytes
    body: bytes
    session_id: str
    turn: int
    type: str
    at: float | None


class CopyReads:
    """The reads that a copy needs beside those of every reader."""

    _engine: Engine

    def event_records(self, *, after_seq: int, limit: int) -> list[EventRecord]:
        """Return the next events of all sessions as they are stored, at most *limit*, fewer of large ones."""
        records: list[EventRecord] = []
        size = 0
        with self._engine.lend() as connection:
            for row in connection.execute(_AFTER, (after_seq, limit)):
                records.append(EventRecord(*row))
                size += len(records[-1].body)
                if size > BATCH_BYTES:
                    break
        return records

    def newest_seq(self) -> int:
        """Return the number of the newest event; 0 without any."""
        with self._engine.lend() as connection:
            return int(connection.execute(_NEWEST).fetchone()[0] or 0)

    def session_sums(self, *, after: str, limit: int) -> list[tuple[Any, ...]]:
        """Return the id and the `FOLDED_SUMS` of the next sessions in the order of their ids, at most *limit*."""
        with self._engine.lend() as connection:
            return connection.execute(_SUMS, (after, limit)).fetchall()

    def session_days(self, session_id: str) -> list[TrendRow]:
        """Return what the current revision of a session adds to the trends of each day."""
        with self._engine.lend() as connection:
            return trends.of_session(connection, fleet.current_key(connection, session_id))

    def pruned_days(self) -> list[tuple[str, TrendRow]]:
        """Return the trends of the sessions that retention has deleted, each with its project."""
        with self._engine.lend() as connection:
            return trends.of_pruned(connection)
