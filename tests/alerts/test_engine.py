"""The alert engine: once per crossing, sustained turns, hysteresis, resolution, determinism."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.alerts.engine import AlertEngine
from windowpane.alerts.rules import RULES, configured
from windowpane.core.codec import decode, encode
from windowpane.core.events import (
    AlertFired,
    AlertResolved,
    BlockAdded,
    BlocksEvicted,
    BreakerOpened,
    ContentCompressed,
    ContentRegretted,
    Event,
    EventContext,
    FidelityEvaluated,
    OverflowDetected,
    Payload,
    PressureMeasured,
    RuleOutcome,
    RulesFollowed,
    SessionEnded,
    SessionStarted,
    VelocitySpiked,
    WindowRolled,
    ZoneChanged,
)
from windowpane.core.vocabulary import COMPONENTS
from windowpane.core.window.blocks import Block

LIMIT = 128_000


class Session:
    """Scripts one session's events and keeps the alerts they cause."""

    def __init__(
        self, *, engine: AlertEngine | None = None, stream: str = "s1", limit: int | None = LIMIT
    ) -> None:
        self.engine = engine or AlertEngine()
        self.stream = stream
        self.limit = limit
        self.turn = 0
        self.n = 0
        self.alerts: list[Event] = []
        self.emit(SessionStarted(limit))

    def emit(self, data: Payload) -> list[Event]:
        context = EventContext("session", "agent", "gpt-5", self.turn, 1, "live", self.stream)
        alerts = self.engine.evaluate([Event(context, self.n, 1_000.0 + self.n, data)])
        self.n += 1
        self.alerts += alerts
        return alerts

    def start_turn(self, *facts: Payload) -> None:
        self.turn += 1
        for fact in facts:
            self.emit(fact)

    def final(self, **gauges: Any) -> list[Event]:
        """End the open turn (or a new one) with these gauges."""
        return self.emit(pressure(self.limit, **gauges))

    def turns(self, *utilizations: float) -> None:
        for utilization in utilizations:
            self.start_turn()
            self.final(utilization=utilization)

    def fired(self, *, of: str | None = None) -> list[AlertFired]:
        return [
            event.data
            for event in self.alerts
            if isinstance(event.data, AlertFired) and of in (None, event.data.alert)
        ]

    def resolved(self, *, of: str | None = None) -> list[AlertResolved]:
        return [
            event.data
            for event in self.alerts
            if isinstance(event.data, AlertResolved) and of in (None, event.data.alert)
        ]

    def names(self) -> list[str]:
        return [f"{event.data.type} {event.data.alert}" for event in self.alerts]  # type: ignore[union-attr]


def called(arguments: str, result: str, *, n: int) -> list[BlockAdded]:
    """The blocks of a tool call and of its result."""
    return [
        BlockAdded(
            Block(
                f"{kind}{n}", kind, 10, n, f"g{n}", 1, text, 10, "estimate", text,
                tool_name="read", tool_call_id=f"c{n}",
            )
        )
        for kind, text in (("tool_call", arguments), ("tool_result", result))
    ]  # fmt: skip


def pressure(limit: int | None = LIMIT, *, utilization: float | None = 0.1, **gauges: Any) -> PressureMeasured:
    """A final measurement of a window that is *utilization* full."""
    used = round((utilization or 0.0) * (limit or 1_000))
    measurable = limit is not None and utilization is not None
    defaults: dict[str, Any] = {
        "phase": "final",
        "used_tokens": used,
        "used_by_component": dict.fromkeys(COMPONENTS, 0) | {"message_history": used},
        "count_source": "usage",
        "limit_tokens": limit,
        "utilization": used / limit if measurable and limit else None,
        "zone": zone(used / limit) if measurable and limit else None,
        "red_tokens": int(0.9 * limit) if limit else None,
    }
    return PressureMeasured(**(defaults | gauges))


def zone(utilization: float) -> str:
    return "red" if utilization >= 0.9 else "orange" if utilization >= 0.75 else (
        "yellow" if utilization >= 0.5 else "green"
    )  # fmt: skip


