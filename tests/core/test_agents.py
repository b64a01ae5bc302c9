"""The window and the level of known agents by model and release: measured ones, and those of recordings."""

from __future__ import annotations

import pytest

from windowpane.core.agents import (
    CLAUDE_CODE,
    CODEX,
    AgentProgram,
    documented_compaction_tokens,
    window_of,
)
from windowpane.core.limits import WindowLimits
from windowpane.models.catalog import packaged_catalog


@pytest.mark.parametrize(
    ("model", "version", "tokens"),
    [
        ("claude-opus-4-6", "2.1.37", 200_000),
        ("claude-opus-4-6", "2.1.232", 1_000_000),
        ("claude-opus-4-6", "2.1.332", 200_000),
        ("claude-opus-4-6[1m]", "2.1.332", 1_000_000),
        ("claude-opus-4-7", "2.1.100", 200_000),
        ("claude-opus-4-7", "2.1.332", 1_000_000),
        ("claude-sonnet-4-6", "2.1.332", 200_000),
        ("claude-opus-5", "2.1.217", 1_000_000),
        ("claude-opus-5-5", "2.1.332", 1_000_000),
        ("claude-sonnet-5", "2.1.205", 1_000_000),
        ("claude-haiku-4-5", "2.1.332", 200_000),
    ],
)
def test_claude_code_runs_a_model_in_the_window_of_its_release(model: str, version: str, tokens: int) -> None:
    window = window_of(packaged_catalog(), model, CLAUDE_CODE, version)

    assert window is not None
    assert window[0] == tokens


def test_other_agents_have_the_larger_window() -> None:
    assert window_of(packaged_catalog(), "claude-sonnet-4-6", "reviewer") == (1_000_000, "assumed")


def test_codex_has_its_own_size_for_models_that_are_sold_with_more() -> None:
    assert window_of(packaged_catalog(), "gpt-6-astra", CODEX) == (258_400, "assumed")
    assert window_of(packaged_catalog(), "gpt-4o", CODEX) == (128_000, "catalogue")


@pytest.mark.parametrize(
    ("version", "limit", "level"),
    [
        ("2.1.37", 200_000, 167_000),
        ("2.1.219", 1_000_000, 1_000_000),
        ("2.1.332", 200_000, 167_000),
        ("2.1.332", 1_000_000, 967_000),
    ],
)
def test_claude_code_compacts_at_the_level_of_its_release(version: str, limit: int, level: int) -> None:
    program = AgentProgram(CLAUDE_CODE, version)

    assert documented_compaction_tokens(program, WindowLimits.of(limit, "assumed")) == level


@pytest.mark.parametrize(
    ("model", "version", "limit", "level"),
    [
        ("claude-haiku-4-5-20251001", "2.1.332", 200_000, 200_000),
        ("claude-haiku-4-5-20251001", "2.1.237", 200_000, 167_000),
        ("claude-opus-4-6", "2.1.332", 200_000, 167_000),
        ("claude-opus-4-6", "2.1.332", 1_000_000, 1_000_000),
        ("claude-opus-5", "2.1.332", 1_000_000, 967_000),
    ],
)
def test_some_models_are_compacted_only_after_a_refusal(model: str, version: str, limit: int, level: int) -> None:
    program = AgentProgram(CLAUDE_CODE, version, model=model)

    assert documented_compaction_tokens(program, WindowLimits.of(limit, "assumed")) == level
