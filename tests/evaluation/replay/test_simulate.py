"""One recorded session under one setup: its measures, and that they are reproducible."""

from __future__ import annotations

from typing import Any

import pytest

from windowpane.config.layers import Layers
from windowpane.config.loading import validated
from windowpane.config.schema import Config
from windowpane.core.limits import Thresholds
from windowpane.evaluation.replay import (
    JoinedSource,
    PreparedRecording,
    ReplaySetup,
    combine_setups,
    parse_thresholds,
    parse_window,
    simulate,
)
from windowpane.evaluation.replay.history import find_needs
from windowpane.evaluation.replay.setups import preset_names
from windowpane.exceptions import ConfigurationError
from windowpane.manager.plans.policies import POLICIES

WriteLoop = Any


def test_nothing_is_removed_from_a_large_enough_window(prepared: PreparedRecording) -> None:
    runs = [simulate(prepared, setup) for setup in combine_setups(limits=[1_000_000], policies=["all"])]
    truncated = simulate(prepared, ReplaySetup(1_000_000, "truncate"))

    assert {run.measures.tokens_sent for run in runs} == {truncated.measures.tokens_sent}
    assert all(run.measures.removed_tokens == run.measures.regrets == 0 for run in runs)
    assert all(run.measures.fidelity is None for run in runs)


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_a_small_window_is_managed(prepared: PreparedRecording, policy: str) -> None:
    run = simulate(prepared, ReplaySetup(8_192, policy=policy))
    measures = run.measures

    assert measures.overflows == 0
    assert measures.turns == len(run.timeline) == 41
    assert measures.tokens_sent == sum(run.timeline)
    assert measures.peak_tokens == max(run.timeline) <= 8_192
    assert measures.evicted_blocks + measures.compressions > 0
    assert measures.removed_tokens > 0
    assert measures.cached_tokens < measures.tokens_sent


def test_the_same_recording_gives_the_same_run(write_loop: WriteLoop) -> None:
    source = write_loop(30)
    first = [
        simulate(PreparedRecording(source.load()), setup)
        for setup in (ReplaySetup(8_192), ReplaySetup(8_192, "keep_last"))
    ]
    shared = PreparedRecording(source.load())
    simulate(shared, ReplaySetup(16_384, policy="fifo"))
    again = [simulate(shared, setup) for setup in (ReplaySetup(8_192), ReplaySetup(8_192, "keep_last"))]

    assert first == again


def test_content_fetched_again_soon_is_regretted_once(write_loop: WriteLoop) -> None:
    prepared = PreparedRecording(write_loop(30, again=20).load())
    run = simulate(prepared, ReplaySetup(8_192, "truncate"))

    assert run.measures.regrets_by_match.get("call") == 1
    assert "digest" not in run.measures.regrets_by_match


def test_content_fetched_again_much_later_is_not_regretted(write_loop: WriteLoop) -> None:
    prepared = PreparedRecording(write_loop(60, again=2).load())
    run = simulate(prepared, ReplaySetup(8_192, "truncate"))

    assert run.measures.regrets == 0


def test_visible_content_is_not_regretted(write_loop: WriteLoop) -> None:
    prepared = PreparedRecording(write_loop(10, again=2).load())

    assert any(need.match == "call" for needs in prepared.needs for need in needs.used)
    assert simulate(prepared, ReplaySetup(1_000_000)).measures.regrets == 0


def test_needs_come_from_the_recording_alone(write_loop: WriteLoop) -> None:
    source = write_loop(12, again=3)
    one, other = PreparedRecording(source.load()), PreparedRecording(source.load())

    assert find_needs(one.history) == find_needs(other.history)


def test_joined_sessions_are_one_conversation(write_loop: WriteLoop) -> None:
    parts = (write_loop(5, name="a.json"), write_loop(6, name="b.json"))
    joined = PreparedRecording(JoinedSource("joined: a, b", parts).load())
    calls = joined.history.calls

    assert len(calls) == 6 + 7
    assert len({call.span.window_id for call in calls}) == 1
    kinds = [block.content_type for block in calls[-1].history]
    assert kinds.count("system_prompt") == 1
    assert kinds.count("tool_result") == 11