def compressed(before: int, after: int, **options: Any) -> ContentCompressed:
    return ContentCompressed(
        **({"strategy": "truncation", "trigger": "threshold", "outcome": "accepted"} | options),
        tokens_before=before,
        tokens_after=after,
    )


def evicted(tokens: int) -> BlocksEvicted:
    return BlocksEvicted("hybrid", (), tokens, tokens)


# -- the first six ---------------------------------------------------------------------------------------------


def test_utilization_fires_on_the_third_turn_in_red() -> None:
    session = Session()
    session.turns(0.5, 0.91, 0.92)
    assert not session.fired(of="utilization")

    session.turns(0.93)

    (fired,) = session.fired(of="utilization")
    assert (fired.severity, fired.crossing_turn) == ("critical", 2)
    assert fired.value == pytest.approx(0.93)
    assert fired.threshold == pytest.approx(0.9)
    assert fired.summary == ("Utilization 93% (119k of 128k tokens), at or above 90% for 3 turns")


def test_utilization_stays_silent_when_red_is_interrupted() -> None:
    session = Session()

    session.turns(0.95, 0.95, 0.89, 0.95, 0.95)

    assert not session.fired(of="utilization")


def test_utilization_resolves_only_below_the_hysteresis() -> None:
    session = Session()
    session.turns(0.91, 0.91, 0.91, 0.88)
    assert not session.resolved()

    session.turns(0.86, 0.9, 0.9, 0.9)

    (resolved,) = session.resolved(of="utilization")
    assert (resolved.crossing_turn, resolved.fired_turn) == (1, 3)
    assert [fired.crossing_turn for fired in session.fired(of="utilization")] == [1, 6]


def test_utilization_follows_the_window_s_own_red() -> None:
    """In a small window red starts earlier, and so does the alert, unless a threshold was set."""
    tight, fixed = Session(), Session(engine=AlertEngine(configured({"utilization": 0.95})))
    for session in (tight, fixed):
        for _ in range(3):
            session.start_turn()
            session.final(utilization=0.87, red_tokens=int(0.85 * LIMIT))

    assert [fired.threshold for fired in tight.fired(of="utilization")] == [pytest.approx(0.85)]
    assert not fixed.fired(of="utilization")


def test_only_the_final_pressure_counts_turns() -> None:
    session = Session()
    session.start_turn()
    for phase in ("before", "after", "before"):
        session.emit(pressure(utilization=0.95, phase=phase))

    session.final(utilization=0.95)

    assert not session.fired(of="utilization")


@pytest.mark.parametrize(("rate", "fires"), [(5.2, True), (5.0, False)])
def test_eviction_rate(rate: float, fires: bool) -> None:
    session = Session()

    for _ in range(4):
        session.start_turn(evicted(100))
        session.final(eviction_rate=rate)

    assert bool(session.fired(of="eviction_rate")) is fires


def test_one_removal_of_many_blocks_is_not_an_eviction_rate() -> None:
    session = Session()

    session.start_turn(evicted(21_000))
    for _ in range(5):
        session.final(eviction_rate=8.4)
        session.start_turn()
    session.final(eviction_rate=0.0)

    assert not session.fired(of="eviction_rate")


def test_eviction_rate_resolves_ten_percent_below() -> None:
    session = Session()
    for rate in (6, 6, 6, 6, 4.6):
        session.start_turn(evicted(100))
        session.final(eviction_rate=rate)
    assert not session.resolved()

    session.start_turn()
    session.final(eviction_rate=4.4)

    assert session.resolved(of="eviction_rate")


@pytest.mark.parametrize(
    ("pairs", "fires"),
    [
        ([(1_000, 600)], True),
        ([(1_000, 1_000)], True),
        ([(1_000, 1_200)], True),
        ([(1_000, 500)], False),
        ([(9_000, 1_000), (9_000, 1_000), (1_000, 900)], False),
        ([(9_000, 1_000), (1_000, 900), (1_000, 900), (1_000, 900)], True),
    ],
)
def test_compression_ratio(pairs: list[tuple[int, int]], fires: bool) -> None:
    session = Session()

    for before, after in pairs:
        session.start_turn(compressed(before, after))
        session.final()

    assert bool(session.fired(of="compression_ratio")) is fires


