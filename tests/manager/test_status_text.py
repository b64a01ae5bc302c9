"""The status as text is a sentence for every value."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders import manager

from windowpane.manager.status import Status
from windowpane.testing import RecordingSink


def first_status() -> Status:
    """The status at the start of a first turn."""
    window = manager(RecordingSink())
    window.add_user("Read every file")
    return window.on_turn_start().status


@pytest.mark.parametrize(
    ("turns", "said"),
    [
        (4.2, "About 4 turns until it is nearly full."),
        (1.1, "About 1 turn until it is nearly full."),
        (0.2, "It is nearly full."),
        (0.0, "It is nearly full."),
    ],
)
def test_the_forecast_is_grammatical(turns: float, said: str) -> None:
    status = replace(first_status(), turns_until_red=turns)

    assert str(status).endswith(f"window 1. {said}")


def test_before_the_first_measurement_the_size_is_reported() -> None:
    window = manager(RecordingSink(), limit=32_768)

    assert str(window.status()) == "Context window: 0 of 32,768 tokens used, not measured yet, turn 0."
    assert "size unknown" in str(manager(RecordingSink(), limit=None).status())


def test_the_full_status_is_available_at_any_time() -> None:
    with manager(RecordingSink(), limit=100_000) as window:
        window.add_memory("abc " * 1_000)
        window.task.plan("one", "two")
        window.task.start("one")
        before = window.status()
        window._engine.reduction.breaker.open = True
        stopped = window.status()
    after = window.status()

    assert (before.limit_tokens, before.utilization, before.breaker_open) == (100_000, None, False)
    assert stopped.breaker_open
    assert after.used_tokens == before.used_tokens == before.components["memory_injection"].used_tokens
    assert before.components["memory_injection"].utilization == before.used_tokens / 8_000
    assert before.subtasks == after.subtasks == {"one": "in_progress", "two": "planned"}


@pytest.mark.parametrize("turns", [None, float("inf"), 80.0])
def test_a_distant_forecast_is_omitted(turns: float | None) -> None:
    status = replace(first_status(), turns_until_red=turns)

    assert str(status).endswith("window 1.")
