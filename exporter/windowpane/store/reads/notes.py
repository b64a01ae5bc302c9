"""Notes, bookmarks and titles that readers gave to recorded sessions, folded from their events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from windowpane.core.events import NoteAdded, NoteDeleted
from windowpane.store.records import DamagedEvent, StoredEvent, intact_events

MAXIMUM_EVENTS: Final = 1_000
"""Annotations of one session, deletions and titles included, so that they never outgrow the record."""
NOTE_EVENTS: Final = (NoteAdded.type, NoteDeleted.type)

NoteKind = Literal["note", "bookmark"]


@dataclass(frozen=True, slots=True)
class Note:
    """A note or bookmark that is not deleted."""

    note_id: str
    session_id: str
    turn: int
    kind: NoteKind
    text: str
    at: float | None


def notes_of(events: Iterable[StoredEvent]) -> list[Note]:
    """Fold `note.added` and `note.deleted` into the notes that remain, by turn and time."""
    notes: dict[str, Note] = {}
    for stored in events:
        context, at, data = stored.event.context, stored.event.at, stored.event.data
        if isinstance(data, NoteAdded):
            notes[data.note_id] = Note(data.note_id, context.session_id, context.turn, data.kind, data.note, at)
        elif isinstance(data, NoteDeleted):
            notes.pop(data.note_id, None)
    return sorted(notes.values(), key=lambda note: (note.turn, note.at or 0.0))


def without_deleted(
    events: Iterable[StoredEvent | DamagedEvent],
) -> list[StoredEvent | DamagedEvent]:
    """Return the events without the notes that were deleted and without the deletions."""
    events = list(events)
    payloads = [one.event.data for one in intact_events(events)]
    deleted = {data.note_id for data in payloads if isinstance(data, NoteDeleted)}
    return [
        one
        for one in events
        if isinstance(one, DamagedEvent)
        or not isinstance(data := one.event.data, NoteAdded | NoteDeleted)
        or data.note_id not in deleted
    ]