def test_a_window_scoped_or_rejected_compression_is_not_judged() -> None:
    session = Session()

    session.start_turn(compressed(1_000, 900, scope="window"), compressed(1_000, 990, outcome="rejected"))
    session.final()

    assert not session.alerts


def test_burn_rate_spike_fires_once_and_resolves_after_quiet_turns() -> None:
    session = Session()
    session.start_turn()
    session.final()
    session.emit(VelocitySpiked(20_000, 2_000.0))
    assert [fired.value for fired in session.fired()] == [20_000]

    session.turns(0.1, 0.1)
    session.emit(VelocitySpiked(20_000, 2_000.0))
    session.turns(0.1, 0.1, 0.1, 0.1)
    assert not session.resolved()
    session.turns(0.1)

    assert session.names() == ["alert.fired burn_rate_spike", "alert.resolved burn_rate_spike"]
    assert session.fired()[0].threshold == 6_000


def test_no_spike_no_alert() -> None:
    session = Session()

    session.start_turn()
    session.final(added_tokens=90_000, velocity=90_000.0)

    assert not session.alerts


@pytest.mark.parametrize(("score", "fires"), [(0.09, True), (0.10, False), (None, False)])
def test_fidelity_without_a_baseline(score: float | None, fires: bool) -> None:
    session = Session()

    session.start_turn(FidelityEvaluated("probe", score, 1.0))

    assert bool(session.fired(of="fidelity")) is fires


@pytest.mark.parametrize(("score", "fires"), [(0.19, True), (0.20, False)])
def test_fidelity_is_compared_with_what_is_usual(score: float, fires: bool) -> None:
    session = Session()
    for usual in (0.3, 0.4, 0.9):
        session.start_turn(FidelityEvaluated("probe", usual, 1.0))
        session.final()

    session.start_turn(FidelityEvaluated("probe", score, 1.0))

    assert bool(session.fired(of="fidelity")) is fires


def test_a_late_judgment_of_an_older_compaction_is_not_the_newest_fidelity() -> None:
    """A judge takes longer than a probe; its score counts among the usual ones."""
    session = Session()

    session.start_turn(FidelityEvaluated("probe", 0.9, 1.0, of="01ARZ3NDEKTSV4RRFFQ69G5FAW"))
    session.start_turn(FidelityEvaluated("judge", 0.05, 1.0, of="01ARZ3NDEKTSV4RRFFQ69G5FAV"))

    assert not session.fired(of="fidelity")


def test_a_call_that_returns_the_same_three_times_within_ten_turns_alerts() -> None:
    session = Session()

    def call(arguments: str, result: str) -> None:
        session.start_turn(*called(arguments, result, n=session.turn))
        session.final()

    for turn in range(3):
        call("a.py", f"line {turn}")
        call(f"{turn}.py", "same")
    assert not session.fired(of="repeated_calls")
    call("b.py", "same")
    call("b.py", "same")
    for turn in range(10):
        call(f"other {turn}", "same")
    call("b.py", "same")
    assert not session.fired(of="repeated_calls")
    call("b.py", "same")
    call("b.py", "same")

    assert [fired.value for fired in session.fired(of="repeated_calls")] == [3]


def test_a_call_that_is_run_again_after_each_edit_is_no_repetition() -> None:
    session = Session()

    for turn in range(4):
        session.start_turn(*called(f"edit {turn}", "edited", n=2 * turn))
        session.final()
        session.start_turn(*called("lint", "no problems", n=2 * turn + 1))
        session.final()
    assert not session.fired(of="repeated_calls")
    for turn in range(8, 13):  # nothing new: the agent alternates between two calls
        session.start_turn(*called("lint" if turn % 2 else "edit 3", "no problems", n=turn))
        session.final()

    assert session.fired(of="repeated_calls")


