"""The write path: events become rows, links of their session's chain and projections, in one transaction.

`seq` and hash are assigned under the write lock from rows that every process shares, so several may write
at once. What a writer remembers of a session is used again only while the session's head is where it left it.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from windowpane.core.codec import encode
from windowpane.core.events import PAYLOADS, Event
from windowpane.core.protocols import Clock
from windowpane.exceptions import StoreError
from windowpane.store import heads, session_state
from windowpane.store.chain import UNKEYED, Link, genesis, key_id, link_with
from windowpane.store.contents import ContentCapture
from windowpane.store.operations import Operations, Value
from windowpane.store.projection import Projection
from windowpane.store.session_state import SessionState

REMEMBERED_SESSIONS: Final = 512
"""States kept between batches; the ones not used for longest are read again."""

_INSERT_EVENT: Final = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)"
_TYPE: Final = 3
"""Place of the type in a row of `events`."""
_ADVANCE: Final = "UPDATE store SET next_seq = ?"
_COUNT: Final = "UPDATE event_types SET events = events + ? WHERE id = ?"
_HEAD: Final = "SELECT head_seq FROM sessions WHERE session_id = ? AND current = 1"


class Writer:
    """Appends events through one connection; its owner serialises calls and opens the transaction."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        *,
        audit_key: bytes | None,
        capture: ContentCapture | None,
        clock: Clock,
    ) -> None:
        self.connection = connection
        self.audit_key = audit_key
        self.capture = capture
        self.clock = clock
        self._key_id = key_id(audit_key)
        self._keyed = link_with(audit_key)
        self._plain = link_with(None)
        self._states: dict[str, SessionState] = {}
        self._types = self._type_ids()

    def forget(self) -> None:
        """Trust nothing that was remembered: a transaction did not happen, or rows were changed elsewhere."""
        self._states.clear()
        if self.capture is not None:
            self.capture.discard()

    def state(self, session_id: str) -> SessionState | None:
        """The current revision of a session, or None; inside a transaction."""
        known = self._states.pop(session_id, None)
        if known is not None:
            head = self.connection.execute(_HEAD, (session_id,)).fetchone()
            if head is None or head[0] != known.head_seq:
                known = None
        state = known or session_state.load(self.connection, session_id)
        if state is not None:
            self._remember(state)
        return state

    def begin_session(self, session_id: str, *, revision: int | None = None) -> SessionState:
        """A new chain; a session that retention deleted goes on with its next revision."""
        number = revision or heads.last_revision(self.connection, session_id) + 1
        state = SessionState(session_id, number, 1, self._key_id, 0, 0, genesis(session_id, number))
        session_state.insert(self.connection, state)
        self._remember(state)
        return state

    def append(self, batch: Iterable[Event], *, into: SessionState | None = None) -> int:
        """Store events in order and return how many; *into* names the session where the caller has it."""
        operations = Operations(self.connection)
        projection = Projection(operations)
        seq = self.next_seq()
        rows: list[tuple[Value, ...]] = []
        touched: dict[str, SessionState] = {}
        types, capture = self._types, self.capture
        context, state, link = None, into, self._plain
        previous = b""
        for event in batch:
            if event.context is not context:
                if state is not None:
                    state.head_hash = previous or state.head_hash
                context = event.context
                state = touched.get(context.session_id) or into or self._open(context.session_id)
                touched[context.session_id] = state
                link, previous = self._link(state), state.head_hash
                projection.enter(state, event)
            assert state is not None
            body = encode(event)
            previous = link(previous, body)
            rows.append((seq, state.key, context.turn, types[event.data.type], event.at, body, previous))
            state.head_seq = seq
            projection.apply(state, event, seq)
            if capture is not None:
                capture.collect(event)
            seq += 1
        if state is not None:
            state.head_hash = previous or state.head_hash
        self.connection.executemany(_INSERT_EVENT, rows)
        projection.save()
        self._finish(touched, Counter(row[_TYPE] for row in rows), seq)
        return len(rows)

    def next_seq(self) -> int:
        """The number the next event will get; inside a transaction."""
        return int(self.connection.execute("SELECT next_seq FROM store").fetchone()[0])

    def add_head(self, kind: heads.HeadKind, state: SessionState) -> None:
        """Chain how far a session has come."""
        heads.add(
            self.connection, kind, session_id=state.session_id, revision=state.revision, events=state.events,
            head=state.head_hash, keyed_by=state.keyed_by, key=self.audit_key, at=self.clock(),
        )  # fmt: skip

    # -- inside -----------------------------------------------------------------------------------------------

    def _finish(self, touched: dict[str, SessionState], counts: Mapping[Value, int], seq: int) -> None:
        for state in touched.values():
            session_state.save(self.connection, state)
            if state.ended and state.last_event == "session.ended":
                self.add_head("head", state)
        self.connection.executemany(_COUNT, [(count, kind) for kind, count in counts.items()])
        if self.capture is not None:
            self.capture.save(self.connection)
        self.connection.execute(_ADVANCE, (seq,))

    def _open(self, session_id: str) -> SessionState:
        return self.state(session_id) or self.begin_session(session_id)

    def _link(self, state: SessionState) -> Link:
        if state.keyed_by == UNKEYED:
            return self._plain
        if state.keyed_by != self._key_id:
            raise StoreError(
                f"session {state.session_id}: its audit chain uses the key {state.keyed_by}, "
                f"this process has {self._key_id or 'none'}; set WINDOWPANE_AUDIT_KEY to the same key"
            )
        return self._keyed

    def _remember(self, state: SessionState) -> None:
        self._states[state.session_id] = state
        while len(self._states) > REMEMBERED_SESSIONS:
            self._states.pop(next(iter(self._states)))

    def _type_ids(self) -> dict[str, int]:
        """Numbers of the event names; names that this database has not seen yet are added."""
        read = "SELECT name, id FROM event_types"
        known = dict(self.connection.execute(read).fetchall())
        missing = [(name,) for name in PAYLOADS if name not in known]
        if missing:
            self.connection.executemany("INSERT OR IGNORE INTO event_types (name) VALUES (?)", missing)
            known = dict(self.connection.execute(read).fetchall())
        return known
