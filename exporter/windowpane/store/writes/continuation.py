"""Sessions that are recorded again: a later run continues where the store's record of the session ends.

A run is what one process or window records of a session, in one stream. Every run counts its turns, windows and
exchanges from 1 and its blocks from `b0`, and cannot know what is stored: its agent may run on another host. So
the numbers of a run that is not the first are changed when its events are stored, inside the transaction that
knows where the record ends. `session.continued` states by how much, before the first event that it applies to.
Where two runs record at once, their turns are stored in the order in which they arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Final, NamedTuple

import msgspec

from windowpane.core.decoders import json_decoder
from windowpane.core.events import (
    ALERT_STREAM,
    ANNOTATIONS,
    AlertFired,
    AlertResolved,
    BlockAdded,
    BlocksEvicted,
    BlocksReferenced,
    CacheBroken,
    Candidate,
    ContentCompressed,
    ContentRegretted,
    Event,
    EventContext,
    EvictedBlock,
    HistoryRewound,
    MisstepObserved,
    NotificationDelivered,
    NotificationFailed,
    ReplyDiscarded,
    SessionContinued,
    StaticContentRemoved,
    WindowRolled,
)
from windowpane.core.window.blocks import Block
from windowpane.store.database import Database
from windowpane.store.projections.session_drafts import RunPart, SessionDraft

REMEMBERED_STREAMS: Final = 4_096
FIRST_RUN: Final = 1

_FIRST_BODY: Final = "SELECT body FROM events WHERE session = ? ORDER BY seq LIMIT 1"
_OF_ALERTS: Final = (AlertFired, AlertResolved, NotificationDelivered, NotificationFailed)


class _FirstEvent(msgspec.Struct):
    stream_id: str


_decoder: Final = json_decoder(_FirstEvent)


class Continuation:
    """Renumbers the events of later runs, so that they come after what is stored. Not thread-safe."""

    def __init__(self, connection: Database) -> None:
        self._connection = connection
        self._first_streams: dict[int, str] = {}
        """The stream of the first run, by the session's row number."""

    def renumbered(self, session: SessionDraft, events: Sequence[Event]) -> Iterable[Sequence[Event]]:
        """Return a session's *events* as they are stored, in parts.

        Each part is to be applied to the session before the next is taken. A session of one run is one part.
        """
        return (events,) if self._is_first_run(session, events) else self._parts(session, events)

    def _parts(self, session: SessionDraft, events: Sequence[Event]) -> Iterator[Sequence[Event]]:
        for _, group in groupby(events, key=_context_number):
            part = list(group)
            first = part[0]
            continued, run = self._run(session, first)
            if run is not None:
                context = run.context(first.context)
                part = [Event(context, n, at, run.renumber(data)) for _, n, at, data in part]
            if continued is not None:
                part.insert(0, Event(_context_beside(session, continued), 0, first.at, continued))
            yield part

    def reset(self) -> None:
        """Discard what is remembered: a transaction was rolled back."""
        self._first_streams.clear()

    def _is_first_run(self, session: SessionDraft, events: Sequence[Event]) -> bool:
        """Return whether the session has one run so far, which all *events* are part of."""
        if not session.events:
            self._remember(session.key, run_of(events[0]))
        if session.memory.parts:
            return False
        first, context = self._first_stream(session), None
        for event in events:
            if event.context is not context:
                context = event.context
                if run_of(event) != first:
                    return False
        return True

    def _run(self, session: SessionDraft, event: Event) -> tuple[SessionContinued | None, _Run | None]:
        """Return the run of an event, None for the only one, and what is to be stated of it first."""
        context, data, memory = event.context, event.data, session.memory
        stream, first = run_of(event), self._first_stream(session)
        is_beside = isinstance(data, _OF_ALERTS) or data.type in ANNOTATIONS
        if context.source != (session.source or context.source) or (stream == first and not memory.parts):
            return None, None
        parts = [part for part in memory.parts if part.run == stream]
        if stream == first:
            parts.insert(0, RunPart(stream, FIRST_RUN))
        if parts:
            run = _Run(tuple(parts))
            if is_beside or not _is_taken(memory.parts, run.part(context.turn), context.turn):
                return None, run
            part = parts[-1]
            turns = session.last_turn + 1 - context.turn
            part = RunPart(stream, part.number, context.turn, turns, part.windows, part.exchanges)
            return _stated(part, interleaved=True), _Run((*parts, part))
        if is_beside:
            return None, None
        part = RunPart(stream, memory.runs + 1, 0, session.last_turn, session.windows, session.exchanges)
        return _stated(part), _Run((part,))

    def _first_stream(self, session: SessionDraft) -> str:
        stream = self._first_streams.get(session.key)
        if stream is None:
            row = self._connection.execute(_FIRST_BODY, (session.key,)).fetchone()
            stream = "" if row is None else _decoder.decode(row[0]).stream_id
            self._remember(session.key, stream)
        return stream

    def _remember(self, key: int, stream: str) -> None:
        self._first_streams[key] = stream
        while len(self._first_streams) > REMEMBERED_STREAMS:
            self._first_streams.pop(next(iter(self._first_streams)))


