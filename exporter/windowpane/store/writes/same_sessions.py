"""Sessions that several sources record: recognized, so that each counts once.

A transcript, an observed client, the proxy and telemetry may record the same session, each in a session of the
store that has its own chain. Two of these are one if they have a call in common, by the id of its reply or of a
tool call in it (`call_ids`), or if one has the id that the agent gave the other; both at the same time, because
recorded replies may be played again. Then the lesser record gets a
`session.identified`, and is no longer listed or counted; its events and its window remain.

Whichever was stored first, the record that counts is
1. one whose calls have their usage,
2. the agent's own recording: it has the session from its first call, its names, sub-agents and compactions,
3. that of the observed client, which has the names that its code gives,
4. the proxy's, then a log of calls, then telemetry.
Two records of one kind are never one: a fork repeats the calls of the session that it came from. Nor are those of
two projects.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, Literal, Protocol

from windowpane.core.agents import STATED_BY_PROXY
from windowpane.core.events import Event, EventContext, SessionIdentified
from windowpane.core.same_session import CLOCK_SECONDS, rank
from windowpane.store.projections import call_ids, session_drafts
from windowpane.store.projections.session_drafts import SessionDraft
from windowpane.store.reads import fleet

if TYPE_CHECKING:
    from windowpane.store.database import Database
    from windowpane.store.projections.projection import Projection

MAXIMUM_RECORDS: Final = 16
"""Records of one session that are followed to the one that counts."""

Evidence = Literal["call", "id"]

_log: Final = logging.getLogger(__name__)


class SessionWriter(Protocol):
    """The part of the store's writer by which a session is identified."""

    @property
    def connection(self) -> Database:
        """The connection, inside a transaction."""
        ...

    @property
    def key_id(self) -> str:
        """Name of the audit key of this process."""
        ...

    def append(self, batch: Sequence[Event], *, into: SessionDraft | None = None) -> int:
        """Store events of the session *into*."""
        ...


def accepted(session: SessionDraft, events: Sequence[Event]) -> Sequence[Event]:
    """Return the events that no more complete record of the session, under the same id, supersedes."""
    source = session.source or (events[0].context.source if events else "")
    if all(event.context.source == source for event in events):
        return events
    counting = []
    for event in events:
        if rank(event.context.source) >= rank(source):
            source = event.context.source
            counting.append(event)
    return counting


def recognize(writer: SessionWriter, sessions: Iterable[SessionDraft], projection: Projection) -> None:
    """Compare the sessions of a batch with all others; inside the transaction that stored the batch."""
    own = {session.key: session for session in sessions if not session.same_as and session.turns}
    calls = {call: key for key in own for call in projection.calls.added.get(key, ())}
    shared: Counter[tuple[int, int]] = Counter()
    if calls:
        for call, other in call_ids.sessions_with(writer.connection, list(calls)):
            if other != calls[call]:
                shared[calls[call], other] += 1
    pairs: list[tuple[int, int, Evidence]] = [(key, other, "call") for (key, other), _ in shared.most_common()]
    stated = {_stated(own[key].session_id): key for key in own.keys() & projection.first_turns}
    if stated:
        current = fleet.current_keys(writer.connection, list(stated))
        pairs += [(stated[one], other, "id") for one, other in current]
    for key, other, evidence in pairs:
        session, match = own[key], own.get(other) or session_drafts.load_key(writer.connection, other)
        if match is None or not match.turns or session.same_as or match.project != session.project:
            continue  # what one project records changes no count of another
        if _overlap(session, match) and not _is_beside(writer.connection, session, match):
            _identify(writer, session, match, evidence)


def _overlap(first: SessionDraft, second: SessionDraft) -> bool:
    """Return whether both took place at the same time, as two records of one session do."""
    if first.started_at is None or first.last_at is None or second.started_at is None or second.last_at is None:
        return True
    starts_before_end = first.started_at <= second.last_at + CLOCK_SECONDS
    return starts_before_end and second.started_at <= first.last_at + CLOCK_SECONDS


def _is_beside(connection: Database, session: SessionDraft, other: SessionDraft) -> bool:
    """Return whether *session* is below *other* and repeats its history, as a call that writes its summary does.

    A branch, whose id starts with that of its session, may have calls of it.
    """
    parent_id = session.parent_session_id
    if parent_id is None or session.session_id.startswith(f"{parent_id}/"):
        return False
    if other.session_id in (parent_id, _stated(parent_id)):
        return True
    parent = session_drafts.load(connection, parent_id)
    return parent is not None and parent.same_as == other.session_id


def _stated(session_id: str) -> str:
    """Return the id of the session that this one names, or that names this one."""
    is_of_proxy = session_id.startswith(STATED_BY_PROXY)
    return session_id.removeprefix(STATED_BY_PROXY) if is_of_proxy else STATED_BY_PROXY + session_id


def _identify(writer: SessionWriter, first: SessionDraft, second: SessionDraft, by: Evidence) -> None:
    """Add the event to the lesser of two records, unless they are of one kind."""
    lesser, greater = sorted((first, second), key=_completeness)
    if rank(lesser.source) == rank(greater.source) or lesser.same_as:
        return
    if lesser.keyed_by != writer.key_id:
        _log.warning(
            "session %s is also recorded as %s, under another audit key: both count",
            greater.session_id, lesser.session_id,
        )  # fmt: skip
        return
    same_as = _counting(writer.connection, greater)
    if same_as == lesser.session_id:
        return
    context = EventContext(
        session_id=lesser.session_id,
        agent=lesser.agent,
        model=lesser.model,
        turn=lesser.last_turn,
        window_id=lesser.windows,
        source=lesser.source,
        stream_id=f"identity:{lesser.session_id}",
        parent_session_id=lesser.parent_session_id,
    )
    writer.append([Event(context, 0, lesser.last_at, SessionIdentified(same_as, by))], into=lesser)


def _completeness(session: SessionDraft) -> tuple[bool, int]:
    return session.input_tokens > 0, rank(session.source)


def _counting(connection: Database, session: SessionDraft) -> str:
    """Return the id of the record that counts for *session*, its own where it does."""
    for _ in range(MAXIMUM_RECORDS):
        following = session_drafts.load(connection, session.same_as) if session.same_as else None
        if following is None:
            break
        session = following
    return session.session_id
