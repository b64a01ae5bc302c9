"""Full-text search over event names and payloads, never over content.

Measurements are half of what events hold, and are numbers that no one remembers: one is found by its phase, zone
and sources.

The index is filled in batches after the events are stored, so no agent waits for it; events not indexed yet are
read one by one. A search finds the events that contain all its words, of which the last may be a prefix.

The cost of a search grows with what it finds, not with what is stored. A session is searched between its own
first and last event, or read through if that is less work. The index itself is the engine's (`fts5`, `gin`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from windowpane.core.decoders import json_decoder
from windowpane.core.events import PressureMeasured
from windowpane.store.database import Database, WordSearch
from windowpane.store.events import EventScope
from windowpane.store.filters import EventFilter
from windowpane.store.statements import Conditions

INDEX_BATCH: Final = 5_000
MAXIMUM_HITS: Final = 20_000
"""The most matches counted for one search."""

MAXIMUM_SEQ: Final = 2**63 - 1
READ_THROUGH: Final = 2_000
"""A session with at most this many events is read through, in a few tens of milliseconds."""

_WORD: Final = re.compile(r"\w+")
_SPLIT_ASCII: Final = {code: chr(code).lower() if _WORD.match(chr(code)) else " " for code in range(128)}
"""Lower case for the characters of words and spaces for the others: several times faster than the expression."""
_UNINDEXED: Final = "SELECT seq, body FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
_INDEXED: Final = "SELECT indexed_seq FROM store"
_DIGEST: Final = re.compile(rb'"digest":"([0-9a-f]{32})"')
_UNINDEXED_OF_TYPE: Final = """
    SELECT s.session_id, e.body FROM events AS e JOIN sessions AS s ON s.key = e.session AND s.current = 1
    WHERE e.seq > ? AND {type} = (SELECT id FROM event_types WHERE name = ?) ORDER BY e.seq DESC LIMIT ?"""
_ENDS: Final = (
    "SELECT (SELECT min(seq) FROM events WHERE session = ?), (SELECT max(seq) FROM events WHERE session = ?)"
)


class _Searchable(msgspec.Struct):
    type: str
    agent: str
    model: str
    data: msgspec.Raw


class _MeasurementTexts(msgspec.Struct):
    phase: str = ""
    count_source: str = ""
    limit_source: str = ""
    zone: str = ""
    compaction_evidence: str = ""


_decoder: Final = json_decoder(_Searchable)
_texts_decoder: Final = json_decoder(_MeasurementTexts)


def text_of(body: bytes) -> str:
    """Return the searchable text of an event: its type, agent, model and payload; empty if it is damaged."""
    try:
        event = _decoder.decode(body)
        return f"{event.type} {event.agent} {event.model} {_payload(event)}"
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError):
        return ""


def _payload(event: _Searchable) -> str:
    if event.type != PressureMeasured.type:
        return bytes(event.data).decode()
    texts = _texts_decoder.decode(event.data)
    return f"{texts.phase} {texts.count_source} {texts.limit_source} {texts.zone} {texts.compaction_evidence}"


def words_of(text: str) -> list[str]:
    """Return the words of a search or an event, as the index splits them."""
    if text.isascii():
        return text.translate(_SPLIT_ASCII).split()
    return _WORD.findall(text.lower())


def index(connection: Database, *, limit: int = INDEX_BATCH) -> int:
    """Index the next events inside the caller's transaction; return how many, 0 when all are indexed."""
    (indexed,) = connection.execute(_INDEXED).fetchone()
    batch = connection.execute(_UNINDEXED, (indexed, limit)).fetchall()
    if batch:
        connection.dialect.event_index.add(connection, ((seq, text_of(body)) for seq, body in batch))
        connection.execute("UPDATE store SET indexed_seq = ?", (batch[-1][0],))
    return len(batch)


def remove(connection: Database, session: int) -> None:
    """Remove a session's events from the index, before they are deleted."""
    (indexed,) = connection.execute(_INDEXED).fetchone()
    connection.dialect.event_index.remove(connection, session, indexed=indexed)


def digests_of(connection: Database, session: int) -> set[str]:
    """Return the digests that a session's events contain."""
    bodies = connection.execute("SELECT body FROM events WHERE session = ?", (session,))
    return {digest.decode() for (body,) in bodies if isinstance(body, bytes) for digest in _DIGEST.findall(body)}


