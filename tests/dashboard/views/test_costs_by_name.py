"""Costs by name on Trends, and quotas and costs of the day on Fleet."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from windowpane.core.events import Event, QuotaMeasured, QuotaWindow, SessionDescribed, Usage
from windowpane.core.times import midnight
from windowpane.core.tracking.tracker import SessionInfo, SessionTracker
from windowpane.store.embedded import SqliteStore

OpenPage = Callable[..., AppTest]
PageText = Callable[[AppTest], str]


def fill(store: SqliteStore) -> None:
    """Store a live session that started before midnight, with a server of two tools of which it calls one."""
    now = time.time()
    events: list[Event] = []
    tracker = SessionTracker(SessionInfo("s", "codex", "m", "test", "s"), emit=events.extend, digest=str)
    tracker.record(SessionDescribed(folder="/home/ann/shop"), midnight(now) - 3_600)
    tracker.record(QuotaMeasured((QuotaWindow(300, 0.56, now + 3_600),)), now - 60)
    for tool in ("query", "create"):
        tracker.add("tool_definition", "schema", 100, tool_name=f"mcp__db__{tool}", at=now)
    tracker.add("tool_call", "{}", 10, tool_call_id="c", tool_name="mcp__db__query", at=now)
    tracker.end_turn(Usage(1_000, 5), cost_dollars=1.5, at=now)
    tracker.flush()
    store.append(events)


def test_servers_are_listed_with_their_repositories_and_what_is_never_called(
    empty_store: SqliteStore, open_page: OpenPage, page_text: PageText
) -> None:
    fill(empty_store)

    app = open_page("trends", top="mcp_server", repository="shop")
    tools = open_page("trends", top="mcp__db", repository="shop")

    assert not app.exception
    assert "db costs most: $0.32 for 1 tool call." in page_text(app)
    (row,) = app.dataframe[-1].value.to_dict("records")
    assert (row["MCP server"], row["tokens of its definition"], row["never called"]) == (
        "db",
        200,
        "1 of 2 tools",
    )
    assert "Sent and never called: mcp__db__create" in page_text(tools)
    assert "tool of db" in tools.selectbox(key="trends_top_0").options


def test_the_fleet_shows_the_quota_and_the_budget_of_the_day(
    empty_store: SqliteStore,
    open_page: OpenPage,
    page_text: PageText,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fill(empty_store)
    config = tmp_path / "budgets.yml"
    config.write_text("cost_budgets: [{dollars: 3, agent: codex}]\n")
    monkeypatch.setenv("WINDOWPANE_CONFIG", str(config))

    text = page_text(open_page("fleet")).replace("\\", "")

    assert "codex used 56% of its limit for 5 h" in text
    assert "codex $1.50 of $3.00 today (50%)" in text
    assert "$1.50 today" in text
