"""Notes and bookmarks of readers on the turns of a session, and a title that a reader gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import streamlit as st

from windowpane.core.characters import harmless
from windowpane.core.names import TITLE_CHARACTERS
from windowpane.exceptions import ConfigurationError
from windowpane.store.reads.notes import Note, NoteKind
from windowpane.store.writes.additions import NOTE_CHARACTERS
from windowpane.text.formats import count
from windowpane_dashboard.page import store_access, widgets
from windowpane_dashboard.page.messages import READ_ERRORS
from windowpane_dashboard.queries.filters import SessionAddress
from windowpane_dashboard.sections.session_tabs import SessionView

TEXT, TITLE, FAILED = "note_text", "reader_title", "note_failed"
LISTED: Final = 100
"""Notes listed; all are events of the audit page."""


def notes_section(view: SessionView) -> None:
    """Draw the notes with their turns, and the forms where the store may be written to."""
    session_id = view.row.session_id
    notes = view.snapshot.store.notes(session_id)
    may_write = store_access.may_write(view.snapshot)
    failure = st.session_state.pop(FAILED, None)
    with widgets.part():
        if failure:
            st.error("Nothing was added to the session.", icon=":material/error:")
            st.text(failure)
    if may_write:
        _form(view)
    elif not notes:
        st.text("No notes. You only read the store here, so you cannot add any.")
    for note in notes[:LISTED]:
        _note(note, may_write=may_write)
    if len(notes) > LISTED:
        st.caption(f"The first {LISTED} of {len(notes):,} notes; the audit page lists all.")


def found_notes(notes: Sequence[Note], titles: dict[str, str]) -> None:
    """Draw notes that match a search, each with a link to its turn."""
    if not notes:
        return
    st.markdown(f"**{count(len(notes), 'note')} of readers**")
    for note in notes:
        left, right = st.columns([1, 5], vertical_alignment="top")
        position = SessionAddress(note.session_id, turn=note.turn, tab="notes")
        left.page_link("views/session.py", label=f"Turn {note.turn}", query_params=position.to_query())
        with right:
            st.text(harmless(f"{titles.get(note.session_id) or note.session_id}: {note.text}"))


def _form(view: SessionView) -> None:
    st.text_area(
        f"Note on turn {view.turn}",
        key=TEXT,
        max_chars=NOTE_CHARACTERS,
        height=90,
        help="Stored redacted, as an event of the session in its audit chain.",
    )
    add, bookmark, _ = st.columns([1, 1.5, 1])
    add.button("Add note", width="stretch", on_click=lambda: _add(view, "note"))
    bookmark.button(f"Bookmark turn {view.turn}", width="stretch", on_click=lambda: _add(view, "bookmark"))
    with st.expander("Title of this session", icon=":material/edit:"):
        st.text_input(
            "Title", key=TITLE, max_chars=TITLE_CHARACTERS, placeholder=harmless(view.row.title) or None
        )
        st.button("Give this title", on_click=lambda: _give_title(view))


def _note(note: Note, *, may_write: bool) -> None:
    left, middle, right = st.columns([1.2, 3.2, 1.3], gap="small", vertical_alignment="top")
    position = SessionAddress(note.session_id, turn=note.turn, tab="notes")
    left.page_link("views/session.py", label=f"Turn {note.turn}", query_params=position.to_query())
    mark = ":material/bookmark:" if note.kind == "bookmark" else ":material/sticky_note_2:"
    with middle:
        if note.text:
            st.text(harmless(note.text))
        else:
            st.markdown(f"{mark} bookmark")
    if may_write:
        delete = partial(store_access.whole_store().delete_note, note.session_id, note.note_id)
        right.button("Delete", key=f"delete_{note.note_id}", on_click=lambda: _write(delete))


def _add(view: SessionView, kind: str) -> None:
    text = st.session_state.get(TEXT, "")
    session_id, turn = view.row.session_id, view.turn

    def write() -> None:
        kind_of_note: NoteKind = "bookmark" if kind == "bookmark" else "note"
        store_access.whole_store().add_note(session_id, turn, text, kind=kind_of_note)
        st.session_state[TEXT] = ""

    _write(write)


def _give_title(view: SessionView) -> None:
    def write() -> None:
        store_access.whole_store().give_title(view.row.session_id, st.session_state.get(TITLE, ""))
        st.session_state[TITLE] = ""

    _write(write)


def _write(write: Callable[[], None]) -> None:
    """Write to the store; a failure is shown at the next draw."""
    try:
        write()
    except ConfigurationError as error:
        st.session_state[FAILED] = f"The {error.path} {error.problem}."
    except READ_ERRORS as error:
        st.session_state[FAILED] = str(error)
