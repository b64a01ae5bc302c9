"""Sessions that an import lists before it reads them: the fleet page shows them, one that is opened is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from tests.sources.imports.made_sessions import write_sessions

from windowpane.config.paths import READ_ONLY_VARIABLE
from windowpane.sources.imports.noted_outlines import OutlineFile, SessionOutline
from windowpane.sources.imports.outline import outlines_of
from windowpane.sources.imports.progress import ProgressFile
from windowpane.store.embedded import SqliteStore
from windowpane_dashboard.page.session_import import OPENED

OpenPage = Callable[..., AppTest]
LISTED = "sessions of this machine not read yet"
READ = "Read its recording"


@pytest.fixture
def unread(tmp_path: Path, empty_store: SqliteStore) -> Iterator[list[SessionOutline]]:
    """The outlines of three files that a running import has not read yet, and of two that changed since."""
    base = tmp_path / "windowpane.db"
    with ProgressFile(base) as progress, OutlineFile(base) as note:
        progress.show(0, 5)
        files = sorted(write_sessions(tmp_path / "sessions", 3).glob("0*"))
        outlines = [outlines_of(path, first_message_titles=True) for path in files]
        for path, several in zip(files, outlines, strict=True):
            note.add(path, several)
        (tmp_path / "broken.jsonl").write_bytes(b"\0\1")
        for name in ("gone", "broken"):
            file = tmp_path / f"{name}.jsonl"
            note.add(file, [SessionOutline(session_id=name, file=str(file), agent="claude-code")])
        note.finish()
        yield [one for several in outlines for one in several]


def read_by_button(open_page: OpenPage, session_id: str) -> AppTest:
    """Open a session that is not stored, and press the button that reads its recording."""
    page = open_page("session", session=session_id)
    return next(button for button in page.button if button.label == READ).click().run()


def test_the_fleet_page_lists_what_is_not_read_yet(
    unread: list[SessionOutline],
    small_store: SqliteStore,
    open_page: OpenPage,
    page_text: Callable[[AppTest], str],
) -> None:
    page = open_page("fleet")
    table = page.dataframe[1].value

    assert f"5 {LISTED}" in page_text(page)
    assert list(table["session"]) == [*(one.title for one in reversed(unread)), "gone", "broken"]
    assert list(table["last call"])[:1] == ["218k"]
    assert list(table["compactions"]) == [*(str(one.compactions or "") for one in reversed(unread)), "–", "–"]
    assert list(table["cost"]) == ["≥ $0.04", "–", "–", "–", "–"]
    assert "1 session of this machine not read yet" in page_text(open_page("fleet", text="0000002-"))


def test_sessions_are_listed_and_opened_before_any_is_stored(
    unread: list[SessionOutline], open_page: OpenPage, page_text: Callable[[AppTest], str]
) -> None:
    assert f"5 {LISTED}" in page_text(open_page("fleet"))
    assert unread[0].title in page_text(read_by_button(open_page, unread[0].session_id))
    assert f"4 {LISTED}" in page_text(open_page("fleet"))


def test_an_address_alone_imports_nothing(
    unread: list[SessionOutline],
    open_page: OpenPage,
    small_store: SqliteStore,
    page_text: Callable[[AppTest], str],
) -> None:
    page = open_page("session", session=unread[0].session_id)

    assert "not in the store" in page_text(page)
    assert small_store.session(unread[0].session_id) is None
    assert [button.label for button in page.button].count(READ) == 1


def test_a_session_that_is_selected_on_the_fleet_page_is_read_without_a_second_question(
    unread: list[SessionOutline], open_page: OpenPage, page_text: Callable[[AppTest], str]
) -> None:
    page = open_page("session")
    page.session_state[OPENED] = unread[1].session_id
    page.query_params["session"] = unread[1].session_id

    assert unread[1].title in page_text(page.run())


def test_a_session_that_is_read_by_button_is_read_at_once(
    unread: list[SessionOutline],
    open_page: OpenPage,
    small_store: SqliteStore,
    page_text: Callable[[AppTest], str],
) -> None:
    page = read_by_button(open_page, unread[0].session_id)
    row = small_store.session(unread[0].session_id)

    assert not page.exception
    assert row is not None
    assert (row.turns, row.title) == (unread[0].calls, unread[0].title)
    assert "not in the store" not in page_text(page)
    assert f"4 {LISTED}" in page_text(open_page("fleet"))


def test_a_file_that_cannot_be_read_is_reported(
    unread: list[SessionOutline], open_page: OpenPage, page_text: Callable[[AppTest], str]
) -> None:
    texts = {name: page_text(read_by_button(open_page, name)) for name in ("gone", "broken", "unknown")}

    assert all("This session is not in the store." in text for text in texts.values())
    assert "gone.jsonl: cannot be read" in texts["gone"]
    assert "broken.jsonl: binary data" in texts["broken"]
    assert "This machine has no recording with this id." in texts["unknown"]


def test_a_dashboard_that_only_reads_lists_none(
    unread: list[SessionOutline],
    open_page: OpenPage,
    page_text: Callable[[AppTest], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(READ_ONLY_VARIABLE, "1")

    assert LISTED not in page_text(open_page("fleet"))
    assert READ not in [button.label for button in open_page("session", session=unread[0].session_id).button]
