"""Reading blocks, finding text, and notes of readers, without a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from windowpane.config.paths import READ_ONLY_VARIABLE
from windowpane.report.session_report import gather
from windowpane.report.text import to_text
from windowpane.store.embedded import SqliteStore
from windowpane.store.search.content import ContentFilter

OpenPage = Callable[..., AppTest]
SESSION = "refactor-api"


@pytest.fixture
def captured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, builders) -> Iterator[SqliteStore]:
    """The rich session with its texts, and the dashboard pointed at it."""
    path = tmp_path / "windowpane.db"
    monkeypatch.setenv("WINDOWPANE_STORE", str(path))
    store = SqliteStore(path, capture=True, redact=lambda text: text)
    store.append(builders.rich(start=1_790_000_000.0))
    while store.index_text():
        pass
    yield store
    store.close()


def removed_block(store: SqliteStore, *, regretted: bool = False) -> str:
    rows = store.removed_blocks(SESSION, 99, regretted=regretted)
    return next(row.block_id for row in rows if row.removed_by == "eviction")


def test_a_block_is_read_beside_the_page(captured: SqliteStore, open_page: OpenPage, page_text) -> None:
    block = removed_block(captured, regretted=True)

    app = open_page("session", session=SESSION, block=block)

    assert not app.exception
    assert any("contents of file_16.py" in code.value for code in app.code)
    text = page_text(app)
    assert "the result of a tool call of read" in text
    assert "older than 8 turns" in text
    assert "Score 0" in text
    assert "Replaced by a placeholder" in text
    assert "Needed again" in text


def test_without_a_captured_text_the_panel_explains_capture(
    small_store: SqliteStore, open_page: OpenPage, page_text
) -> None:
    app = open_page("session", session=SESSION, block=removed_block(small_store))

    assert "Not captured" in page_text(app)
    assert "windowpane import --capture" in page_text(app)
    assert "older than 8 turns" in page_text(app)


def test_an_unknown_block_is_no_error(small_store: SqliteStore, open_page: OpenPage, page_text) -> None:
    app = open_page("session", session=SESSION, block="<b>nothing</b>")

    assert not app.exception
    assert "not recorded" in page_text(app)


def links(app: Any) -> list[str]:
    return [link.proto.label for link in app.get("page_link") if "background" in link.proto.label]


def test_a_word_is_found_on_the_search_page(captured: SqliteStore, open_page: OpenPage, page_text) -> None:
    app = open_page("search", text="axio")
    assert ":orange-background[**axio**]s" in links(app)[0]


def test_text_is_found_within_the_session(captured: SqliteStore, open_page: OpenPage) -> None:
    app = open_page("session", session=SESSION, text="file_3.py")

    assert not app.exception
    assert ":orange-background[**file\\_3\\.py**]" in links(app)[0]


def test_each_match_has_its_state_at_the_turn(captured: SqliteStore, open_page: OpenPage, page_text) -> None:
    app = open_page("session", session=SESSION, text="contents of file_", turn="20")

    states = [link.partition("**  ")[0].rpartition(" · ")[2] for link in links(app)]
    assert {state.partition(" turn ")[0] for state in states} == {"in the window", "removed at", "added later"}
    assert states.index("in the window") == 0
    assert f"In the window of turn 20: {states.count('in the window')} of {len(states)} matching" in page_text(
        app
    )


def test_a_note_is_added_shown_and_deleted(captured: SqliteStore, open_page: OpenPage, page_text) -> None:
    app = open_page("session", session=SESSION, turn="5", tab="notes")
    app.text_area[0].set_value("the schema was lost here")
    next(button for button in app.button if button.label == "Add note").click()
    app.run()

    assert not app.exception
    (note,) = captured.notes(SESSION)
    assert (note.turn, note.text) == (5, "the schema was lost here")
    assert "the schema was lost here" in page_text(app)
    row = captured.session(SESSION)
    assert row is not None
    assert "the schema was lost here" in to_text(gather(captured, row))
    assert captured.verify().intact

    next(button for button in app.button if button.label == "Delete").click()
    app.run()
    assert captured.notes(SESSION) == []
    assert "the schema was lost here" not in page_text(app)


def test_a_title_is_given(captured: SqliteStore, open_page: OpenPage) -> None:
    app = open_page("session", session=SESSION, tab="notes")
    next(field for field in app.text_input if field.label == "Title").set_value("The one with axios")
    next(button for button in app.button if button.label == "Give this title").click()
    app.run()

    row = captured.session(SESSION)
    assert row is not None
    assert row.title == "The one with axios"


def test_read_only_shows_no_form(
    captured: SqliteStore, open_page: OpenPage, page_text, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured.add_note(SESSION, 5, "a note from elsewhere")
    monkeypatch.setenv(READ_ONLY_VARIABLE, "1")

    app = open_page("session", session=SESSION, tab="notes")

    assert "a note from elsewhere" in page_text(app)
    assert not app.text_area
    assert not {"Add note", "Delete"} & {button.label for button in app.button}


def test_the_search_page_indexes_what_waits(
    captured: SqliteStore, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured.rebuild_projections()
    monkeypatch.setenv(READ_ONLY_VARIABLE, "1")
    open_page("search", text="axios")
    assert captured.find_content(ContentFilter("axios")).waiting

    monkeypatch.delenv(READ_ONLY_VARIABLE)
    open_page("search", text="axios")
    assert not captured.find_content(ContentFilter("axios")).waiting


def test_notes_are_found_on_the_search_page(captured: SqliteStore, open_page: OpenPage, page_text) -> None:
    note = captured.add_note(SESSION, 5, "the schema was lost here")
    assert "the schema was lost here" in page_text(open_page("search", text="schem"))

    captured.delete_note(SESSION, note)
    assert "the schema was lost here" not in page_text(open_page("search", text="schem"))
