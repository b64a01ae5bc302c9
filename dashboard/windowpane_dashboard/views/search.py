"""Search: a phrase or words in any captured text, with links to the turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import streamlit as st

from windowpane.store.reads.notes import Note
from windowpane.store.search.content import ContentFilter, ContentHits
from windowpane.text.formats import count
from windowpane_dashboard.page import address, messages, project_choice, store_access, widgets
from windowpane_dashboard.page.store_access import StoreSnapshot
from windowpane_dashboard.queries.filters import MAXIMUM_TEXT, SearchAddress
from windowpane_dashboard.queries.titles import session_title, sessions_by_id
from windowpane_dashboard.sections.block_panel import how_to_capture
from windowpane_dashboard.sections.notes import found_notes
from windowpane_dashboard.sections.reading import found_sessions, no_hits

PAGE = "search"
HITS: Final = 500
"""Passages that one search lists at most; of each session the page shows the first."""


def main() -> None:
    """Draw the page."""
    snapshot = store_access.open_snapshot()
    with messages.report_read_errors("Captured content cannot be searched"):
        head = st.container()
        position = SearchAddress.from_query(project_choice.query_of(PAGE))
        snapshot = project_choice.of_project(snapshot, PAGE, position.project)
        size = snapshot.store.size()
        if not size.events:
            messages.show_empty("The store is there, but it holds no events yet.")
        content = (
            count(size.contents, "captured passage") if snapshot.projects is None else "The captured content"
        )
        headline = f"{content} of {count(size.sessions, 'session')} can be searched."
        search_bar(position)
        if position.text:
            headline = results(snapshot, position) or headline
        elif snapshot.projects is None and not size.contents:
            how_to_capture()
        else:
            st.text("All captured content is searched, also what was removed. A part of a word is found too.")
        with head:
            widgets.headline(headline)
    store_access.rerun_on_change(snapshot, page=PAGE)


def search_bar(position: SearchAddress) -> None:
    """Draw the query of the address."""
    st.text_input(
        "Search captured content",
        placeholder='words, or a phrase "in quotation marks"',
        max_chars=MAXIMUM_TEXT,
        **address.bound_widget(PAGE, "text", position.text or ""),
    )
    address.write(PAGE, position.to_query())


def results(snapshot: StoreSnapshot, position: SearchAddress) -> str:
    """Draw the matches; return a sentence about their number."""
    result = store_access.find_content(snapshot, ContentFilter(position.text or "", limit=HITS))
    notes = snapshot.store.find_notes(position.text or "")
    names = {one.session_id for hit in result.hits for one in hit.occurrences} | {one.session_id for one in notes}
    rows = sessions_by_id(snapshot.store, names, recent=())
    titles = {name: session_title(row) for name, row in rows.items()}
    with widgets.part():
        found_notes(notes, titles)
    if result.hits:
        found_sessions(result, rows, query=position.text or "")
    else:
        no_hits(result)
    return matches_text(result, notes)


def matches_text(result: ContentHits, notes: Sequence[Note]) -> str:
    """Return a sentence about the content and notes that match; empty where nothing was captured."""
    noted = count(len(notes), "note")
    if result.texts == 0 and not notes:
        return ""
    if not result.hits:
        return f"{noted}, but no captured content matches." if notes else "No captured content matches."
    sessions = {one.session_id for hit in result.hits for one in hit.occurrences}
    least, first = ("", "") if result.is_whole else ("at least ", "the first ")
    passages = f"{least}{count(len(sessions), 'session')} ({first}{count(len(result.hits), 'passage')})"
    return f"Found in {passages}{f', and in {noted}' if notes else ''}."


main()