def test_red_is_not_announced_where_the_agent_compacts_before() -> None:
    session = Session()

    session.start_turn()
    session.final(turns_until_red=0.9, used_tokens=80_000, red_tokens=90_000, compaction_tokens=85_000)
    assert not session.fired(of="red_imminent")
    session.start_turn()
    session.final(turns_until_red=0.9, used_tokens=80_000, red_tokens=90_000, compaction_tokens=95_000)

    assert session.fired(of="red_imminent")


@pytest.mark.parametrize(
    "reduction",
    [
        BlocksEvicted("hybrid", (), 20_000, 20_000, target_tokens=15_000),
        ContentCompressed("compaction", "pressure", "accepted", 40_000, 4_000, method="extractive"),
    ],
)
def test_red_is_not_announced_where_a_manager_reduces_the_window_before(
    reduction: BlocksEvicted | ContentCompressed,
) -> None:
    session = Session()
    near: dict[str, Any] = {"turns_until_red": 0.9, "used_tokens": 80_000, "red_tokens": 90_000}

    session.start_turn()
    session.emit(reduction)
    session.final(**near)
    assert not session.fired(of="red_imminent")
    session.emit(OverflowDetected("proactive", "failed", 140_000, LIMIT))
    for _ in range(20):
        session.start_turn()
        session.final(**near)

    assert session.fired(of="red_imminent")


# -- several alerts about one cause ----------------------------------------------------------------------------


def in_red(session: Session, *turns_until_red: float, **gauges: Any) -> list[str]:
    """End turns with these forecasts of red; return the alerts that fired."""
    for turns in turns_until_red:
        session.start_turn()
        session.final(**({"utilization": 0.92 if turns == 0 else 0.89} | gauges), turns_until_red=turns)
    return [one.alert for one in session.fired() if one.severity != "info"]


def test_a_window_that_fills_slowly_escalates() -> None:
    session = Session()

    assert in_red(session, 1.8, 0.9, 0, 0, 0, 0) == ["red_imminent", "utilization"]
    in_red(session, math.inf, utilization=0.5)
    assert {one.alert for one in session.resolved()} >= {"red_imminent", "utilization"}


def test_a_jump_into_red_is_critical_if_nothing_reduces_the_window() -> None:
    session = Session()

    assert in_red(session, 9, 0, 0) == []
    assert in_red(session, 0) == ["utilization"]


def test_the_most_severe_of_what_holds_at_once_is_the_one_that_fires() -> None:
    session = Session()

    assert in_red(session, 0, utilization=0.99, tool_result_ratio=0.8) == ["output_reserve"]


def test_an_inhibited_alert_fires_once_the_more_severe_one_is_over() -> None:
    session = Session()
    in_red(session, 0.9, utilization=0.99)

    assert in_red(session, 0.9) == ["output_reserve", "red_imminent"]
    assert session.fired(of="red_imminent")[0].crossing_turn == 1


def test_red_before_the_level_of_a_compaction_that_is_near_is_no_alert_of_its_own() -> None:
    session = Session()
    near = {"compaction_tokens": 124_000, "compaction_evidence": "documented", "turns_until_compaction": 5.0}

    assert in_red(session, 1.5, 0.9, 0, 0, 0, tool_result_ratio=0.8, **near) == ["compaction_soon"]
    assert in_red(session, 0, utilization=0.93) == ["compaction_soon", "utilization"]


def test_an_assumed_size_that_the_agent_passed_by_its_compaction_level_is_no_alert() -> None:
    """It did not compact where it does in a window of 128k: this one is probably larger."""
    session = Session()
    assumed = {"limit_source": "assumed"}
    in_red(session, 30, utilization=0.8, compaction_tokens=105_000, turns_until_compaction=40.0, **assumed)

    assert in_red(session, 1.0, 0, 0, 0, 0, 0, **assumed) == []
    assert in_red(session, 0, 0, utilization=0.99, **assumed) == []


