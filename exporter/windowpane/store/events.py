"""Reading events: the statement that finds those a filter matches, and rows turned into events.

Each plan touches an index range no larger than what it may show. SQLite has no statistics here, so for it the
statements name the index or keep it from choosing one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from windowpane.core.codec import decode
from windowpane.core.redaction import stored_id
from windowpane.exceptions import EventFormatError
from windowpane.store.database import Database
from windowpane.store.filters import EventFilter, OnUnreadable
from windowpane.store.projections.turns import FIRST_SEQ
from windowpane.store.records import DamagedEvent, StoredEvent
from windowpane.store.statements import END, Conditions

EVENT_COLUMNS: Final = "e.seq, s.revision, e.seq >= s.counted_from AND s.same_as = '', e.hash, e.body"
AUDIT_COLUMNS: Final = (
    EVENT_COLUMNS + ", s.session_id, e.turn, (SELECT name FROM event_types WHERE id = e.type), e.at"  # noqa: S608
)

_SCAN: Final = (
    f"SELECT {EVENT_COLUMNS} FROM events AS e JOIN sessions AS s ON s.key = e.session "  # noqa: S608
    "WHERE e.seq > ? ORDER BY e.seq LIMIT ?"
)
_EXTENT: Final = "SELECT key, events FROM sessions WHERE session_id = ? AND +current = 1"


# -- what a filter matches ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EventScope:
    """An event filter in the numbers of this database."""

    session: int | None
    """Row number of the session; None for all."""
    turns: tuple[int, int, int, int] | None
    """First and last turn, and the numbers of the first event in and after them; None for all turns."""
    types: Mapping[int, int]
    """Ids of the wanted types and the number of events of each; empty for all."""
    total: int
    """Events in the session, else in the store, or in all sessions of the wanted projects."""
    projects: tuple[str, ...] | None = None
    """Projects of the sessions; None for all."""

    def restrict(self, conditions: Conditions) -> None:
        """Add the condition that an event `e` belongs to one of the projects."""
        if self.projects is not None:
            sessions = Conditions()
            sessions.among("project", self.projects)
            conditions.add(f"e.session IN (SELECT key FROM sessions WHERE {sessions.clause})", *sessions.values)  # noqa: S608


def scope_of(connection: Database, query: EventFilter) -> EventScope | None:
    """Return the scope of a filter; None when it can match nothing."""
    key = total = None
    if query.session_id is not None:
        row = connection.execute(_EXTENT, (stored_id(query.session_id),)).fetchone()
        if row is None:
            return None
        key, total = row
    counts = {
        name: (type_id, n) for type_id, name, n in connection.execute("SELECT id, name, events FROM event_types")
    }
    types = dict(counts[name] for name in query.types if name in counts)
    if query.types and not types:
        return None
    turns = None
    if query.turn_from is not None or query.turn_to is not None:
        first = query.turn_from if query.turn_from is not None else 0
        last = query.turn_to if query.turn_to is not None else END
        turns = (first, last, *_sequence(connection, key, first, last))
    if total is None:
        total = (
            sum(n for _, n in counts.values()) if query.projects is None else _total(connection, query.projects)
        )
    return EventScope(key, turns, types, total, query.projects)


def _total(connection: Database, projects: Sequence[str]) -> int:
    conditions = Conditions()
    conditions.among("project", projects)
    sql = f"SELECT coalesce(sum(events), 0) FROM sessions WHERE {conditions.clause}"  # noqa: S608  # values are bound
    return int(connection.execute(sql, conditions.values).fetchone()[0])


def _sequence(connection: Database, key: int | None, first: int, last: int) -> tuple[int, int]:
    """Return the numbers of the first event of turn *first* and of the first one after turn *last*."""
    if key is None:
        return 0, END
    start = connection.execute(FIRST_SEQ, (key, first)).fetchone() if first > 0 else (0,)
    end = connection.execute(FIRST_SEQ, (key, last + 1)).fetchone() if last < END else None
    return (END if start is None else int(start[0])), (END if end is None else int(end[0]))


def find(connection: Database, query: EventFilter, scope: EventScope, columns: str) -> list[tuple[Any, ...]]:
    """Return those columns of the events that match, by number, within the filter's limit."""
    conditions = _conditions(connection, query, scope)
    direction = "DESC" if query.newest_first else "ASC"
    sql = (
        f"SELECT {columns} FROM events AS e JOIN sessions AS s ON s.key = e.session "  # noqa: S608  # values are bound
        f"WHERE e.seq IN (SELECT seq FROM events AS e{_hint(connection, query, scope)} WHERE {conditions.clause} "
        f"ORDER BY seq {direction} LIMIT ?) "
        f"ORDER BY e.seq {direction}"
    )
    return connection.execute(sql, (*conditions.values, query.limit)).fetchall()


