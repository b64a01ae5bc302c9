"""The rows that the findings of a session rest on, read from the store in bounded reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from windowpane.core.events import CacheBroken, ContentRegretted
from windowpane.core.liveness import is_live
from windowpane.report.findings import SessionEvidence
from windowpane.store.interface import EventFilter, EventReader
from windowpane.store.records import SessionRow, TurnRow, intact_events

MAXIMUM_EVENTS: Final = 500
"""Cache breaks and regrets that are read, of each; their totals are in the session's row."""

Payload = TypeVar("Payload", CacheBroken, ContentRegretted)


def read_evidence(
    store: EventReader, session: SessionRow, turns: Sequence[TurnRow], *, now: float | None = None
) -> SessionEvidence:
    """Read the evidence about *session*; without *now* it counts as recorded, not live."""
    last = turns[-1].turn if turns else 0
    return SessionEvidence(
        session,
        turns,
        store.tool_use(session.session_id),
        _read(store, session, CacheBroken) if session.cache_breaks else (),
        _read(store, session, ContentRegretted) if session.regrets else (),
        [block for block in store.blocks_at(session.session_id, last) if block.content_type == "tool_definition"],
        is_live=now is not None and is_live(session, now),
    )


def _read(store: EventReader, session: SessionRow, kind: type[Payload]) -> list[tuple[int, Payload]]:
    query = EventFilter(session_id=session.session_id, types=(kind.type,), limit=MAXIMUM_EVENTS)
    events = intact_events(store.events_or_damage(query))
    return [(one.event.context.turn, data) for one in events if isinstance(data := one.event.data, kind)]