def digests_in_use(connection: Database, digests: Iterable[str]) -> set[str]:
    """Return those of the digests that a stored event contains."""
    wanted = set(digests)
    used = {digest for digest in wanted if connection.dialect.event_index.is_used(connection, digest)}
    (indexed,) = connection.execute(_INDEXED).fetchone()
    for (body,) in connection.execute("SELECT body FROM events WHERE seq > ?", (indexed,)):
        used |= wanted.intersection(digest.decode() for digest in _DIGEST.findall(body))
    return used


def find(connection: Database, query: EventFilter, scope: EventScope, columns: str) -> list[tuple[Any, ...]]:
    """Return those columns of the events that match, by number, within the filter's limit."""
    hits = sorted(_hits(connection, query, scope, query.limit), reverse=query.newest_first)
    sql = (
        f"SELECT {columns} FROM events AS e JOIN sessions AS s ON s.key = e.session "  # noqa: S608  # constants
        "WHERE e.seq = ?"
    )
    rows = (connection.execute(sql, (seq,)).fetchone() for seq in hits[: query.limit])
    return [row for row in rows if row is not None]  # a damaged event that was pruned stays in the index


def is_behind(connection: Database) -> bool:
    """Return whether an event waits to be indexed."""
    (indexed,) = connection.execute(_INDEXED).fetchone()
    return connection.execute(_UNINDEXED, (indexed, 1)).fetchone() is not None


def unindexed_events(connection: Database, kind: str, *, limit: int) -> list[tuple[str, bytes]]:
    """Return session id and body of the latest events of type *kind* that are not indexed yet."""
    (indexed,) = connection.execute(_INDEXED).fetchone()
    statement = _UNINDEXED_OF_TYPE.format(type=connection.dialect.unindexed("e.type"))
    return connection.execute(statement, (indexed, kind, limit)).fetchall()


def count(connection: Database, query: EventFilter, scope: EventScope) -> int:
    """Return the number of events that match, counting at most `MAXIMUM_HITS` indexed ones."""
    return sum(1 for _ in _hits(connection, query, scope, MAXIMUM_HITS))


def _hits(connection: Database, query: EventFilter, scope: EventScope, limit: int) -> Iterator[int]:
    """Yield the numbers of events that match: the first or last *limit* indexed ones and all others."""
    words = words_of(query.text or "")
    if not words:
        return
    (indexed,) = connection.execute(_INDEXED).fetchone()
    if scope.session is not None and scope.total <= READ_THROUGH:
        indexed = 0
    if indexed:
        yield from connection.dialect.event_index.find(connection, _word_search(connection, query, scope, limit))
    conditions = _conditions(connection, query, scope)
    if scope.session is not None:
        conditions.add("e.session = ?", scope.session)
    if query.before_seq is not None:
        conditions.add("e.seq < ?", query.before_seq)
    rest = connection.execute(
        f"SELECT e.seq, e.body FROM events AS e WHERE e.seq > ? AND {conditions.clause}",  # noqa: S608  # bound
        (max(indexed, query.after_seq), *conditions.values),
    )
    for seq, body in rest:
        if _holds(words, words_of(text_of(body))):
            yield seq


def _word_search(connection: Database, query: EventFilter, scope: EventScope, limit: int) -> WordSearch:
    first, last = query.after_seq + 1, MAXIMUM_SEQ if query.before_seq is None else query.before_seq - 1
    if scope.session is not None:
        start, end = connection.execute(_ENDS, (scope.session, scope.session)).fetchone()
        first, last = max(first, start or 0), min(last, end or 0)
    conditions = _conditions(connection, query, scope)
    return WordSearch(
        words_of(query.text or ""),
        query.types,
        first,
        last,
        conditions.clause if conditions.conditions else "",
        conditions.values,
        limit,
        query.newest_first,
    )


def _holds(wanted: list[str], present: list[str]) -> bool:
    *whole, prefix = wanted
    words = set(present)
    return all(word in words for word in whole) and any(word.startswith(prefix) for word in words)


def _conditions(connection: Database, query: EventFilter, scope: EventScope) -> Conditions:
    """Return the conditions on events `e` that were found by number."""
    conditions, unindexed = Conditions(), connection.dialect.unindexed
    if scope.types:
        conditions.add(f"{unindexed('e.type')} IN ({', '.join('?' * len(scope.types))})", *scope.types)
    if scope.session is not None:
        conditions.add(f"{unindexed('e.session')} = ?", scope.session)
    if scope.turns is not None:
        conditions.add(f"{unindexed('e.turn')} BETWEEN ? AND ?", *scope.turns[:2])
    if query.times is not None:
        conditions.add(f"{unindexed('e.at')} >= ? AND {unindexed('e.at')} < ?", *query.times)
    scope.restrict(conditions)
    return conditions
