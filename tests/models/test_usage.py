"""Usage in the names of its interface: what a count includes differs, and the total shows it."""

from __future__ import annotations

from typing import Any

import pytest

from windowpane.core.events import Usage
from windowpane.models.wire.usage import (
    CHAT,
    CONVERSE,
    GEMINI_CLI,
    LANGFUSE,
    OPENCODE,
    STRANDS,
    UsageReader,
    advised_cost,
    read_iterations,
)

REASONED = {"prompt_tokens": 32, "completion_tokens_details": {"reasoning_tokens": 94}}


@pytest.mark.parametrize(
    ("reader", "report", "usage"),
    [
        (CHAT, {**REASONED, "completion_tokens": 103, "total_tokens": 135}, Usage(32, 103, reasoning_tokens=94)),
        (CHAT, {**REASONED, "completion_tokens": 103}, Usage(32, 103, reasoning_tokens=94)),
        (CHAT, {**REASONED, "completion_tokens": 9, "total_tokens": 135}, Usage(32, 103, reasoning_tokens=94)),
        (CHAT, {"prompt_tokens": 50, "prompt_cache_hit_tokens": 40}, Usage(10, 0, 40)),
        (GEMINI_CLI, {"input": 90, "output": 20, "thoughts": 8}, Usage(90, 28, reasoning_tokens=8)),
        (GEMINI_CLI, {"input": 90, "output": 20, "thoughts": 8, "total": 110}, Usage(90, 20, reasoning_tokens=8)),
        (OPENCODE, {"input": 90, "output": 20, "reasoning": 8, "total": 118}, Usage(90, 28, reasoning_tokens=8)),
        (OPENCODE, {"input": 90, "output": 20, "reasoning": 8}, Usage(90, 20, reasoning_tokens=8)),
        (LANGFUSE, {"input": 10, "input_cached_tokens": 90, "output": 5, "total": 105}, Usage(10, 5, 90)),
        (LANGFUSE, {"input": 100, "input_cached_tokens": 90, "output": 5, "total": 105}, Usage(10, 5, 90)),
        (CONVERSE, {"inputTokens": 80, "outputTokens": 5, "cacheReadInputTokens": 60}, Usage(80, 5, 60)),
        (
            STRANDS,
            {"inputTokens": 80, "outputTokens": 5, "totalTokens": 145, "cacheReadInputTokens": 60},
            Usage(80, 5, 60),
        ),
        (
            STRANDS,
            {"inputTokens": 80, "outputTokens": 5, "totalTokens": 85, "cacheReadInputTokens": 60},
            Usage(20, 5, 60),
        ),
    ],
)
def test_the_total_shows_what_a_count_includes(reader: UsageReader, report: Any, usage: Usage) -> None:
    assert reader.read(report) == usage


@pytest.mark.parametrize("report", [None, {}, {"prompt_tokens": "many"}, {"prompt_tokens": -1}, {"other": 3}])
def test_a_report_without_counts_is_not_usage(report: Any) -> None:
    assert CHAT.read(report) is None


def test_the_zeros_of_a_failed_call_are_not_usage() -> None:
    zeros = {"prompt_tokens": 0, "completion_tokens": 0}

    assert CHAT.read(zeros) == Usage()
    assert CHAT.read_sent(zeros) is None


def test_the_runs_of_an_advisor_are_billed_at_its_price() -> None:
    """Anthropic's usage of a call excludes the models that it consulted, and lists them."""
    advised = {"type": "advisor_message", "model": "claude-opus-4-8", "input_tokens": 800, "output_tokens": 500}
    runs = [{"type": "message", "input_tokens": sent, "output_tokens": 20} for sent in (100, 700)]
    read = read_iterations({"input_tokens": 800, "output_tokens": 40, "iterations": [runs[0], advised, runs[1]]})

    assert read == (700, None, (("claude-opus-4-8", Usage(800, 500)),))
    assert advised_cost(0.25, read.advisors, lambda _model, usage: usage.output_tokens / 1_000) == 0.75
    assert advised_cost(0.25, read.advisors, lambda _model, _usage: None) is None
    assert advised_cost(None, (), lambda _model, _usage: 1.0) is None
