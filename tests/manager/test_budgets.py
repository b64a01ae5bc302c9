"""Budgets by component: profiles, asking before adding, reservations, forecasts, and the model's own report."""

from __future__ import annotations

from typing import Any

import pytest

from windowpane.agents.managers import ContextWindowManager
from windowpane.config.loading import load_config
from windowpane.core.events import (
    BlocksEvicted,
    BudgetBlocked,
    BudgetWarned,
    LimitChanged,
    PressureMeasured,
    TurnEnded,
    UsageRejected,
)
from windowpane.core.limits import PROFILES
from windowpane.exceptions import ConfigurationError
from windowpane.manager import hooks
from windowpane.manager.plans.policies import Policy
from windowpane.manager.status import urgency_of
from windowpane.testing import RecordingSink, chat_reply, in_memory_dependencies


def manager(sink: RecordingSink, *, limit: int | None = 100_000, **options: Any) -> ContextWindowManager:
    return ContextWindowManager(
        agent="a", model="no-such-model", limit_tokens=limit, dependencies=in_memory_dependencies(sink), **options
    )


def filler(tokens: int, tag: str = "w") -> str:
    return " ".join(f"{tag}{n}" for n in range(tokens))[: tokens * 4]


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_a_profile_is_chosen_by_name(name: str) -> None:
    with manager(RecordingSink(), budget=name) as window:
        components = window.status().components

    for component, share in PROFILES[name].items():
        assert components[component].budget_tokens == int(share * 100_000)
    assert sum(PROFILES[name].values()) + 0.05 <= 1 + 1e-9


def test_a_profile_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="code_review"):
        manager(RecordingSink(), budget="gardening")


def test_a_profile_of_the_file_can_be_changed_in_part() -> None:
    config = load_config(
        environ={}, arguments={"budget": {"profile": "research", "allocations": {"message_history": 0.50}}}
    )
    budget = config.tracker_settings().budget

    assert budget["memory_injection"] == 0.15
    assert budget["message_history"] == 0.50


def test_can_add_changes_nothing_and_returns_the_remaining_tokens() -> None:
    sink = RecordingSink()
    with manager(sink) as window:
        ruling = window.budget.can_add("tool_results", 1_000)
        again = window.budget.can_add("tool_results", 1_000)

        assert ruling == again
        assert (ruling.outcome, ruling.budget_tokens, ruling.remaining_tokens) == ("allowed", 12_000, 12_000)
    assert sink.of(BudgetWarned) == []


def test_above_a_component_s_budget_it_warns_unless_components_are_enforced() -> None:
    """Tracked by component, enforced by the window as a whole, unless configured otherwise."""
    sink = RecordingSink()
    with manager(sink) as window:
        assert window.budget.can_add("tool_results", 13_000).outcome == "warned"
    with manager(sink, enforce="component") as window:
        ruling = window.budget.can_add("tool_results", 13_000)
        assert ruling.outcome == "blocked"
        assert "summarise" in ruling.action
    assert len(sink.of(BudgetWarned)) == 2
    assert [event.component for event in sink.of(BudgetBlocked)] == ["tool_results"]


def test_content_without_room_in_the_window_is_blocked() -> None:
    sink = RecordingSink()
    with manager(sink) as window:
        window.add_user(filler(60_000))
        assert window.budget.can_add("message_history", 30_000).outcome == "warned"
        ruling = window.budget.can_add("message_history", 36_000)

        assert (ruling.outcome, ruling.budget_tokens) == ("blocked", 95_000)
    assert sink.of(BudgetBlocked)[0].requested_tokens == 36_000


def test_a_reservation_counts_until_it_is_committed() -> None:
    with manager(RecordingSink(), enforce="component") as window:
        assert window.budget.reserve("tool_results", 8_000).outcome == "allowed"
        assert window.budget.reserve("tool_results", 8_000).outcome == "blocked"
        assert window.status().components["tool_results"].reserved_tokens == 8_000
        window.budget.release("tool_results", 8_000)
        assert window.budget.reserve("tool_results", 8_000).outcome == "allowed"


def test_a_reservation_survives_a_change_of_the_limit() -> None:
    sink = RecordingSink()
    with manager(sink) as window:
        window.add_user("go")
        window.budget.reserve("tool_results", 3_000)
        window.on_turn_start()
        window.on_overflow(ValueError("This model's maximum context length is 64000 tokens"))
        assert window.status().components["tool_results"].reserved_tokens == 3_000
    assert sink.of(LimitChanged)[0].limit_tokens == 64_000


@pytest.mark.parametrize("component", ["TOOL_RESULTS", "output", ""])
def test_an_unknown_component_is_an_error(component: Any) -> None:
    with manager(RecordingSink()) as window, pytest.raises(ConfigurationError):
        window.budget.can_add(component, 1)


def test_without_a_window_size_everything_is_allowed() -> None:
    with manager(RecordingSink(), limit=None) as window:
        assert window.budget.can_add("tool_results", 10**9).outcome == "allowed"
        assert window.status().components["tool_results"].budget_tokens is None


def test_the_status_forecasts_when_each_component_is_exhausted() -> None:
    """Tool results that grow by 2,000 a turn in a budget of 12,000 last a few turns more."""
    with manager(RecordingSink()) as window:
        window.add_user("go")
        for n in range(4):
            window.on_turn_start()
            window.on_turn_end(chat_reply(None, calls=[(f"c{n}", "run", "{}")]))
            window.on_tool_result("run", filler(2_000, f"r{n}x"), f"c{n}")
        window.on_turn_start()
        window.on_turn_end(chat_reply("done"))
        status = window.status()
        results = status.components["tool_results"]

        assert results.burn_rate == pytest.approx(2_000, rel=0.01)
        assert results.turns_until_exhausted == pytest.approx(2, abs=0.1)
        assert results.urgency == "critical"
        assert status.components["memory_injection"].urgency == "normal"
        assert status.components["message_history"].state == "normal"
        assert status.burn_rate is not None
        assert sum(part.used_tokens for part in status.components.values()) == status.used_tokens
        assert status.output_tokens == 5_000