@pytest.mark.parametrize("source", ["provider", "given", "catalogue", "assumed"])
def test_a_size_without_such_evidence_is_taken_as_it_is(source: str) -> None:
    session = Session()
    level = {} if source == "assumed" else {"compaction_tokens": 105_000, "turns_until_compaction": 40.0}
    in_red(session, 30, utilization=0.8, limit_source=source, **level)

    assert "utilization" in in_red(session, 0, 0, 0, limit_source=source)


def test_rules_are_evaluated_after_those_that_inhibit_them() -> None:
    """Else both would fire in the turn in which both start to hold."""
    inhibiting = {rule.name: rule.inhibited_by for rule in RULES}

    for name, more_severe in inhibiting.items():
        for other in more_severe:
            assert len(inhibiting[other]) < len(more_severe), (name, other)
            assert set(inhibiting[other]) <= set(more_severe), "what inhibits the more severe inhibits the lesser"


def test_fidelity_does_not_flap_within_a_turn() -> None:
    session = Session()

    session.start_turn(*[FidelityEvaluated("probe", score, 1.0) for score in (0.05, 0.9, 0.05, 0.9)])
    assert session.names() == ["alert.fired fidelity"]
    session.final()
    assert session.names()[1:] == ["alert.resolved fidelity"]
    session.emit(FidelityEvaluated("judge", 0.04, 1.0))

    assert len(session.alerts) == 2
    session.start_turn()
    session.final()
    assert [fired.crossing_turn for fired in session.fired()] == [1, 2]


@pytest.mark.parametrize(
    ("ratio", "utilization", "fires"), [(0.61, 0.8, True), (0.60, 0.8, False), (0.8, 0.6, False)]
)
def test_tool_results(ratio: float, utilization: float, fires: bool) -> None:
    session = Session()

    for _ in range(3):
        session.start_turn()
        session.final(utilization=utilization, tool_result_ratio=ratio)

    assert bool(session.fired(of="tool_results")) is fires


# -- the rest of the table -------------------------------------------------------------------------------------


def test_compaction_soon_names_level_and_evidence_and_repeats() -> None:
    session = Session()

    for _ in range(16):
        session.start_turn()
        session.final(
            used_tokens=150_000,
            compaction_tokens=167_000,
            compaction_evidence="documented",
            turns_until_compaction=8.0,
            turns_until_compaction_p10=4.0,
            turns_until_compaction_p90=20.0,
        )
    fired = session.fired(of="compaction_soon")

    assert [one.crossing_turn for one in fired] == [1, 13]
    assert fired[0].summary == (
        "The agent compacts in 8 turns (4–20), at 167k tokens (as documented for this agent; 150k used)"
    )
    assert [one.fired_turn for one in session.resolved(of="compaction_soon")] == [1]

    session.start_turn()
    session.final(used_tokens=170_000)

    assert [one.fired_turn for one in session.resolved(of="compaction_soon")] == [1, 13]


def test_a_compaction_that_is_far_away_does_not_alert() -> None:
    session = Session()

    for turns in (14.1, 40.0, None):
        session.start_turn()
        session.final(compaction_tokens=167_000, compaction_evidence="documented", turns_until_compaction=turns)

    assert not session.fired(of="compaction_soon")


def test_overflow_and_a_failed_reduction() -> None:
    session = Session()

    session.start_turn(OverflowDetected("provider", "retried", 130_000, LIMIT))
    assert session.names() == ["alert.fired overflow"]
    session.emit(OverflowDetected("proactive", "failed", 130_000, LIMIT))
    session.emit(BreakerOpened("no_progress", 3))

    assert session.names() == ["alert.fired overflow", "alert.fired cannot_compress"]


def test_a_rejected_call_that_was_only_observed_is_not_a_failed_reduction() -> None:
    session = Session()

    session.start_turn(OverflowDetected("provider", "rejected", 130_000, LIMIT))

    assert session.names() == ["alert.fired overflow"]


