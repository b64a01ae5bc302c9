"""With a preset every key of the configuration is applied, or refused with its path and the reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from builders import manager

from windowpane.agents.managers import ContextWindowManager
from windowpane.config.loading import load_config
from windowpane.config.schema import Budget as BudgetConfig
from windowpane.config.schema import Compression, Config, CrossWindow, Eviction, Pressure
from windowpane.exceptions import ConfigurationError
from windowpane.manager.engine import Engine
from windowpane.manager.presets.ai_sdk_go import ai_sdk_go
from windowpane.manager.presets.registry import PRESETS
from windowpane.testing import RecordingSink, in_memory_dependencies

Configure = Callable[[str], None]
Read = Callable[[Engine], Any]

LIMIT = 100_000
OTHERS = ("baseagent", "picoclaw", "ai_sdk_go")


@pytest.fixture
def configure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Configure:
    """Makes a text the configuration file of this process."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def write(text: str) -> None:
        (tmp_path / "windowpane.yaml").write_text(text)
        monkeypatch.setenv("WINDOWPANE_CONFIG", str(tmp_path / "windowpane.yaml"))

    return write


def engine_of(preset: str, *, limit: int | None = LIMIT, **options: Any) -> Engine:
    with manager(RecordingSink(), limit=limit, preset=preset, **options) as window:
        return window._engine


def budget_of(component: Any) -> Read:
    return lambda engine: engine.budget and engine.budget.budget_tokens(component)


APPLIED: dict[str, tuple[str, Read, Any]] = {
    "max_context_tokens": ("60000", lambda engine: engine.limits and engine.limits.limit_tokens, 60_000),
    "pressure.thresholds": (
        "{yellow: 0.4, orange: 0.6, red: 0.8}",
        lambda engine: engine.limits and engine.limits.thresholds.orange,
        0.6,
    ),
    "pressure.velocity_window": ("3", lambda engine: engine.tracker.settings.velocity_turns, 3),
    "eviction.policy": ("lru", lambda engine: engine.settings.policy and engine.settings.policy.name, "lru"),
    "eviction.weights": (
        "{recency: 1, priority: 0, type_ttl: 0, reference_frequency: 0, semantic_duplication: 0}",
        lambda engine: engine.settings.policy and engine.settings.policy.weights["recency"],
        1.0,
    ),
    "eviction.type_ttl": ("{tool_result: 3}", lambda engine: engine.tracker.settings.lifetimes["tool_result"], 3),
    "eviction.protected_types": (
        "[system_prompt, memory_injection]",
        lambda engine: set(engine.settings.protected_types),
        {"system_prompt", "memory_injection"},
    ),
    "budget.profile": ("code_review", budget_of("tool_results"), 18_000),
    "budget.allocations.tool_results": ("0.10", budget_of("tool_results"), 10_000),
    "budget.allocations.output_reserved": (
        "0.10",
        lambda engine: engine.limits and engine.limits.reserved_tokens,
        10_000,
    ),
    "budget.soft_limit_pct": ("0.6", lambda engine: engine.settings.soft_ratio, 0.6),
    "budget.enforce": ("component", lambda engine: engine.settings.enforce, "component"),
    "cross_window.auto_save_threshold": ("0.95", lambda engine: engine.settings.checkpoint_ratio, 0.95),
}
"""Keys that hold beside every preset: a value, where the engine has it, and what it is there."""

CASCADE_ONLY: dict[str, tuple[str, Read, Any]] = {
    "compression.summarization_threshold_tokens": ("900", lambda engine: engine.settings.summarize_tokens, 900),
    "compression.compaction_utilization_threshold": (
        "0.88",
        lambda engine: engine.levels and engine.levels.compact,
        88_000,
    ),
    "compression.cascade": ("{0.8: subagent_delegation}", lambda engine: len(engine.settings.cascade), 2 + 1 + 3),
    "compression.background": ("true", lambda engine: len(engine.settings.after_turn), 1),
}
FILES = ("compression.notes_file", "cross_window.state_file", "cross_window.progress_file")
"""Keys that name files; they do not depend on a preset, and have a separate test."""


