"""Full-text search over event names and payloads, never over content.

The index is filled in batches after the events are stored, so that no agent waits for it; what is not indexed yet
is read through. A search gives the events that hold all its words, the last of them perhaps only begun.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from windowpane.store.base import EventFilter
from windowpane.store.queries import EventScope, Statement

INDEX_BATCH: Final = 5_000
MAXIMUM_HITS: Final = 20_000
"""Matches counted for one search; more are not told apart by anyone."""

_WORD: Final = re.compile(r"\w+")
_UNINDEXED: Final = "SELECT seq, body FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
_INSERT: Final = "INSERT INTO events_text (rowid, text) VALUES (?, ?)"
_REMOVE: Final = "INSERT INTO events_text (events_text, rowid, text) VALUES ('delete', ?, ?)"
_INDEXED: Final = "SELECT indexed_seq FROM store"


class _Searchable(msgspec.Struct):
    type: str
    agent: str
    model: str
    data: msgspec.Raw


_decoder: Final = msgspec.json.Decoder(_Searchable)


def text_of(body: bytes) -> str:
    """What of an event can be found: its name, agent, model and payload."""
    event = _decoder.decode(body)
    return f"{event.type} {event.agent} {event.model} {bytes(event.data).decode()}"


def words_of(text: str) -> list[str]:
    """The words of a search or an event, as the index sees them."""
    return _WORD.findall(text.lower())


def index(connection: sqlite3.Connection, *, limit: int = INDEX_BATCH) -> int:
    """Index the next events inside the caller's transaction; returns how many, 0 when all are."""
    (indexed,) = connection.execute(_INDEXED).fetchone()
    batch = connection.execute(_UNINDEXED, (indexed, limit)).fetchall()
    if batch:
        connection.executemany(_INSERT, ((seq, text_of(body)) for seq, body in batch))
        connection.execute("UPDATE store SET indexed_seq = ?", (batch[-1][0],))
    return len(batch)


def remove(connection: sqlite3.Connection, session: int) -> None:
    """Take a session's events out of the index, before they are deleted."""
    (indexed,) = connection.execute(_INDEXED).fetchone()
    found = connection.execute("SELECT seq, body FROM events WHERE session = ? AND seq <= ?", (session, indexed))
    connection.executemany(_REMOVE, ((seq, text_of(body)) for seq, body in found.fetchall()))


def found(
    connection: sqlite3.Connection, query: EventFilter, scope: EventScope, columns: str
) -> list[tuple[Any, ...]]:
    """Those columns of the events that match, within the filter's limit."""
    hits = sorted(_hits(connection, query, scope, query.limit), reverse=query.newest_first)
    sql = (
        f"SELECT {columns} FROM events AS e JOIN sessions AS s ON s.key = e.session "  # noqa: S608  # constants
        "WHERE e.seq = ?"
    )
    return [connection.execute(sql, (seq,)).fetchone() for seq in hits[: query.limit]]


def count(connection: sqlite3.Connection, query: EventFilter, scope: EventScope) -> int:
    """How many match; of what is indexed, at most `MAXIMUM_HITS`."""
    return sum(1 for _ in _hits(connection, query, scope, MAXIMUM_HITS))


def _hits(connection: sqlite3.Connection, query: EventFilter, scope: EventScope, limit: int) -> Iterator[int]:
    """Numbers of events that match: of the indexed ones the first or last *limit*, and all of the others."""
    words = words_of(query.text or "")
    if not words:
        return
    (indexed,) = connection.execute(_INDEXED).fetchone()
    narrowed = _narrowed(scope)
    match = " ".join(f'"{word}"' for word in words) + "*"
    joined = "JOIN events AS e ON e.seq = events_text.rowid" if narrowed.conditions else ""
    found = connection.execute(
        f"SELECT events_text.rowid FROM events_text {joined} "  # noqa: S608  # values are bound
        f"WHERE events_text MATCH ? AND events_text.rowid > ? AND {narrowed.clause} "
        f"ORDER BY events_text.rowid {'DESC' if query.newest_first else 'ASC'} LIMIT ?",
        (match, query.after_seq, *narrowed.values, limit),
    )
    yield from (seq for (seq,) in found)
    rest = connection.execute(
        f"SELECT e.seq, e.body FROM events AS e WHERE e.seq > ? AND {narrowed.clause}",  # noqa: S608  # bound
        (max(indexed, query.after_seq), *narrowed.values),
    )
    for seq, body in rest:
        if _holds(words, words_of(text_of(body))):
            yield seq


def _holds(wanted: list[str], present: list[str]) -> bool:
    *whole, begun = wanted
    known = set(present)
    return all(word in known for word in whole) and any(word.startswith(begun) for word in known)


def _narrowed(scope: EventScope) -> Statement:
    statement = Statement()
    if scope.types:
        statement.where(f"+e.type IN ({', '.join('?' * len(scope.types))})", *scope.types)
    if scope.session is not None:
        statement.where("+e.session = ?", scope.session)
    if scope.turns is not None:
        statement.where("+e.turn BETWEEN ? AND ?", *scope.turns[:2])
    return statement