@pytest.mark.parametrize(("limit", "used", "fires"), [(128_000, 123_905, True), (128_000, 123_900, False),
                                                      (8_000, 6_001, True), (8_000, 6_000, False)])  # fmt: skip
def test_output_reserve(limit: int, used: int, fires: bool) -> None:
    """Less room than 4,096 tokens, or a quarter of a small window, is critical."""
    session = Session(limit=limit)

    session.start_turn()
    session.final(utilization=used / limit)

    assert bool(session.fired(of="output_reserve")) is fires


def regretted(tokens: int, turn_left: int, cause: str = "eviction") -> ContentRegretted:
    return ContentRegretted(cause, "same_digest", "b1", "b2", tokens, turn_left, "id")  # type: ignore[arg-type]


@pytest.mark.parametrize(("tokens", "fires"), [(110, True), (100, False)])
def test_regret(tokens: int, fires: bool) -> None:
    session = Session()
    session.start_turn(evicted(1_000))
    session.final()

    session.start_turn(regretted(tokens, 1), regretted(900, 1, "compression"))
    session.final()

    assert bool(session.fired(of="regret")) is fires


@pytest.mark.parametrize(("with_subjects", "subject"), [(True, "read src/app.py"), (False, "")])
def test_the_largest_regret_is_named_where_content_may_be_stored(with_subjects: bool, subject: str) -> None:
    session = Session(engine=AlertEngine(with_subjects=with_subjects))
    named = replace(regretted(600, 1), content_type="tool_result", tool_name="read", target="src/app.py")
    session.start_turn(evicted(1_000), regretted(300, 1), named)
    session.final()

    (fired,) = session.fired(of="regret")
    assert fired.subject == subject
    assert "app.py" not in fired.summary


@pytest.mark.parametrize(
    ("with_subjects", "claim", "subject"),
    [
        (True, None, "Never push."),
        (True, "You may push.", "Never push. The summary states: You may push."),
        (False, "You may push.", ""),
    ],
)
def test_a_lost_rule_is_named_where_content_may_be_stored(
    with_subjects: bool, claim: str | None, subject: str
) -> None:
    session = Session(engine=AlertEngine(with_subjects=with_subjects))
    rule = RuleOutcome(
        "contradicted" if claim else "lost", "user", "digest", text="Never push.", contradicted_by=claim
    )

    session.start_turn(RulesFollowed("of", 1, user={"kept": 1, "lost": 2}, outcomes=(rule,)))

    (fired,) = session.fired(of="rule_lost")
    assert (fired.value, fired.subject) == (2.0, subject)
    assert "push" not in fired.summary


@pytest.mark.parametrize("followed", [{"user": {"kept": 1, "restored": 3}}, {"system": {"lost": 1}}])
def test_no_alert_for_rules_that_are_visible_or_sent_anew_with_each_call(followed: dict[str, Any]) -> None:
    session = Session()

    session.start_turn(RulesFollowed("of", 1, **followed))

    assert not session.fired(of="rule_lost")


def test_regret_resolves_when_the_eviction_is_long_ago() -> None:
    session = Session()
    session.start_turn(evicted(1_000), regretted(900, 1))
    session.final()

    session.turns(*[0.1] * 20)

    assert len(session.fired(of="regret")) == len(session.resolved(of="regret")) == 1


def test_thrashing_counts_turns_not_steps_of_a_cascade() -> None:
    session = Session()
    session.start_turn(evicted(10), compressed(90, 10), compressed(90, 10), compressed(90, 10))
    session.final()
    for _ in range(3):
        session.start_turn(evicted(10))
        session.final()
    assert not session.fired(of="thrashing")

    session.turns(0.1, 0.1)
    session.start_turn(evicted(10))
    session.final()

    assert session.fired(of="thrashing")


