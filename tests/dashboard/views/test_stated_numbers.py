"""The numbers that a page writes about one session or period, where two of its parts state the same thing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from windowpane.core.events import (
    AlertFired,
    ContentCompressed,
    Event,
    RuleOutcome,
    RulesFollowed,
    SessionDescribed,
    Usage,
)
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.store.embedded import SqliteStore

OpenPage = Callable[..., AppTest]
PageText = Callable[[AppTest], str]
MIDNIGHT = 1_700_006_400.0


def tracked(events: list[Event], session_id: str = "s", agent_version: str = "") -> SessionTracker:
    tracker = SessionTracker(
        SessionInfo(session_id, "agent", "gpt-4o", "live", f"stream {session_id}"),
        emit=events.extend,
        digest=str,
        limits=WindowLimits.of(128_000, "given"),
    )
    if agent_version:
        tracker.record(SessionDescribed(agent_version=agent_version), MIDNIGHT - 601.0)
    return tracker


def read_file(tracker: SessionTracker, number: int, call: str, at: float, *, tokens: int = 100) -> str:
    text = f"contents of file_{number}.py\nvalue = {number}"
    tracker.add("tool_call", f"read(file_{number}.py)", 9, tool_call_id=call, tool_name="read", at=at)
    return tracker.add("tool_result", text, tokens, tool_call_id=call, tool_name="read", at=at).id


def test_a_lost_rule_is_named_in_the_headline_the_losses_and_the_alert(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_page: OpenPage, page_text: PageText
) -> None:
    monkeypatch.setenv("WINDOWPANE_STORE", str(tmp_path / "windowpane.db"))
    events = worked("s", "", days=1, compactions=1)
    compressed = next(event for event in events if isinstance(event.data, ContentCompressed))
    lost = RuleOutcome("lost", "user", "d1", text="Never push without asking.")
    others = [RuleOutcome("lost", "system", "d2"), RuleOutcome("kept", "user", "d3")]
    rules = RulesFollowed(
        compressed.event_id, 1, user={"kept": 1, "lost": 1}, system={"lost": 1}, outcomes=(lost, *others)
    )
    fired = AlertFired("rule_lost", "warning", 1, 1.0, None, "Lost rules: 1")
    last = events[-1]
    events += [last._replace(n=last.n + 1, data=rules), last._replace(n=last.n + 2, data=fired)]
    store = SqliteStore(tmp_path / "windowpane.db", capture=True, redact=lambda text: text)
    store.append(events)
    store.close()
    losses = page_text(open_page("session", session="s", tab="compressions"))

    assert "[1 rule lost](" in losses
    assert "Of 3 rules, 1 kept word for word, 2 lost." in losses
    assert "Lost, user: Never push without asking" in losses
    linked = page_text(open_page("session", session="s", alert="rule_lost:1")).replace("\\", "")
    assert "Lost rules: 1; lost, user: Never push without asking." in linked
    assert "lost, user: Never push without asking.\n" in page_text(open_page("alerts"))


def test_a_turn_of_two_regrets_is_offered_once(empty_store: SqliteStore, open_page: OpenPage) -> None:
    events: list[Event] = []
    tracker = tracked(events)
    blocks = [read_file(tracker, number, f"c{number}", 1.0, tokens=5_000) for number in (1, 2)]
    tracker.end_turn(Usage(10_000), cost_dollars=0.1, at=1.0)
    summary = tracker.make_replacement("summary", None, 5, replaces=blocks[0])
    compaction = ContentCompressed(
        "compaction", "auto", "accepted", 10_000, 5, "content", tuple(blocks), (summary.id,), method="agent"
    )
    tracker.compress(compaction, (summary,), at=2.0)
    tracker.end_turn(Usage(100), cost_dollars=0.1, at=2.0)
    for number in (1, 2):
        read_file(tracker, number, f"again{number}", 3.0, tokens=5_000)
    tracker.end_turn(Usage(10_000), cost_dollars=0.1, at=3.0)
    tracker.flush()
    empty_store.append(events)

    page = open_page("session", session="s", tab="cost")

    of_regrets = [one for one in page.button if "removed at turn 1, again at turn 3" in str(one.help)]
    assert [button.label for button in of_regrets] == ["turn 3"]


def test_a_turn_that_has_not_ended_is_named_as_such(
    empty_store: SqliteStore, builders: Any, open_page: OpenPage, page_text: PageText
) -> None:
    """No count contains it, so the heading and the headline name it."""
    events: list[Event] = []
    tracker = tracked(events)
    for turn in range(1, 4):
        tracker.add("user_message", f"go on {turn}", 500, at=float(turn))
        tracker.end_turn(Usage(600 * turn), at=float(turn))
    tracker.add("user_message", "not answered", 500, at=4.0)
    tracker.measure("before", 4.0)
    tracker.flush()
    empty_store.append(events)
    text = page_text(open_page("session", session="s"))

    assert "Turn 4, not ended: " in text
    assert "in 3 turns; turn 4 has not ended" in text
    assert "3 turns, and turn 4 has not ended" in text  # the line of the session
    assert "Turn 3: " in page_text(open_page("session", session="s", turn="3"))


def trends_table(page: AppTest) -> pd.DataFrame:
    """Open the table of the trends."""
    page.session_state["trends_data_open"] = True
    (table,) = [one.value for one in page.run().dataframe if {"sessions", "line"} <= set(one.value)]
    return table


def worked(session_id: str, version: str, *, days: int, compactions: int = 0) -> list[Event]:
    """A session with one call per day, from ten minutes before midnight on."""
    events: list[Event] = []
    tracker = tracked(events, session_id, agent_version=version)
    for day in range(days):
        at = MIDNIGHT - 600.0 + 86_400.0 * day
        block = tracker.add("user_message", None, 500, at=at)
        tracker.end_turn(Usage(1_000), cost_dollars=0.1, at=at)
        if day < compactions:
            summary = tracker.make_replacement("summary", None, 5, replaces=block.id)
            tracker.compress(
                ContentCompressed(
                    "compaction",
                    "auto",
                    "accepted",
                    500,
                    5,
                    "content",
                    (block.id,),
                    (summary.id,),
                    method="agent",
                ),
                (summary,),
                at=at,
            )
    tracker.flush()
    return events


@pytest.mark.parametrize("is_pruned", [False, True])
def test_trends_count_a_session_once_per_period(
    empty_store: SqliteStore, open_page: OpenPage, *, is_pruned: bool
) -> None:
    for number in range(10):
        empty_store.append(worked(f"old{number}", "2.1.4", days=1, compactions=1))
    for number in range(10):
        later = [
            event._replace(at=None if event.at is None else event.at + 14 * 86_400.0)
            for event in worked(f"new{number}", "2.1.5", days=2, compactions=2)
        ]
        empty_store.append(later)
    if is_pruned:
        assert empty_store.prune(before=MIDNIGHT + 60 * 86_400.0) == 20
        empty_store.append([event._replace(at=1e9) for event in worked("other", "1", days=1)])
    page = open_page("trends", by="release", days="90")
    frame = trends_table(page).set_index("line")

    assert frame.loc["agent 2.1.5", "sessions"].sum() == 10
    assert frame.loc["agent 2.1.5", "compactions"].sum() == 20


def test_all_parts_of_the_trends_count_the_sessions_of_the_same_days(
    empty_store: SqliteStore, open_page: OpenPage, page_text: PageText
) -> None:
    """One page named 87 sessions where another part of it named 92."""
    empty_store.append(worked("old", "1", days=1))
    later = [
        event._replace(at=None if event.at is None else event.at + 7 * 86_400.0)
        for event in worked("new", "1", days=1)
    ]
    empty_store.append(later)

    text = page_text(open_page("trends"))

    assert "for 1 model call\\. " in text


def test_a_release_is_compared_wherever_the_lines_are_of_agents(
    empty_store: SqliteStore, open_page: OpenPage
) -> None:
    for number in range(10):
        empty_store.append(worked(f"old{number}", "2.1.4", days=1, compactions=1))
        empty_store.append(worked(f"new{number}", "2.1.5", days=1))

    page = open_page("trends", one="agent 2.1.4")

    (first, second) = [one for one in page.selectbox if one.label in ("one", "other")]
    assert (first.value, second.value) == ("agent 2.1.4", "agent 2.1.5")
    (compared,) = [one.value for one in page.dataframe if "per session" in one.value]
    assert compared.set_index("per session").loc["compactions"].tolist() == [
        "worse",
        "1 (1 to 1)",
        "0 (0 to 0)",
    ]


def test_a_session_of_two_models_counts_once_for_its_agent(empty_store: SqliteStore, open_page: OpenPage) -> None:
    first = worked("s", "1", days=1)
    second = [
        event._replace(
            n=event.n + 100, context=replace(event.context, model="gpt-5", turn=event.context.turn + 1)
        )
        for event in first
        if event.type == "turn.ended"
    ]
    empty_store.append([*first, *second])

    for by, sessions in (("agent", [1]), ("model", [1, 1])):
        assert trends_table(open_page("trends", by=by))["sessions"].tolist() == sessions
