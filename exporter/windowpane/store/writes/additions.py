"""Notes, bookmarks, titles and projects that readers give to recorded sessions, as events in its own chain.

Each event has a separate stream, as a delivery report has, so it never takes a number of the agent's stream and
an import of the same recording skips it. A new revision of a session gets copies of them, and the project of the
one before. A live session accepts one only under the key that its agent records with: another key would take over
the agent's chain.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Final

from windowpane.core.codec import decode
from windowpane.core.events import (
    ANNOTATIONS,
    Event,
    EventContext,
    NoteAdded,
    NoteDeleted,
    Payload,
    SessionDescribed,
    SessionTitled,
)
from windowpane.core.names import TITLE_CHARACTERS, check_project, described_line
from windowpane.core.redaction import redact
from windowpane.exceptions import ConfigurationError, StoreError
from windowpane.store.projections.session_drafts import SessionDraft
from windowpane.store.reads.fleet import ASSIGNED
from windowpane.store.reads.notes import MAXIMUM_EVENTS, NoteKind
from windowpane.store.statements import placeholders
from windowpane.store.writes import chain
from windowpane.store.writes.write import Writer

NOTE_CHARACTERS: Final = 2_000
_WINDOW: Final = "SELECT window_id FROM turns WHERE session = ? AND turn = ?"
_EVENTS: Final = (
    "SELECT body FROM events WHERE session = ? AND type IN "  # noqa: S608  # placeholders only
    f"(SELECT id FROM event_types WHERE name IN ({placeholders(ANNOTATIONS)})) "
    "ORDER BY seq"
)


def add_note(writer: Writer, session_id: str, turn: int, text: str, kind: NoteKind) -> str:
    """Add a note or bookmark to a turn, inside the caller's transaction; return its id.

    The text is redacted, and cut at `NOTE_CHARACTERS`. Raises `ConfigurationError` for an empty note and
    `StoreError` where the session or turn is unknown or has a chain that this process may not continue.
    """
    session = writable_session(writer, session_id)
    if not 0 <= turn <= session.last_turn:
        raise StoreError(f"session {session_id} has no turn {turn}; its last one is {session.last_turn}")
    clean = redact(text.strip()[: 2 * NOTE_CHARACTERS]).text[:NOTE_CHARACTERS]
    if kind == "note" and not clean:
        raise ConfigurationError("text", "is empty", expected="the text of the note")
    note_id = secrets.token_hex(8)
    _append(writer, session, turn, f"note:{note_id}", NoteAdded(note_id, clean, kind))
    return note_id


def delete_note(writer: Writer, session_id: str, note_id: str) -> None:
    """Delete a note with a further event; the record keeps both. Raises `StoreError` for an unknown note."""
    session = writable_session(writer, session_id)
    for body in _bodies(writer, session):
        event = decode(body)
        if isinstance(event.data, NoteAdded) and event.data.note_id == note_id:
            turn = event.context.turn
            _append(writer, session, turn, f"note:{note_id}:deleted", NoteDeleted(note_id))
            return
    raise StoreError(f"session {session_id} has no note {note_id}")


def give_title(writer: Writer, session_id: str, title: str) -> None:
    """Give a session a title, one redacted line. Raises `ConfigurationError` for an empty one."""
    session = writable_session(writer, session_id)
    line = described_line(title, TITLE_CHARACTERS)
    if not line:
        raise ConfigurationError("title", "is empty", expected="a short name for the session")
    _append(writer, session, session.last_turn, f"title:{secrets.token_hex(8)}", SessionTitled(line))


def assign_project(writer: Writer, session_id: str, project: str) -> None:
    """Assign a session to *project*, inside the caller's transaction; nothing changes if it belongs to it.

    Raises `ConfigurationError` for an invalid name and `StoreError` where the session is unknown or has a chain
    that this process may not continue.
    """
    check_project("project", project)
    session = writable_session(writer, session_id)
    if session.project != project:
        assign_project_to(writer, session, project)


def assign_project_to(writer: Writer, session: SessionDraft, project: str) -> None:
    """Assign an open session to *project*; it does not become more recent by that."""
    stream = f"{ASSIGNED}{secrets.token_hex(8)}"
    append_beside(
        writer, session, session.last_turn, stream, SessionDescribed(project=project), at=session.last_at
    )


def append_beside(
    writer: Writer, session: SessionDraft, turn: int, stream: str, data: Payload, *, at: float | None
) -> None:
    """Append an event to a session under a stream that is not its agent's."""
    row = writer.connection.execute(_WINDOW, (session.key, turn)).fetchone()
    context = EventContext(
        session_id=session.session_id,
        agent=session.agent,
        model=session.model,
        turn=turn,
        window_id=session.windows if row is None else row[0],
        source=session.source,
        stream_id=stream,
        parent_session_id=session.parent_session_id,
    )
    writer.append([Event(context, 0, at, data)], into=session)


def copy_to(writer: Writer, old: SessionDraft, session: SessionDraft) -> None:
    """Append the annotations of a session's earlier revision to its new one."""
    events = [decode(body) for body in _bodies(writer, old)]
    for event in events:
        turn = min(event.context.turn, session.last_turn)
        writer.append([event._replace(context=replace(event.context, turn=turn))], into=session)


def _bodies(writer: Writer, session: SessionDraft) -> list[bytes]:
    return [body for (body,) in writer.connection.execute(_EVENTS, (session.key, *ANNOTATIONS))]


def writable_session(writer: Writer, session_id: str) -> SessionDraft:
    """Return the session if this process may continue its chain; otherwise raise `StoreError`."""
    session = writer.session(session_id)
    if session is None:
        raise StoreError(f"session {session_id} is not in the store")
    chain.check_signer(writer.connection, key=writer.audit_key, purpose="adding to a session")
    if not session.ended and session.keyed_by != writer.key_id:
        raise StoreError(
            f"session {session_id} is still recorded under another audit key than this process has, or without "
            "one; adding to it would break its chain. Use the same key, or wait until the session has ended"
        )
    return session


def _append(
    writer: Writer, session: SessionDraft, turn: int, stream: str, data: NoteAdded | NoteDeleted | SessionTitled
) -> None:
    if len(_bodies(writer, session)) >= MAXIMUM_EVENTS:
        raise StoreError(
            f"session {session.session_id} has {MAXIMUM_EVENTS:,} notes and titles, the most it may have"
        )
    append_beside(writer, session, turn, stream, data, at=round(writer.clock(), 6))