def test_setups_of_every_policy_and_baseline_have_their_own_labels() -> None:
    setups = combine_setups(
        limits=[8_192, 200_000],
        policies=["all"],
        thresholds=[None, Thresholds(0.4, 0.6, 0.8)],
        baselines=True,
        keep_groups=(5, 9),
    )
    labels = [setup.label for setup in setups]

    assert len(setups) == 2 * (2 * len(POLICIES) + 3)
    assert len(set(labels)) == len(labels)
    assert "hybrid, 8k" in labels
    assert "keep last 9, 200k" in labels


def test_the_configuration_of_a_run_can_be_used_as_it_is(tmp_path: Any) -> None:
    setup = ReplaySetup(16_384, policy="lru", thresholds=Thresholds(0.4, 0.6, 0.8))
    file = tmp_path / "windowpane.yaml"
    file.write_text(setup.as_yaml(), encoding="utf-8")
    config = validated(Config, Layers.read(file, environ={}))

    assert config.max_context_tokens == 16_384
    assert config.eviction.policy == "lru"
    assert config.thresholds() == setup.thresholds
    assert ReplaySetup(8_192, "truncate").as_yaml().startswith("#")


@pytest.mark.parametrize("preset", preset_names())
def test_a_preset_manages_by_its_own_numbers(prepared: PreparedRecording, tmp_path: Any, preset: str) -> None:
    """It reduces the window, is measured by the model's tokenizer, and its configuration is accepted."""
    setup = ReplaySetup(16_384, preset=preset)
    run = simulate(prepared, setup)
    file = tmp_path / "windowpane.yaml"
    file.write_text(setup.as_yaml(), encoding="utf-8")
    config = validated(Config, Layers.read(file, environ={}))

    assert run.measures.removed_tokens > 0
    assert run.measures.tokens_sent < simulate(prepared, ReplaySetup(1_000_000)).measures.tokens_sent
    assert run == simulate(prepared, setup)
    assert preset in setup.as_yaml()
    assert config.max_context_tokens == 16_384


def test_windows_and_thresholds_are_parsed_as_people_write_them() -> None:
    """`k` is 1,024 for powers of two, as window sizes are usually given."""
    assert [parse_window(text) for text in ("8k", "200k", "128K", "1m", "32_000")] == [
        8_192, 200_000, 131_072, 1_000_000, 32_000
    ]  # fmt: skip
    assert parse_thresholds("0.5/0.7/0.9") == Thresholds(0.5, 0.7, 0.9)
    assert parse_thresholds("0.75") == Thresholds()


@pytest.mark.parametrize("wrong", ["0.9/0.5", "0.9/0.7/0.5", "x", "1.5", ""])
def test_an_invalid_threshold_is_rejected(wrong: str) -> None:
    with pytest.raises(ConfigurationError, match=r"threshold: .* expected"):
        parse_thresholds(wrong)


@pytest.mark.parametrize(
    "options",
    [
        {"limit_tokens": 10},
        {"policy": "none"},
        {"preset": "no such"},
        {"kind": "truncate", "truncate_ratio": 0.0},
        {"kind": "keep_last", "keep_groups": 0},
    ],
)
def test_an_invalid_setup_is_rejected(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        ReplaySetup(**{"limit_tokens": 8_192, **options})


def test_a_name_in_a_summary_counts_only_by_the_milder_reading(write_loop: WriteLoop) -> None:
    prepared = PreparedRecording(write_loop(30, again=20).load())
    managed = simulate(prepared, ReplaySetup(8_192)).measures
    truncated = simulate(prepared, ReplaySetup(8_192, "truncate")).measures

    assert managed.regret_ratio is not None
    assert managed.regret_ratio_unsummarized is not None
    assert managed.regret_ratio_unsummarized >= managed.regret_ratio
    assert truncated.regret_ratio_unsummarized == truncated.regret_ratio


def test_argument_names_are_not_needs(write_loop: WriteLoop) -> None:
    prepared = PreparedRecording(write_loop(5, again=2).load())

    assert not any("part" in need.names for needs in prepared.needs for need in needs.used)


def test_content_that_cannot_fit_is_not_a_regret(write_loop: WriteLoop) -> None:
    prepared = PreparedRecording(write_loop(6, words=12_000, again=1).load())
    measures = simulate(prepared, ReplaySetup(8_192)).measures

    assert measures.regrets == 0
    assert measures.regret_ratio == 0
    assert measures.regret_ratio_with_oversized is not None
    assert measures.regret_ratio_with_oversized > 0