@pytest.mark.parametrize(
    ("turns", "expected"),
    [(None, "unknown"), (0, "critical"), (2.9, "critical"), (3, "warning"), (9.9, "warning"), (10, "normal")],
)
def test_urgency_is_critical_under_three_turns_a_warning_under_ten(turns: float | None, expected: str) -> None:
    assert urgency_of(turns) == expected


def test_the_audit_trail_has_the_decisions() -> None:
    sink = RecordingSink()
    with manager(sink) as window:
        window.add_user("go")
        for n in range(14):
            window.on_turn_start()
            window.on_turn_end(chat_reply(None, calls=[(f"c{n}", "run", "{}")]))
            window.on_tool_result("run", filler(6_000, f"r{n}x"), f"c{n}")
        trail = window.audit_trail()

        assert window.status().audit_events == len(trail)
    kinds = [event.type for event in trail]
    assert "blocks.evicted" in kinds
    assert "zone.changed" in kinds
    assert "block.added" not in kinds
    assert [event.n for event in trail] == sorted(event.n for event in trail)
    assert sink.of(BlocksEvicted)


def test_the_remaining_tokens_that_a_model_reports_correct_the_count_without_usage() -> None:
    """Remaining is turned into used, and the source is named."""
    sink = RecordingSink()
    with manager(sink) as window:
        window.add_user(filler(10_000))
        window.on_turn_start()
        window.on_turn_end(chat_reply("ok"), reported_remaining=88_000)

        assert window.status().used_tokens == 12_001  # the reply included
    assert sink.of(TurnEnded)[0].count_source == "reported"
    final = next(data for data in sink.of(PressureMeasured) if data.phase == "final")
    assert (final.used_tokens, final.count_source) == (12_000, "reported")


@pytest.mark.parametrize("limit", [100_000, None])
def test_the_used_tokens_that_a_model_reports_correct_the_count_too(limit: int | None) -> None:
    sink = RecordingSink()
    with manager(sink, limit=limit) as window:
        window.add_user(filler(10_000))
        window.on_turn_start()
        window.on_turn_end(chat_reply("ok"), reported_used=12_500, reported_remaining=88_000)

        assert window.status().used_tokens == 12_501
    assert sink.of(TurnEnded)[0].count_source == "reported"


@pytest.mark.parametrize("remaining", [99_900, 1_000, -5, 200_000])
def test_a_report_far_from_the_known_remainder_is_not_believed(
    remaining: int, caplog: pytest.LogCaptureFixture
) -> None:
    sink = RecordingSink()
    hooks._boundary._logged_at.clear()
    with manager(sink) as window, caplog.at_level("WARNING", logger="windowpane"):
        window.add_user(filler(10_000))
        window.on_turn_start()
        window.on_turn_end(chat_reply("ok"), reported_remaining=remaining)

        assert window.status().used_tokens == pytest.approx(10_001, abs=20)
    [rejected] = sink.of(UsageRejected)
    assert (rejected.reason, rejected.expected_tokens) == ("reported_drift", 10_000)
    rule = "used from 0.5 to 2 times our count, 10,000 tokens, and up to the window's 100,000"
    assert rejected.rule == f"a model's own report is {rule}"
    assert [rule in record.getMessage() for record in caplog.records] == [True]


def test_the_provider_s_usage_wins_over_the_model_s_own_report() -> None:
    sink = RecordingSink()
    with manager(sink) as window:
        window.add_user(filler(10_000))
        window.on_turn_start()
        window.on_turn_end(chat_reply("ok", input_tokens=11_000), reported_remaining=88_000)

        assert window.status().used_tokens == 11_001
    assert sink.of(TurnEnded)[0].count_source == "usage"
    assert sink.of(UsageRejected) == []


def test_a_listener_for_an_event_that_does_not_exist_is_refused() -> None:
    """A slip in the name would never be called; the error names what is near."""
    with manager(RecordingSink()) as window:
        window.on("zone.changed", lambda _event: None)
        window.on("*", lambda _event: None)
        with pytest.raises(ConfigurationError, match=r"zone\.changed"):
            window.on("zone.chaged", lambda _event: None)


def test_a_user_s_policy_can_be_set_at_run_time() -> None:
    mine = Policy("mine", {"recency": 1.0})
    with manager(RecordingSink()) as window:
        window.set_policy(mine)
        assert window._engine.settings.policy is mine
        with pytest.raises(ConfigurationError, match="weights"):
            window.set_policy(mine, weights={"recency": 0.5})


def test_the_policy_can_be_changed_at_run_time() -> None:
    sink = RecordingSink()
    with manager(sink) as window:
        window.add_user("go")
        with pytest.raises(ConfigurationError, match="fifo"):
            window.set_policy("newest-first")
        with pytest.raises(ConfigurationError):
            window.set_policy("hybrid", weights={"luck": 1.0})
        window.set_policy("lru")
        for n in range(14):
            window.on_turn_start()
            window.on_turn_end(chat_reply(None, calls=[(f"c{n}", "run", "{}")]))
            window.on_tool_result("run", filler(6_000, f"r{n}x"), f"c{n}")
        assert len(window.eviction_candidates(3)) == 3
        assert window.eviction_candidates(0) == ()
    assert {event.policy for event in sink.of(BlocksEvicted)} == {"lru"}