def test_oscillation_and_yellow() -> None:
    session = Session()
    for _ in range(2):
        session.start_turn(ZoneChanged("green", "yellow", 1, 0.5))
        session.final(utilization=0.55)
        session.start_turn(ZoneChanged("yellow", "green", 1, 0.4))
        session.final(utilization=0.4)

    assert len(session.fired(of="oscillation")) == 1
    assert len(session.fired(of="yellow_entered")) == len(session.resolved(of="yellow_entered")) == 2
    assert session.fired(of="yellow_entered")[0].summary == "The window entered yellow (70k of 128k tokens)"


def test_a_zone_that_was_entered_by_an_estimate_has_both_sizes() -> None:
    session = Session()
    session.start_turn()
    session.emit(pressure(LIMIT, phase="before", utilization=0.51))
    session.final(utilization=0.48, zone="yellow")

    assert session.fired(of="yellow_entered")[0].summary == (
        "The window entered yellow (≈65k before the call, 61k of 128k tokens)"
    )


def test_rolled_and_compacted_are_noted_and_pass() -> None:
    session = Session()
    session.start_turn(WindowRolled("checkpoint", 1, 2, 90_000), compressed(9_000, 1_000, strategy="compaction"))
    session.final()
    assert session.names() == ["alert.fired window_rolled", "alert.fired compaction_done"]

    session.turns(0.1)

    assert len(session.resolved()) == 2


def test_the_rot_threshold_is_off_until_it_is_switched_on() -> None:
    on = AlertEngine(configured({"rot_threshold": 500}, enable=["rot_threshold"]))
    silent, enabled = Session(limit=None), Session(engine=on, limit=None)
    for session in (silent, enabled):
        session.start_turn()
        session.final(utilization=None, used_tokens=600)

    assert not silent.alerts
    assert enabled.names() == ["alert.fired rot_threshold"]


def test_a_condition_checked_outside_has_the_same_states() -> None:
    engine = AlertEngine()
    context = EventContext("session", "agent", "m", 4, 1, "live", "audit")

    def report(holds: bool) -> list[str]:
        return [event.type for event in engine.report("audit_chain_broken", holds=holds, context=context, at=1.0)]

    assert [report(True), report(True), report(False), report(False)] == [
        ["alert.fired"], [], ["alert.resolved"], [],
    ]  # fmt: skip


# -- the machine -----------------------------------------------------------------------------------------------


def test_unknown_neither_fires_nor_resolves() -> None:
    session = Session()
    session.turns(0.95, 0.95)
    session.start_turn()
    session.final(utilization=None, limit_tokens=None, red_tokens=None)
    session.turns(0.95)
    assert len(session.fired(of="utilization")) == 1

    session.start_turn()
    session.final(utilization=None)

    assert not session.resolved(of="utilization")


def test_session_end_resolves_all_alerts() -> None:
    session = Session()
    session.turns(*[0.95] * 3)
    count = len(session.fired())

    ended = session.emit(SessionEnded("done"))
    session.turns(*[0.95] * 3)

    assert len(ended) == count == len(session.resolved())
    assert {event.at for event in ended} == {1_000.0 + 4}
    assert len(session.fired()) == count
    assert len(session.engine._sessions) == 0


def test_a_session_that_continues_in_its_stream_keeps_numbering() -> None:
    session = Session()
    session.turns(*[0.95] * 3)
    session.emit(SessionEnded("idle"))
    session.emit(SessionStarted(LIMIT))

    session.turns(*[0.95] * 3)

    assert [event.n for event in session.alerts] == list(range(len(session.alerts)))


def test_alerts_travel_in_their_own_stream() -> None:
    session = Session()

    session.turns(*[0.95] * 3)

    first = session.alerts[0]
    assert first.context == replace(first.context, session_id="session", stream_id="s1/alerts")
    assert first.at is not None
    assert len({event.event_id for event in session.alerts}) == len(session.alerts)


def test_memory_is_bounded() -> None:
    engine = AlertEngine(sessions=50)

    for i in range(500):
        session = Session(engine=engine, stream=f"s{i}")
        session.turns(0.95)

    assert len(engine._sessions) == 50