def _context_number(event: Event) -> int:
    return id(event.context)


def run_of(event: Event) -> str:
    """Return the stream of the run that an event is part of; alerts and deliveries have their own beside it."""
    stream = event.context.stream_id
    if isinstance(event.data, AlertFired | AlertResolved):
        return stream.removesuffix(ALERT_STREAM)
    if isinstance(event.data, NotificationDelivered | NotificationFailed):
        return stream.rpartition(f"{ALERT_STREAM}/")[0] or stream
    return stream


def _is_taken(parts: Sequence[RunPart], part: RunPart, turn: int) -> bool:
    """Return whether a turn of a run, as *part* numbers it, is behind the start of a later part."""
    later = parts[parts.index(part) + 1 :] if part in parts else parts
    return bool(later) and turn + part.turns > later[0].turns + max(later[0].from_turn - 1, 0)


def _stated(part: RunPart, *, interleaved: bool = False) -> SessionContinued:
    return SessionContinued(
        part.run, part.number, part.from_turn, part.turns, part.windows, part.exchanges, interleaved
    )


def _context_beside(session: SessionDraft, continued: SessionContinued) -> EventContext:
    return EventContext(
        session_id=session.session_id,
        agent=session.agent,
        model=session.model,
        turn=session.last_turn,
        window_id=session.windows,
        source=session.source,
        stream_id=f"continued:{continued.run}:{continued.from_turn}",
        parent_session_id=session.parent_session_id,
    )


class _Run(NamedTuple):
    """The numbers of one run in its session, in parts by its turns."""

    parts: tuple[RunPart, ...]

    def part(self, turn: int) -> RunPart:
        """Return the part that a turn of the run is in."""
        return next((part for part in reversed(self.parts) if part.from_turn <= turn), self.parts[0])

    def context(self, context: EventContext) -> EventContext:
        """Return the context of an event as it is stored."""
        return replace(context, turn=self.turn(context.turn), window_id=self.window(context.window_id))

    def renumber(self, value: Any) -> Any:
        """Return an event's data, or a part of it, with the numbers of the session."""
        conversions = _FIELDS.get(type(value))
        if conversions is None:
            return value
        old = ((name, convert, getattr(value, name)) for name, convert in conversions.items())
        return replace(value, **{name: convert(self, item) for name, convert, item in old if item is not None})

    def turn(self, turn: int) -> int:
        """Return a turn's number in the session."""
        return turn + self.part(turn).turns

    def exchange(self, exchange: int) -> int:
        """Return an exchange's number in the session."""
        return exchange + self.parts[0].exchanges

    def window(self, window: int) -> int:
        """Return a window's number in the session."""
        return window + self.parts[0].windows

    def block(self, block_id: str) -> str:
        """Return a block's id in the session."""
        number = self.parts[0].number
        return block_id if number == FIRST_RUN else f"{block_id}.{number}"

    def blocks(self, block_ids: Sequence[str]) -> tuple[str, ...]:
        """Return blocks' ids in the session."""
        return tuple(map(self.block, block_ids))

    def each(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Return parts of an event's data with the numbers of the session."""
        return tuple(map(self.renumber, values))


_FIELDS: Final[dict[type, dict[str, Callable[[_Run, Any], Any]]]] = {
    Block: {
        "id": _Run.block, "group": _Run.block, "replaces": _Run.block,
        "turn": _Run.turn, "exchange": _Run.exchange,
    },
    BlockAdded: {"block": _Run.renumber},
    BlocksReferenced: {"block_ids": _Run.blocks, "by": _Run.block},
    ReplyDiscarded: {"block_ids": _Run.blocks},
    StaticContentRemoved: {"block_ids": _Run.blocks},
    HistoryRewound: {"last_kept": _Run.block},
    EvictedBlock: {"block_id": _Run.block, "replacement": _Run.block, "turn_added": _Run.turn},
    Candidate: {"block_id": _Run.block},
    BlocksEvicted: {"blocks": _Run.each, "candidates": _Run.each},
    ContentCompressed: {"removed": _Run.blocks, "results": _Run.blocks},
    ContentRegretted: {"block_id": _Run.block, "by": _Run.block, "turn_left": _Run.turn},
    CacheBroken: {"block_id": _Run.block},
    MisstepObserved: {"block_id": _Run.block, "call_turn": _Run.turn},
    WindowRolled: {"from_window": _Run.window, "to_window": _Run.window},
    AlertFired: {"crossing_turn": _Run.turn},
    AlertResolved: {"crossing_turn": _Run.turn, "fired_turn": _Run.turn},
    NotificationDelivered: {"crossing_turn": _Run.turn},
    NotificationFailed: {"crossing_turn": _Run.turn},
}  # fmt: skip
"""The fields that hold a number or an id that a run counts by itself."""
