"""A damaged event in a session: every page shows all others, and reports the damaged one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest
from streamlit.testing.v1 import AppTest

from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import EventFilter
from windowpane.store.records import StoredEvent

OpenPage = Callable[..., AppTest]
PROBLEM = "This event cannot be read: not a JSON object"


def damaged(store: SqliteStore, *types: str, body: bytes = b"\xff\x00") -> StoredEvent:
    """Overwrite all events of these types; returns what the first of them was."""
    result = store.events(EventFilter(session_id="refactor-api", types=types))
    with closing(sqlite3.connect(store.path)) as connection:
        connection.executemany("UPDATE events SET body = ? WHERE seq = ?", [(body, one.seq) for one in result])
        connection.commit()
    return result[0]


def of_turn(store: SqliteStore, turn: int) -> int:
    return store.count_events(EventFilter(session_id="refactor-api", turn_from=turn, turn_to=turn))


@pytest.mark.parametrize(
    "body", [b"\xff\x00", b'{"type": "\xff"}', b'{"schema": 1,'], ids=["bytes", "text", "cut"]
)
def test_the_audit_page_shows_intact_events(small_store: SqliteStore, open_page: OpenPage, body: bytes) -> None:
    was = damaged(small_store, "blocks.evicted", body=body)
    turn = was.event.context.turn

    app = open_page("audit", session="refactor-api", turn_from=str(turn), turn_to=str(turn))

    assert not app.exception
    assert not app.error
    rows = app.dataframe[0].value.set_index("seq")
    assert len(rows) == of_turn(small_store, turn)
    assert rows.loc[was.seq, "what"].startswith(PROBLEM)
    assert rows.loc[was.seq, "turn"] == turn
    assert rows.loc[was.seq, "event"].endswith("blocks.evicted")
    assert rows["what"].str.startswith(PROBLEM).sum() == 1
    assert f"seq {was.seq}." in app.warning[0].value


def test_damaged_rows_do_not_stop_paging(small_store: SqliteStore, open_page: OpenPage) -> None:
    with closing(sqlite3.connect(small_store.path)) as connection:
        connection.execute("UPDATE events SET body = x'00' WHERE seq BETWEEN 90 AND 100")
        connection.commit()
    app = open_page("audit")
    first = list(app.dataframe[0].value["seq"])

    next(button for button in app.button if button.label == "Later").click().run()

    assert not app.exception
    assert len(first) == 100
    assert app.dataframe[0].value["seq"].iloc[0] == first[-1] + 1


def test_the_search_skips_damaged_events(small_store: SqliteStore, open_page: OpenPage) -> None:
    damaged(small_store, "block.added")

    app = open_page("audit", session="refactor-api", text="hybrid")

    assert not app.exception
    assert len(app.dataframe[0].value) == 1


def test_the_session_page_shows_intact_events(
    small_store: SqliteStore, open_page: OpenPage, page_text: Callable[..., str]
) -> None:
    was = damaged(small_store, "blocks.evicted")
    damaged(small_store, "fidelity.evaluated", "content.regretted", "block.added", "session.started")
    turn = was.event.context.turn

    pages = {
        tab: open_page("session", session="refactor-api", turn=str(turn), tab=tab)
        for tab in ("compressions", "events")
    }

    for app in pages.values():
        assert not app.exception
        assert not app.error
        assert f"Turn {turn}: " in page_text(app)
    assert "Its facts were not looked up" in page_text(pages["compressions"])
    app = pages["events"]
    happened = next(table.value["what"] for table in app.dataframe if set(table.value) >= {"at", "what"})
    assert happened.str.startswith(PROBLEM).any()
    assert len(happened) == of_turn(small_store, turn)


def test_a_damaged_compression_does_not_break_the_page(
    small_store: SqliteStore, open_page: OpenPage, page_text: Callable[..., str]
) -> None:
    damaged(small_store, "content.compressed")

    app = open_page("session", session="refactor-api", turn="15", tab="compressions")

    assert not app.exception
    assert not app.error
    assert "Turn 15" in page_text(app)


@pytest.mark.parametrize("page", ["fleet", "alerts", "compare"])
def test_the_other_pages_open(page: str, small_store: SqliteStore, open_page: OpenPage) -> None:
    damaged(small_store, "alert.fired", "alert.resolved", "session.started", "turn.ended", "blocks.evicted")

    app = open_page(page)

    assert not app.exception
    assert not app.error