UTILIZATIONS = st.lists(st.one_of(st.none(), st.floats(0, 1.2)), max_size=60)


@given(UTILIZATIONS)
def test_firing_and_resolving_alternate(utilizations: Sequence[float | None]) -> None:
    session = Session()
    for utilization in utilizations:
        session.start_turn()
        session.final(utilization=utilization)
    session.emit(SessionEnded("done"))

    for rule in RULES:
        course = [event for event in session.alerts if event.data.alert == rule.name]  # type: ignore[union-attr]
        kinds = [event.type for event in course]
        crossing_turns = [fired.crossing_turn for fired in session.fired(of=rule.name)]
        assert kinds == ["alert.fired", "alert.resolved"] * (len(kinds) // 2)
        assert len(set(crossing_turns)) == len(crossing_turns)
        assert crossing_turns == [resolved.crossing_turn for resolved in session.resolved(of=rule.name)]


@given(UTILIZATIONS)
def test_a_firing_needs_its_turns_and_a_resolution_its_distance(utilizations: Sequence[float | None]) -> None:
    session = Session()
    in_red = 0
    for utilization in utilizations:
        session.start_turn()
        caused = [event.data for event in session.final(utilization=utilization)]
        actual = None if utilization is None else round(utilization * LIMIT) / LIMIT
        if actual is not None:
            in_red = in_red + 1 if actual >= int(0.9 * LIMIT) / LIMIT else 0
        for data in caused:
            if data.alert == "utilization":  # type: ignore[union-attr]
                if isinstance(data, AlertFired):
                    assert in_red >= 3
                else:
                    assert actual is not None
                    assert actual < 0.87 + 1e-6


@given(st.lists(st.floats(0.8805, 0.93), min_size=3, max_size=60))
def test_no_flapping_inside_the_hysteresis(utilizations: list[float]) -> None:
    session = Session()

    session.turns(*utilizations)

    assert len(session.fired(of="utilization")) <= 1
    assert not session.resolved(of="utilization")


@given(UTILIZATIONS, st.integers(1, 7))
def test_the_same_events_give_the_same_bytes(utilizations: list[float | None], size: int) -> None:
    recorded: list[Event] = []
    context = EventContext("session", "agent", "gpt-5", 0, 1, "codex", "rec")
    recorded.append(Event(context, 0, None, SessionStarted(LIMIT)))
    for turn, utilization in enumerate(utilizations, 1):
        at_turn = replace(context, turn=turn)
        recorded.append(Event(at_turn, len(recorded), 5.0 * turn, pressure(utilization=utilization)))
    recorded.append(Event(context, len(recorded), None, SessionEnded("done")))

    engine = AlertEngine()
    first = [encode(event) for event in engine.evaluate(recorded)]
    again = [encode(event) for event in engine.evaluate(recorded)]
    split = [
        encode(event)
        for start in range(0, len(recorded), size)
        for event in engine.evaluate(recorded[start : start + size])
    ]
    interleaved = [
        encode(event) for event in AlertEngine().interleave(recorded) if event.type.startswith("alert.")
    ]

    assert first == again == split == interleaved
    assert [encode(decode(raw)) for raw in first] == first


def test_a_faulty_event_is_reported_once_and_affects_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    session, errors = Session(), list[Exception]()

    def start(_engine: AlertEngine, _stream: str, _n: int) -> None:
        raise RuntimeError("faulty")

    def failed(error: Exception) -> None:
        errors.append(error)
        assert len(errors) < 9, "the event is evaluated again and again"

    monkeypatch.setattr(AlertEngine, "_start", start)
    context = EventContext("session", "agent", "gpt-5", 1, 1, "live", "s1")
    events = [SessionStarted(LIMIT), OverflowDetected("proactive", "failed", 140_000, LIMIT)]
    alerts = session.engine.evaluate(
        [Event(context, n, 1.0, data) for n, data in enumerate(events)], failed=failed
    )

    assert len(errors) == 1
    assert "overflow" in [event.data.alert for event in alerts if isinstance(event.data, AlertFired)]
