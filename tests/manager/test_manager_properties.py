"""Invariants of any history, policy and window: random agent loops against the manager."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from message_rules import anthropic_faults, openai_faults
from tests.sampling import EVERYTHING

from windowpane.agents.managers import ContextWindowManager
from windowpane.core.events import (
    BlocksEvicted,
    ContentCompressed,
    OverflowDetected,
    PressureMeasured,
    WindowRolled,
)
from windowpane.exceptions import IrreducibleContextError
from windowpane.manager.plans.policies import POLICIES
from windowpane.manager.steps.cascade import STEPS
from windowpane.testing import RecordingSink, ScriptedModel, chat_reply, in_memory_dependencies

SYSTEM = "SYSTEM-PROMPT stays"
PINNED = "PINNED-RULE: never force-push"


def prose(tag: str, tokens: int) -> str:
    return " ".join(f"{tag}_{n}" for n in range(max(1, tokens // 3)))


@dataclass
class Loop:
    """A random agent loop: its content, and the invariants after every step."""

    window: ContextWindowManager
    sink: RecordingSink
    replies: dict[str, list[str]] = field(default_factory=dict)
    """Call ids of each reply, by its first."""
    answered: set[str] = field(default_factory=set)
    last_user: str = ""
    step: int = 0

    def user(self, tokens: int, *, pinned: bool = False) -> None:
        self.step += 1
        self.last_user = f"USER{self.step}: {PINNED if pinned else ''} {prose(f'u{self.step}', tokens)}"
        self.window.add_user(self.last_user, pinned=pinned)

    def reply(self, text_tokens: int, calls: int, sizes: list[int]) -> None:
        self.step += 1
        text = f"We decided on plan_{self.step}. {prose(f'a{self.step}', text_tokens)}" if text_tokens else None
        named = [
            (f"c{self.step}-{n}", f"tool{n}", json.dumps({"path": f"src/f{self.step}.py"})) for n in range(calls)
        ]
        self.window.on_turn_end(chat_reply(text or ("ok" if not named else None), calls=named))
        ids = [call_id for call_id, _, _ in named]
        self.replies |= dict.fromkeys(ids, ids)
        for call_id, size in zip(ids, sizes, strict=False):
            self.window.on_tool_result(
                "", f"found {size} results in {call_id}\n{prose(call_id.replace('-', '_'), size)}", call_id
            )
            self.answered.add(call_id)

    def check(self) -> None:
        window = self.window
        engine = window._engine
        blocks = list(engine.tracker.window)
        assert engine.tracker.window.tokens == sum(block.tokens for block in blocks)
        assert sum(engine.tracker.window.tokens_by_component.values()) == engine.tracker.window.tokens
        openai = window.messages()
        assert openai_faults(openai) == []
        anthropic = window.messages("anthropic")
        assert anthropic_faults(anthropic.messages) == []
        assert anthropic.system == SYSTEM
        assert openai[0] == {"role": "system", "content": SYSTEM}
        assert self.last_user.split(":")[0] in json.dumps(openai)
        self._groups_are_whole(blocks)

    def _groups_are_whole(self, blocks: list[Any]) -> None:
        calls = {block.tool_call_id for block in blocks if block.content_type == "tool_call"}
        results = {block.tool_call_id for block in blocks if block.content_type in ("tool_result", "placeholder")}
        for call_id in calls:
            assert set(self.replies[call_id]) <= calls
            if call_id in self.answered:
                assert call_id in results
        assert results <= calls

    def events_hold(self) -> None:
        for evicted in self.sink.of(BlocksEvicted):
            assert evicted.tokens_freed > 0
            assert evicted.tokens_removed - evicted.tokens_freed == sum(
                block.replacement_tokens for block in evicted.blocks
            )
            assert all(block.replacement_tokens <= 50 for block in evicted.blocks)
            assert evicted.shortfall_tokens == max(0, (evicted.target_tokens or 0) - evicted.tokens_freed)
        for compressed in self.sink.of(ContentCompressed):
            if compressed.outcome == "accepted":
                assert compressed.tokens_after < compressed.tokens_before


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("user"), st.integers(0, 900), st.just(0), st.just([])),
        st.tuples(
            st.just("reply"),
            st.integers(0, 700),
            st.integers(0, 3),
            st.lists(st.integers(0, 2_500), min_size=0, max_size=3),
        ),
    ),
    min_size=1,
    max_size=40,
)


def run(
    actions: list[Any],
    *,
    limit: int,
    policy: str,
    model: ScriptedModel | None = None,
    pinned: bool = False,
    **options: Any,
) -> Loop:
    sink = RecordingSink()
    dependencies = in_memory_dependencies(sink, model=model)
    window = ContextWindowManager(
        agent="a", model="m", limit_tokens=limit, policy=policy, dependencies=dependencies, **options
    )
    loop = Loop(window, sink)
    with window:
        window.add_system(SYSTEM)
        loop.user(20, pinned=pinned)
        for kind, text_tokens, calls, sizes in actions:
            if kind == "user":
                loop.user(text_tokens)
                continue
            before = len(sink.of(PressureMeasured))
            try:
                window.on_turn_start()
                fits = window.status().used_tokens <= limit
            except IrreducibleContextError as error:
                fits = error.required_tokens > error.usable_tokens
            window.flush()
            assert fits
            measured = sink.of(PressureMeasured)[before:]
            phases = {data.phase: data.used_tokens for data in measured if data.phase != "final"}
            assert phases.get("after", 0) <= phases["before"]
            loop.check()
            if pinned:
                assert PINNED in json.dumps(window.messages())
            loop.reply(text_tokens, calls, sizes)
            loop.check()
    loop.events_hold()
    return loop


@settings(max_examples=settings.default.max_examples // 3)
@given(ACTIONS, st.sampled_from([4_096, 8_192, 16_384]), st.sampled_from(sorted(POLICIES)))
def test_any_loop_stays_valid_whole_and_within_the_window(actions: list[Any], limit: int, policy: str) -> None:
    """For any content: messages are valid, groups whole, totals right, protected content present, and it
    fits.
    """
    loop = run(actions, limit=limit, policy=policy)

    assert not loop.window._session._logged, "a hook failed"


@settings(max_examples=settings.default.max_examples // 3)
@given(ACTIONS, st.booleans())
def test_pinned_content_is_never_removed(actions: list[Any], good: bool) -> None:
    answers: list[str | Exception] = [
        "## Decisions and reasons\n- short" if good else "",
        RuntimeError("the model is down"),
        "word " * 5_000,
    ]
    loop = run(actions, limit=6_000, policy="hybrid", model=ScriptedModel(answers), pinned=True)

    assert not loop.window._session._logged, "a hook failed"


@settings(max_examples=settings.default.max_examples // 3)
@given(ACTIONS, st.sampled_from(sorted(POLICIES)))
def test_the_same_history_gives_the_same_plans(actions: list[Any], policy: str) -> None:
    first = run(actions, limit=8_192, policy=policy).sink
    second = run(actions, limit=8_192, policy=policy).sink

    assert first.of(BlocksEvicted) == second.of(BlocksEvicted)
    assert first.of(ContentCompressed) == second.of(ContentCompressed)


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_a_long_loop_makes_progress_with_every_reduction(policy: str) -> None:
    turns = 200 if EVERYTHING else 100
    actions = [("reply", 60, 1, [300 + 97 * n % 1_800]) for n in range(turns)]
    loop = run(actions, limit=8_192, policy=policy)

    assert not [event for event in loop.sink.of(OverflowDetected) if event.outcome == "failed"]
    reductions = len(loop.sink.of(BlocksEvicted)) + len(loop.sink.of(ContentCompressed))
    assert 0 < reductions < 3 * turns
    assert len(loop.sink.of(WindowRolled)) <= turns / 5


def scripted(good: bool) -> ScriptedModel:
    answers: list[str | Exception] = [
        "## Decisions and reasons\n- short" if good else "",
        RuntimeError("down"),
        "x",
        "word " * 4_000,
    ]
    return ScriptedModel(answers)


def subagent(assignment: str) -> str:
    if len(assignment) % 3 == 0:
        raise RuntimeError("the sub-agent is down")
    return assignment[-600:]


@settings(max_examples=settings.default.max_examples // 3)
@given(
    ACTIONS,
    st.lists(st.sampled_from(sorted(STEPS)), unique=True, max_size=4),
    st.sampled_from(sorted(POLICIES)),
    st.booleans(),
    st.sampled_from(["global", "component"]),
)
def test_any_cascade_keeps_the_promises(
    actions: list[Any], cascade: list[str], policy: str, good: bool, enforce: Any
) -> None:
    loop = run(
        actions,
        limit=6_000,
        policy=policy,
        model=scripted(good),
        pinned=True,
        cascade=cascade,
        subagent=subagent,
        enforce=enforce,
    )

    assert not loop.window._session._logged, "a hook failed"


@settings(max_examples=settings.default.max_examples // 3)
@given(ACTIONS, st.permutations(sorted(STEPS)))
def test_the_same_history_gives_the_same_reductions_by_any_cascade(
    actions: list[Any], cascade: list[str]
) -> None:
    sinks = [
        run(
            actions,
            limit=6_000,
            policy="semantic_merge",
            model=scripted(True),
            cascade=cascade,
            subagent=subagent,
        ).sink
        for _ in range(2)
    ]

    assert sinks[0].of(BlocksEvicted) == sinks[1].of(BlocksEvicted)
    assert sinks[0].of(ContentCompressed) == sinks[1].of(ContentCompressed)


@pytest.mark.parametrize("step", sorted(STEPS))
def test_no_strategy_calls_a_model_without_end(step: str) -> None:
    model = ScriptedModel([""])
    actions = [("reply", 60, 1, [900]) for _ in range(50)]
    run(actions, limit=8_192, policy="hybrid", model=model, cascade=[step])

    assert len(model.asked) <= 3 * 50


@pytest.mark.parametrize("enforce", ["global", "component"])
@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_every_reduction_makes_progress_in_a_long_loop(policy: str, enforce: Any) -> None:
    actions = [("reply", 60, 1, [300 + 97 * n % 1_800]) for n in range(70)]
    loop = run(
        actions, limit=8_192, policy=policy, model=scripted(True), subagent=subagent, enforce=enforce,
        cascade=sorted(STEPS),
    )  # fmt: skip
    compressed = loop.sink.of(ContentCompressed)
    rejected = [event for event in compressed if event.outcome != "accepted"]

    assert all(event.tokens_after < event.tokens_before for event in compressed if event.outcome == "accepted")
    assert len(rejected) <= 70