def document(key: str, value: str, **above: Any) -> str:
    nested: Any = yaml.safe_load(value)
    for part in reversed(key.split(".")):
        nested = {part: nested}
    return yaml.safe_dump({**above, **nested})


@pytest.mark.parametrize("preset", list(PRESETS))
@pytest.mark.parametrize("key", list(APPLIED))
def test_a_key_is_applied_beside_every_preset(key: str, preset: str, configure: Configure) -> None:
    value, read, expected = APPLIED[key]
    limit = None if key == "max_context_tokens" else LIMIT
    without = read(engine_of(preset, limit=limit))
    configure(document(key, value, preset=preset))

    found = read(engine_of(None, limit=limit))  # type: ignore[arg-type]  # the file names the preset

    assert found == expected != without


@pytest.mark.parametrize("preset", list(PRESETS))
def test_the_checkpoint_level_follows_the_file_beside_every_preset(preset: str, configure: Configure) -> None:
    own = engine_of(preset).levels
    configure(document("cross_window.auto_save_threshold", "0.95", preset=preset))
    chosen = engine_of(preset).levels

    assert own is not None
    assert chosen is not None
    assert chosen.checkpoint > own.checkpoint


@pytest.mark.parametrize("key", list(CASCADE_ONLY))
def test_the_cascade_takes_the_keys_of_its_strategies(key: str, configure: Configure) -> None:
    value, read, expected = CASCADE_ONLY[key]
    without = read(engine_of("cascade"))
    configure(document(key, value, preset="cascade"))

    assert read(engine_of("cascade")) == expected != without


@pytest.mark.parametrize("preset", OTHERS)
@pytest.mark.parametrize("key", list(CASCADE_ONLY))
def test_what_a_source_decides_itself_is_refused(
    key: str, preset: str, configure: Configure, tmp_path: Path
) -> None:
    configure(document(key, CASCADE_ONLY[key][0], preset=preset))
    if (key, preset) == ("compression.background", "picoclaw"):
        assert engine_of(preset).settings.background is True
        return

    with pytest.raises(ConfigurationError) as error:
        load_config(tmp_path / "windowpane.yaml", environ={})

    assert error.value.path.startswith(str(tmp_path / "windowpane.yaml:"))
    assert error.value.path.endswith(key)
    assert repr(preset) in error.value.problem
    assert PRESETS[preset].fixed[key] in error.value.problem


@pytest.mark.parametrize("preset", OTHERS)
def test_a_preset_given_as_an_argument_meets_the_file_in_the_same_way(preset: str, configure: Configure) -> None:
    configure(document("compression.cascade", "{0.8: subagent_delegation}"))

    assert engine_of("cascade").settings.cascade
    with pytest.raises(ConfigurationError, match=r"compression\.cascade"):
        engine_of(preset)


@pytest.mark.parametrize(
    ("preset", "options"),
    [
        (preset, options)
        for preset in OTHERS
        for options in ({"cascade": ["eviction"]}, {"background": True}, {"embedder": lambda texts: texts})
        if (preset, list(options)) != ("picoclaw", ["background"])
    ],
)
def test_an_argument_that_a_source_has_already_fixed_is_refused(preset: str, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError) as error:
        engine_of(preset, **options)

    assert error.value.path == next(iter(options))
    assert repr(preset) in error.value.problem


def test_the_cascade_takes_the_arguments() -> None:
    def embed(texts: list[str]) -> list[list[float]]:
        return [[1.0] for _ in texts]

    engine = engine_of("cascade", cascade=["eviction", "compaction"], background=True, embedder=embed)

    assert engine.settings.cascade[:2] == ("eviction", "compaction")
    assert len(engine.settings.after_turn) == 1
    assert engine.settings.embed is embed


