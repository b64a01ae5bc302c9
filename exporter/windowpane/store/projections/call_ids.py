"""The calls of each session, by the ids that the provider gave their replies and tool calls.

Every source that records a call records these ids, so a call that is in two sessions shows that both are one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from windowpane.core.events import Event
from windowpane.core.same_session import numbers_in
from windowpane.store.database import Database
from windowpane.store.projections.session_drafts import SessionDraft
from windowpane.store.statements import StatementBatch, in_lists, placeholders

CALLS_PER_STATEMENT: Final = 200

_INSERT: Final = "INSERT INTO call_ids (session, call) VALUES (?, ?) ON CONFLICT DO NOTHING"


class CallIds:
    """The calls that a batch adds."""

    def __init__(self, statements: StatementBatch) -> None:
        self._statements = statements
        self.added: dict[int, list[int]] = {}
        """Their numbers by the row number of the session."""

    def apply(self, session: SessionDraft, events: Sequence[Event]) -> None:
        """Add the calls that *events* name, without those that another session counts."""
        key, memory = session.key, session.memory
        if memory.copied:
            events = [event for event in events if not memory.is_copied(event.context.turn)]
        for number in numbers_in(events):
            self._statements.defer(_INSERT, (key, number))
            self.added.setdefault(key, []).append(number)


def sessions_with(connection: Database, calls: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield each of *calls* with the row number of each session that has it."""
    for some in in_lists(calls, CALLS_PER_STATEMENT):
        sql = f"SELECT call, session FROM call_ids WHERE call IN ({placeholders(some)})"  # noqa: S608
        yield from connection.execute(sql, some).fetchall()
