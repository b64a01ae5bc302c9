"""Content by name: MCP servers, tools with their definitions, skills and memory files."""

from __future__ import annotations

import pytest

from windowpane.core.events import Event, SessionDescribed, Usage
from windowpane.core.tracking.tracker import SessionInfo, SessionTracker
from windowpane.report.composition import costs_by_name, servers_of

AT = 1_770_000_000.0
QUERY, CREATE = "mcp__db__query", "mcp__db__create"


def recorded(session: str, folder: str, *, calls: int) -> list[Event]:
    """Return a session of two calls of one dollar, with a server of two tools, a skill and memory files."""
    events: list[Event] = []
    tracker = SessionTracker(SessionInfo(session, "a", "m", "test", session), emit=events.extend, digest=str)
    tracker.record(SessionDescribed(folder=folder), AT)
    for tool, size in ((QUERY, 100), (CREATE, 60)):
        tracker.add("tool_definition", f"schema of {tool}", size, tool_name=tool, at=AT)
    tracker.add("memory_injection", "Contents of /w/CLAUDE.md (project instructions):\n\nBe brief.", 30, at=AT)
    tracker.add("memory_injection", "rules", 20, memory_file="/w/rules/go.md", at=AT)
    tracker.add("memory_injection", "Base directory for this skill: /w/skills/tidy\n\n# Tidy", 40, at=AT)
    for number in range(calls):
        tracker.add("tool_call", "{}", 10, tool_call_id=f"c{number}", tool_name=QUERY, at=AT)
        tracker.add("tool_result", "rows", 50, tool_call_id=f"c{number}", at=AT)
    for _ in range(2):
        tracker.end_turn(Usage(1_000, 5), cost_dollars=1.0, at=AT)
        tracker.add("user_message", "next", 1, at=AT)
    tracker.flush()
    return events


def test_costs_are_summed_by_server_tool_skill_and_memory_file(store) -> None:
    store.append(recorded("s1", "/home/ann/shop", calls=3))
    store.append(recorded("s2", "C:\\code\\bank", calls=0))

    composition = store.composition()
    content = composition.content

    assert (composition.sessions, composition.in_range) == (2, 2)
    assert composition.repositories == ("bank", "shop")
    assert servers_of(content) == ["db"]
    (server,) = costs_by_name(content, "mcp_server")
    assert (server.name, server.calls, server.definition_tokens) == ("db", 3, 160)
    assert (server.offered, server.unused, server.sessions) == (2, 1, 2)
    assert list(server.repositories) == ["shop", "bank"]
    tools = {tool.name: tool for tool in costs_by_name(content, "tool")}
    assert (tools[CREATE].calls, tools[CREATE].definition_tokens, tools[CREATE].unused) == (0, 60, 1)
    assert tools[CREATE].dollars_per_call is None
    assert sum(tool.carried_tokens for tool in tools.values()) == server.carried_tokens
    assert sum(tool.dollars or 0 for tool in tools.values()) == pytest.approx(server.dollars)
    assert tools[QUERY].dollars_per_call == pytest.approx((tools[QUERY].dollars or 0) / 3)
    assert [(one.name, one.carried_tokens) for one in costs_by_name(content, "skill")] == [("tidy", 2 * 2 * 40)]
    assert [one.name for one in costs_by_name(content, "memory_file")] == ["/w/CLAUDE.md", "/w/rules/go.md"]


def test_a_repository_and_a_server_narrow_the_costs(store) -> None:
    store.append(recorded("s1", "/home/ann/shop", calls=3))
    store.append(recorded("s2", "/home/ann/bank", calls=1))

    bank = store.composition(repository="bank")

    assert (bank.sessions, bank.repositories) == (1, ("bank", "shop"))
    assert costs_by_name(bank.content, "mcp_server")[0].calls == 1
    assert costs_by_name(bank.content, "tool", server="another") == []
    assert costs_by_name(store.composition("s1").content, "mcp_server")[0].calls == 3
    assert store.composition(since=AT + 1).content == ()


def test_the_sessions_of_a_repository_have_their_own_trends_and_tools(store) -> None:
    store.append(recorded("s1", "/home/ann/shop", calls=3))
    store.append(recorded("s2", "/home/ann/bank", calls=1))
    until = int(AT // 86_400)

    bank = store.composition(repository="bank").keys
    (row,) = store.trends_of(bank, days=7, until=until)

    assert (row.sessions, row.calls, row.cost_dollars) == (1, 2, 2.0)
    assert store.trends_of((), days=7, until=until) == []
    assert store.trends_of(store.composition().keys, days=7, until=until) == store.trends(days=7)
    assert [use.blocks for use in store.tool_leaderboard(sessions=bank)] == [2]


def test_definitions_are_not_among_what_tools_returned(store) -> None:
    store.append(recorded("s1", "", calls=1))

    assert [(use.tool, use.tokens) for use in store.tool_use("s1")] == [(QUERY, 60)]
    assert [use.tool for use in store.tool_leaderboard()] == [QUERY]
