"""The level at which an agent compacts by itself: its evidence, and what refutes it."""

from __future__ import annotations

import pytest

from windowpane.core.agents import AgentProgram, EarlierSessions
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking.compaction_level import CompactionLevels

LIMITS = WindowLimits.of(200_000, "assumed")


@pytest.mark.parametrize(
    ("agent", "version", "limits", "tokens"),
    [
        ("claude-code", "2.0.76", LIMITS, 155_000),
        ("claude-code", "2.1.20", LIMITS, 155_000),
        ("claude-code", "2.1.21", LIMITS, 167_000),
        ("claude-code", "2.1.219", LIMITS, 167_000),
        ("claude-code", "", LIMITS, 167_000),
        ("claude-code-agent", "2.1.39", LIMITS, 167_000),
        ("claude-code", "2.1.219", WindowLimits.of(1_000_000, "catalogue"), 1_000_000),
        ("codex", "", WindowLimits.of(258_400, "provider"), 244_800),
        ("codex", "", WindowLimits.of(272_000, "catalogue"), 244_800),
    ],
)
def test_known_agents_have_a_documented_level(
    agent: str, version: str, limits: WindowLimits, tokens: int
) -> None:
    level = CompactionLevels(AgentProgram(agent, version)).level(limits)

    assert level == (tokens, "documented")


def test_an_unknown_agent_and_an_unknown_window_have_no_level() -> None:
    assert CompactionLevels(AgentProgram("reviewer")).level(LIMITS) is None
    assert CompactionLevels(AgentProgram("claude-code")).level(None) is None
    assert CompactionLevels(AgentProgram("claude-code")).level(WindowLimits.of(32_000, "given")) is None


def test_a_statement_counts_before_records_and_records_before_documentation() -> None:
    program = AgentProgram("claude-code", "2.1.39", earlier=EarlierSessions(120_000))
    levels = CompactionLevels(program)
    stated = CompactionLevels(AgentProgram("claude-code", compaction_tokens=90_000, earlier=EarlierSessions(1)))

    assert levels.level(LIMITS) == (120_000, "earlier")
    levels.record_compaction(100_000)
    assert levels.level(LIMITS) == (100_000, "recorded")
    assert stated.level(LIMITS) == (90_000, "stated")


@pytest.mark.parametrize("used", [155_031, 167_038, 174_247])
def test_a_compaction_near_the_documented_level_confirms_it(used: int) -> None:
    """A window is compacted at the end of the turn that passes the level, so its size is somewhat above it."""
    levels = CompactionLevels(AgentProgram("claude-code", "2.1.39"))
    levels.record_compaction(used)

    assert levels.level(LIMITS) == (167_000, "recorded")


def test_two_calls_above_a_level_refute_it_until_another_compaction() -> None:
    """One call may pass it, since the agent compacts after it; the next one shows that it does not."""
    levels = CompactionLevels(AgentProgram("claude-code", "2.1.39"))
    levels.record_call(168_000, levels.level(LIMITS))
    assert levels.level(LIMITS) == (167_000, "documented")
    levels.record_call(160_000, levels.level(LIMITS))
    levels.record_call(168_000, levels.level(LIMITS))
    assert levels.level(LIMITS) == (167_000, "documented")

    levels.record_call(169_000, levels.level(LIMITS))
    assert levels.level(LIMITS) is None
    assert levels.level(WindowLimits.of(1_000_000, "observed_floor")) == (967_000, "documented")

    levels.record_compaction(168_500)
    assert levels.level(LIMITS) == (167_000, "recorded")


def test_one_call_far_above_the_level_of_another_session_refutes_it() -> None:
    """A session that starts above it runs in another window or with other settings."""
    levels = CompactionLevels(AgentProgram("claude-code", "2.1.39", earlier=EarlierSessions(27_884)))
    levels.record_call(28_500, levels.level(LIMITS))
    assert levels.level(LIMITS) == (27_884, "earlier")

    levels.record_call(53_000, levels.level(LIMITS))
    assert levels.level(LIMITS) == (167_000, "documented")