def count(connection: Database, query: EventFilter, scope: EventScope) -> int:
    """Return the number of events that match, whatever the limit."""
    is_whole = scope.session is None and scope.turns is None and query.times is None
    is_whole = is_whole and not query.after_seq and query.before_seq is None
    if is_whole and not scope.types:
        return scope.total
    if is_whole and scope.projects is None:
        return sum(scope.types.values())
    conditions = _conditions(connection, query, scope, counting=True)
    hint = _hint(connection, query, scope, counting=True)
    sql = f"SELECT count(*) FROM events AS e{hint} WHERE {conditions.clause}"  # noqa: S608  # values are bound
    return int(connection.execute(sql, conditions.values).fetchone()[0])


def _hint(connection: Database, query: EventFilter, scope: EventScope, *, counting: bool = False) -> str:
    """Without statistics SQLite would walk the whole session for a handful of events of one type or hour."""
    if _by_time(query, scope):
        return connection.dialect.by_index("events_at")
    if scope.session is None or scope.turns is not None or not scope.types:
        return ""
    return connection.dialect.by_index("events_type") if counting or _is_rare(query, scope) else ""


def _conditions(
    connection: Database, query: EventFilter, scope: EventScope, *, counting: bool = False
) -> Conditions:
    conditions, unindexed = Conditions(), connection.dialect.unindexed
    by_time = _by_time(query, scope)
    by_type = bool(scope.types) and not by_time and (counting or _is_rare(query, scope))
    seq = unindexed("e.seq") if by_type or by_time else "e.seq"
    if query.times is not None:
        at = "e.at" if by_time else unindexed("e.at")
        conditions.add(f"{at} >= ? AND {at} < ?", *query.times)
    if scope.types:
        placeholders = ", ".join("?" * len(scope.types))
        conditions.add(f"{'e.type' if by_type else unindexed('e.type')} IN ({placeholders})", *scope.types)
    if scope.session is not None:
        conditions.add("e.session = ?", scope.session)
    if scope.turns is not None:
        first, last, start, end = scope.turns
        conditions.add("e.turn BETWEEN ? AND ?", first, last)
        if scope.session is not None:
            conditions.add(
                "e.seq IN (SELECT seq FROM events WHERE session = ? AND seq >= ? AND seq < ? "
                "UNION ALL SELECT seq FROM late_events WHERE session = ? AND turn BETWEEN ? AND ?)",
                scope.session, start, end, scope.session, first, last,
            )  # fmt: skip
    if query.after_seq:
        conditions.add(f"{seq} > ?", query.after_seq)
    if query.before_seq is not None:
        conditions.add(f"{seq} < ?", query.before_seq)
    scope.restrict(conditions)
    return conditions


def _by_time(query: EventFilter, scope: EventScope) -> bool:
    """Return True where the events of a time are found by it, and not in the events of one session."""
    return query.times is not None and scope.session is None


def _is_rare(query: EventFilter, scope: EventScope) -> bool:
    """Return True if collecting and sorting the events of the types costs less than a scan until enough match."""
    wanted = min(sum(scope.types.values()), scope.total)
    return wanted * wanted < query.limit * max(scope.total, 1)


# -- rows to events -------------------------------------------------------------------------------------------


def scan_batch(connection: Database, after_seq: int, limit: int) -> list[tuple[Any, ...]]:
    """Return `EVENT_COLUMNS` of the next events of every session and revision, at most *limit*."""
    return connection.execute(_SCAN, (after_seq, limit)).fetchall()


def stored_events(rows: Iterable[Sequence[Any]], on_unreadable: OnUnreadable | None) -> Iterator[StoredEvent]:
    """Yield the events of `EVENT_COLUMNS`; unreadable ones are passed to *on_unreadable*, else they raise."""
    for row in rows:
        try:
            event = stored_event(row)
        except EventFormatError as error:
            if on_unreadable is None:
                raise
            on_unreadable(row[0], error)
        else:
            yield event


def stored_event(row: Sequence[Any]) -> StoredEvent:
    """Return the event of a row of `EVENT_COLUMNS`. Raises `EventFormatError`."""
    seq, revision, counted, event_hash, body = row
    return StoredEvent(seq, revision, bool(counted), event_hash.hex(), decode(body))


def event_or_damage(row: Sequence[Any]) -> StoredEvent | DamagedEvent:
    """Return the event of a row of `AUDIT_COLUMNS`, damaged also where its type is not that of its row."""
    *event_row, session_id, turn, kind, at = row
    try:
        stored = stored_event(event_row)
    except EventFormatError as error:
        problem = str(error)
    else:
        if stored.event.type == kind:
            return stored
        problem = f"type: expected {kind!r}, got {stored.event.type!r}"
    seq, revision, _counted, event_hash, _body = event_row
    return DamagedEvent(seq, revision, event_hash.hex(), session_id, turn, kind, at, problem)
