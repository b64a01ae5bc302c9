"""Engine settings from arguments and from the file, and their precedence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import manager

from windowpane.agents.managers import ContextWindowManager
from windowpane.config.loading import load_config
from windowpane.core.limits import Thresholds
from windowpane.exceptions import ConfigurationError
from windowpane.fidelity.judge.sampling import SampledJudge
from windowpane.manager.engine import Engine
from windowpane.manager.presets.registry import PRESETS
from windowpane.manager.settings import SAFETY_NET
from windowpane.testing import RecordingSink, in_memory_dependencies

Configure = Callable[[str], Path]


@pytest.fixture
def configure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Configure:
    """Writes the configuration file that managers read."""

    def write(text: str) -> Path:
        path = tmp_path / "windowpane.yaml"
        path.write_text(text)
        monkeypatch.setenv("WINDOWPANE_CONFIG", str(path))
        return path

    return write


def engine_of(**options: Any) -> Engine:
    return manager(RecordingSink(), **options)._engine


def test_zones_given_as_an_argument_win_over_the_file(configure: Configure) -> None:
    """As every argument does."""
    configure("pressure: {thresholds: {yellow: 0.3, orange: 0.5, red: 0.7}}")
    given, read = engine_of(thresholds=Thresholds(0.4, 0.6, 0.8)).limits, engine_of().limits

    assert given is not None
    assert read is not None
    assert (given.thresholds.orange, read.thresholds.orange) == (0.6, 0.5)


def test_a_size_given_as_an_argument_wins_over_the_file(configure: Configure) -> None:
    configure("max_context_tokens: 50000")
    limits = [engine_of(limit=limit).limits for limit in (None, 60_000)]
    configure("")

    assert [one and one.limit_tokens for one in limits] == [50_000, 60_000]
    assert engine_of(limit=None).limits is None


def test_an_agent_without_a_name_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="agent: must not be empty"):
        ContextWindowManager(agent="", model="m", dependencies=in_memory_dependencies(RecordingSink()))


def test_the_requested_output_is_reserved(configure: Configure) -> None:
    configure("budget: {allocations: {output_reserved: 0.10}}")
    limits = [engine_of(requested_output_tokens=tokens).limits for tokens in (0, 8_000, 20_000)]

    assert [one and one.reserved_tokens for one in limits] == [10_000, 10_000, 20_000]


def test_the_steps_that_make_a_call_possible_come_last_and_once() -> None:
    cascade = engine_of(cascade=["truncation", "eviction", "hard_eviction"]).settings.cascade

    assert cascade == ("eviction", *SAFETY_NET)


def test_each_weight_of_the_file_is_the_term_it_names(configure: Configure) -> None:
    configure(
        "eviction: {weights: {recency: 0.1, priority: 0.15, type_ttl: 0.2, reference_frequency: 0.25,"
        " semantic_duplication: 0.3}}"
    )
    policy = engine_of().settings.policy

    assert policy is not None
    assert policy.weights == {
        "recency": 0.1, "priority": 0.15, "type_ttl": 0.2, "reference_frequency": 0.25,
        "semantic_duplication": 0.3,
    }  # fmt: skip


def test_a_level_at_the_start_of_reductions_is_accepted(configure: Configure) -> None:
    config = load_config(
        configure(
            "cross_window: {auto_save_threshold: 0.75}\ncompression: {compaction_utilization_threshold: 0.75}"
        ),
        environ={},
    )

    assert config.cross_window.auto_save_threshold == 0.75


def test_an_argument_s_preset_and_judge_win_over_the_file_s(configure: Configure) -> None:
    configure(
        "preset: baseagent\nhealth_monitoring: {judge: {model: windowpane.evaluation.suite.judges:string_match}}"
    )
    own = SampledJudge(lambda _system, _user: "yes")
    dependencies = replace(in_memory_dependencies(RecordingSink()), judge=own)

    assert engine_of(limit=200_000).limits == PRESETS["baseagent"].limits(200_000, "given")
    assert engine_of(limit=200_000, preset="cascade").limits == PRESETS["cascade"].limits(200_000, "given")
    assert manager(RecordingSink(), dependencies=dependencies)._session.dependencies.judge is own
    read = manager(RecordingSink())._session.dependencies.judge
    assert read is not None
    assert read.name == "string-match (no model)"


def test_a_share_beside_a_profile_differs_from_it(configure: Configure) -> None:
    configure("budget: {profile: research, allocations: {tool_results: 0.10}}")
    with manager(RecordingSink()) as window:
        parts = window.status().components

    assert (parts["tool_results"].budget_tokens, parts["memory_injection"].budget_tokens) == (10_000, 15_000)


def test_an_empty_variable_and_a_home_folder_are_understood(
    configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = configure("pressure: {velocity_window: 7}")
    monkeypatch.setenv("HOME", str(file.parent))
    environ = {"WINDOWPANE_CONFIG": "~/windowpane.yaml", "WINDOWPANE_PRESSURE__VELOCITY_WINDOW": ""}

    assert load_config(environ=environ).pressure.velocity_window == 7
