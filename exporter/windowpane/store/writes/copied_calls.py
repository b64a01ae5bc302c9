"""Calls that two recordings hold: a fork or a resumed session repeats the history of the one that it came from.

The id that the provider gave the reply shows it. The session that was stored first counts the call. The other one
gets a `calls.copied` before the turn: its window shows the copied history, and no sum counts its calls again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from windowpane.core.events import CallsCopied, Event, TurnEnded
from windowpane.core.same_session import call_number, is_recording
from windowpane.store.projections import call_ids, session_drafts

if TYPE_CHECKING:
    from windowpane.store.database import Database
    from windowpane.store.projections.session_drafts import SessionDraft

STREAM: Final = "copies:"
"""Start of the name of the stream of a session's `calls.copied`."""


class CopiedCalls:
    """Recognizes the calls of one batch of events that another session counts."""

    def __init__(self, connection: Database) -> None:
        self._connection = connection
        self._batch: dict[int, SessionDraft] = {}
        """The sessions of the calls in the batch, which are not stored yet."""
        self._sessions: dict[int, SessionDraft | None] = {}

    def marked(self, session: SessionDraft, events: Sequence[Event]) -> Sequence[Event]:
        """Return the events of a session with a `calls.copied` before each range of copied turns."""
        if not is_recording(events[0].context.source):
            return events
        calls = {
            number: event.context.turn
            for event in events
            if isinstance(event.data, TurnEnded) and (number := call_number(event.data.response_id)) is not None
        }
        if not calls:
            return events
        marks = [event.data for event in events if isinstance(event.data, CallsCopied)]
        origins: dict[int, str] = {}
        for number, origin in self._counted(session, calls, events[0].context.source):
            turn = calls[number]
            if not session.memory.is_copied(turn) and not any(one.covers(turn) for one in marks):
                origins[turn] = origin
        self._batch |= {number: session for number, turn in calls.items() if turn not in origins}
        return _with_marks(session, events, origins) if origins else events

    def _counted(self, session: SessionDraft, calls: dict[int, int], source: str) -> Iterator[tuple[int, str]]:
        """Yield each of the calls that another session of the same kind counts, with that session's id."""
        for number in calls:
            other = self._batch.get(number)
            if other is not None and _is_other_recording(session, source, other):
                yield number, other.session_id
        for number, key in call_ids.sessions_with(self._connection, list(calls)):
            if key == session.key:
                continue
            if key not in self._sessions:
                self._sessions[key] = session_drafts.load_key(self._connection, key)
            other = self._sessions[key]
            if other is not None and _is_other_recording(session, source, other):
                yield number, other.session_id


def _is_other_recording(session: SessionDraft, source: str, other: SessionDraft) -> bool:
    """Return whether both are recordings of one kind in one project, *session* by *source*.

    Records of one session by several kinds of sources are identified instead.
    """
    return (
        session.key != other.key
        and not session.same_as
        and not other.same_as
        and session.project == other.project
        and is_recording(source)
        and is_recording(other.source)
    )


def _with_marks(session: SessionDraft, events: Sequence[Event], origins: dict[int, str]) -> list[Event]:
    """Return the events with a mark before the first of each range of turns; never before a session's start."""
    marked: list[Event] = []
    ranges = list(_ranges(origins))
    number = session.memory.copies
    for event in events:
        has_started = bool(marked or session.events)
        while ranges and has_started and event.context.turn >= ranges[0].first_turn:
            before = marked[-1] if marked else event
            context = replace(before.context, stream_id=STREAM + session.session_id)
            marked.append(Event(context, number, before.at, ranges.pop(0)))
            number += 1
        marked.append(event)
    return marked


def _ranges(origins: dict[int, str]) -> Iterator[CallsCopied]:
    """Yield the ranges of turns in order, one per session that counts them."""
    first = last = 0
    for turn in sorted(origins):
        if not first or turn != last + 1 or origins[turn] != origins[first]:
            if first:
                yield CallsCopied(origins[first], first, last)
            first = turn
        last = turn
    yield CallsCopied(origins[first], first, last)
