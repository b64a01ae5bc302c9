"""Parts of the user's own through the public manager, or none: policy, steps, summarizer, evaluator, stores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import filler, is_valid, manager, sent, talk, tool_turn

from windowpane.core.events import BlocksEvicted, CheckpointSaved, ContentCompressed, FidelityEvaluated
from windowpane.core.limits import WindowLimits
from windowpane.exceptions import ConfigurationError
from windowpane.manager.plans.policies import Policy, policy_named
from windowpane.manager.settings import SAFETY_NET, EngineSettings
from windowpane.manager.step import NOT_DONE, Step
from windowpane.testing import RecordingSink, in_memory_dependencies


def busy(window: Any, turns: int = 14) -> None:
    """Tool turns and talk until the window had to be reduced several times."""
    window.add_user("go")
    for n in range(turns):
        tool_turn(window, n, result=filler(1_500, tag=f"r{n}x"), text=f"Decided plan_{n} because of it.")
        assert is_valid(window)
    for n in range(turns):
        talk(window, f"question {n}", filler(900, tag=f"a{n}x"))
        assert is_valid(window)


def accepted(sink: RecordingSink) -> list[ContentCompressed]:
    return [event for event in sink.of(ContentCompressed) if event.outcome == "accepted"]


def test_a_user_s_policy_decides_what_is_evicted() -> None:
    sink = RecordingSink()
    mine = Policy("mine", {"recency": 1.0, "reference_frequency": 0.5})
    with manager(sink, limit=16_384, policy=mine) as window:
        busy(window)
    evictions = [event for event in sink.of(BlocksEvicted) if event.policy == "mine"]

    assert evictions
    assert all(set(block.terms) <= {"recency", "references"} for event in evictions for block in event.blocks)


def test_every_eviction_reports_the_tokens_a_prompt_cache_has_to_read_again() -> None:
    sink = RecordingSink()
    with manager(sink, limit=16_384, policy="fifo") as window:
        busy(window)
    evictions = [event for event in sink.of(BlocksEvicted) if event.policy == "fifo"]

    assert evictions
    assert all((event.cache_cost_tokens or 0) > 0 for event in evictions)


def test_weights_beside_a_user_s_policy_are_refused() -> None:
    """The manager does not guess which of the two would hold."""
    with pytest.raises(ConfigurationError, match="weights"):
        manager(RecordingSink(), policy=Policy("mine", {"recency": 1.0}), weights={"recency": 1.0})


def test_a_user_s_step_runs_at_its_position() -> None:
    seen: list[int] = []

    def run(engine: Any, limits: Any, levels: Any) -> Any:
        seen.append(engine.used())
        yield from ()
        return NOT_DONE

    mine = Step("evict", lambda engine, levels: engine.used() >= levels.evict, run)
    sink = RecordingSink()
    with manager(sink, limit=16_384, cascade=[mine, "compaction"]) as window:
        busy(window)

    assert seen
    assert {event.strategy for event in accepted(sink)} <= {"compaction", "truncation"}


def test_a_user_s_summarizer_writes_the_summary_without_a_model() -> None:
    def mine(facts: Any, *, max_tokens: int, **_more: Any) -> str:
        return "## What I noted\n" + "\n".join(fact.text for fact in facts)[: max_tokens * 3]

    sink = RecordingSink()
    with manager(sink, limit=16_384, settings=EngineSettings(summarizer=mine), task_goal="Port it") as window:
        busy(window)

        assert "## What I noted\\n" in sent(window)
        assert sent(window).count("Port it") == 1
    assert any(event.strategy == "compaction" for event in accepted(sink))


@pytest.mark.parametrize(
    "without",
    [
        {"policy": None},
        {"summarizer": None},
        {"evaluate": None},
        {"policy": None, "summarizer": None, "evaluate": None},
        {"archive": False},
        {"checkpoint": False},
        {"references": False},
    ],
)
def test_a_disabled_part_is_not_missed(without: dict[str, Any]) -> None:
    sink = RecordingSink()
    with manager(sink, limit=16_384, settings=EngineSettings(**without)) as window:
        busy(window)

        assert window.status().used_tokens <= 16_384
        assert not window._session._logged, "a hook failed"
    if "policy" in without:
        assert {event.policy for event in sink.of(BlocksEvicted)} <= {"superseded"}
    if "summarizer" in without:
        assert not [event for event in accepted(sink) if event.strategy == "compaction"]
    if "evaluate" in without:
        assert sink.of(FidelityEvaluated) == []
    if "checkpoint" in without:
        assert sink.of(CheckpointSaved) == []


@pytest.mark.parametrize("dependency", ["archive", "checkpoints", "environment", "notes"])
def test_a_disabled_store_is_not_missed(dependency: str) -> None:
    sink = RecordingSink()
    with manager(
        sink, limit=16_384, dependencies=replace(in_memory_dependencies(sink), **{dependency: None})
    ) as window:
        busy(window)
        window.task.add_note("worth knowing")

        assert not window._session._logged, "a hook failed"


def test_a_user_s_settings_win_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "windowpane.yaml").write_text(
        "eviction: {policy: lru, protected_types: [memory_injection]}\n"
        "compression:\n  summarization_threshold_tokens: 700\n"
        "  cascade: {0.8: progressive_summarization}\n  background: true\n"
        "budget: {enforce: global, soft_limit_pct: 0.6}\n"
    )
    monkeypatch.setenv("WINDOWPANE_CONFIG", str(tmp_path / "windowpane.yaml"))
    control = EngineSettings(policy=None, cascade=SAFETY_NET, enforce="component", summarize_tokens=900)

    def settings(**options: Any) -> EngineSettings:
        return manager(RecordingSink(), **options)._engine.settings

    found = settings(settings=control)
    assert (found.policy, found.cascade, found.enforce) == (None, SAFETY_NET, "component")
    assert (found.summarize_tokens, found.soft_ratio) == (900, 0.6)
    assert found.protected_types == {"memory_injection"}
    assert len(found.after_turn) == 1
    beside = settings(settings=control, policy="fifo", cascade=["eviction"], enforce="global")
    assert (beside.policy and beside.policy.name, beside.cascade[0], beside.enforce) == (
        "fifo",
        "eviction",
        "global",
    )
    assert settings().policy == policy_named("lru")


def test_a_user_s_settings_combine_with_options_and_not_with_a_preset() -> None:
    control = EngineSettings(
        policy=Policy("mine", {"recency": 1.0}),
        result_tokens=700,
        enforce="component",
        limits_of=lambda limit, source: WindowLimits(limit, source, 1_000, 0),
    )
    with manager(RecordingSink(), settings=control, policy="lru") as window:
        settings, limits = window._engine.settings, window._engine.limits
        assert settings.policy is not None
        assert (settings.policy.name, settings.result_tokens, settings.enforce) == ("lru", 700, "component")
        assert limits is not None
        assert limits.usable_tokens == 99_000
    with pytest.raises(ConfigurationError, match="preset"):
        manager(RecordingSink(), settings=control, preset="cascade")