@pytest.mark.parametrize("preset", OTHERS)
def test_disabling_background_work_is_not_a_conflict(preset: str, configure: Configure) -> None:
    configure(document("compression.background", "false", preset=preset))

    assert engine_of(preset, background=False).settings.background is (preset != "picoclaw")


def test_picoclaw_s_summary_after_a_turn_can_be_waited_for() -> None:
    own = PRESETS["picoclaw"].control.after_turn

    assert engine_of("picoclaw").settings.background is True
    assert engine_of("picoclaw", background=False).settings.background is False
    assert engine_of("picoclaw", background=False).settings.after_turn == own


@pytest.mark.parametrize("preset", OTHERS)
def test_a_preset_that_merges_nothing_refuses_the_policy_that_merges(preset: str, configure: Configure) -> None:
    """`semantic_merge` would do nothing there."""
    configure(document("eviction.policy", "semantic_merge"))

    assert engine_of("cascade").settings.policy.merges  # type: ignore[union-attr]
    with pytest.raises(ConfigurationError, match=r"eviction\.policy"):
        engine_of(preset)


def test_omitted_shares_are_those_of_the_preset(configure: Configure) -> None:
    configure("budget: {profile: default, allocations: {tool_results: 0.10}}")

    assert budget_of("message_history")(engine_of("cascade")) == 65_000
    assert budget_of("message_history")(engine_of("cascade", budget="default")) == 65_000
    assert budget_of("message_history")(engine_of(None)) == 60_000  # type: ignore[arg-type]


def test_an_argument_wins_over_the_file_beside_a_preset(configure: Configure) -> None:
    configure("eviction: {policy: lru}\nbudget: {profile: research, enforce: component}")

    engine = engine_of("cascade", policy="fifo", budget="code_review", enforce="global")

    assert engine.settings.policy is not None
    assert (engine.settings.policy.name, engine.settings.enforce) == ("fifo", "global")
    assert budget_of("tool_results")(engine) == 18_000


def test_chosen_zones_move_the_cascade_s_levels(configure: Configure) -> None:
    configure("pressure: {thresholds: {yellow: 0.4, orange: 0.6, red: 0.8}}")

    levels = engine_of("cascade").levels

    assert levels is not None
    assert (levels.prepare, levels.evict, levels.target, levels.compact) == (40_000, 60_000, 48_000, 80_000)


def test_a_size_learnt_later_is_shared_out_as_configured(configure: Configure) -> None:
    zones = "pressure: {thresholds: {yellow: 0.3, orange: 0.5, red: 0.7}}"
    configure(f"{zones}\nbudget: {{allocations: {{output_reserved: 0.1}}}}")
    sink = RecordingSink()
    with ContextWindowManager(
        agent="a", model="no-such-model", dependencies=in_memory_dependencies(sink)
    ) as window:
        window.add_user("go")
        window.on_turn_start()
        window.on_overflow("This model's maximum context length is 100000 tokens, you requested 120000 tokens")
        limits = window._engine.limits

    assert limits is not None
    assert (limits.limit_tokens, limits.reserved_tokens, limits.orange_tokens) == (100_000, 10_000, 47_222)


def test_every_engine_key_has_a_test() -> None:
    sections = {
        "pressure": Pressure, "eviction": Eviction, "compression": Compression, "budget": BudgetConfig,
        "cross_window": CrossWindow,
    }  # fmt: skip
    known = {".".join(key.split(".")[:2]) for key in (*APPLIED, *CASCADE_ONLY, *FILES)}

    assert known == {f"{name}.{key}" for name, section in sections.items() for key in section.model_fields} | {
        "max_context_tokens"
    }
    assert set(Config.model_fields) >= set(sections)


def test_every_fixed_key_exists() -> None:
    """A preset names keys as the file does, or the argument that has none."""
    known = {*APPLIED, *CASCADE_ONLY, "embedder"}

    for preset in (*PRESETS.values(), ai_sdk_go()):
        assert set(preset.fixed) <= known
