"""Fitting a history into a budget by whole turns."""

from __future__ import annotations

from typing import Any

from windowpane.manager.presets.picoclaw import (
    estimate_message_tokens,
    history_budget,
    trim_to_fit,
)

Message = dict[str, Any]


def message(role: str, characters: int = 0, **more: Any) -> Message:
    return {"role": role, "content": "x" * characters, **more}


def exchanges(count: int, characters: int) -> list[Message]:
    return [message(role, characters) for _ in range(count) for role in ("user", "assistant")]


def ten(_message: Any) -> int:
    return 10


def test_the_oldest_turns_are_removed_whole_until_the_rest_fits() -> None:
    """Six messages of 360 characters do not fit 700 tokens; without the oldest turn four remain."""
    history = exchanges(3, 360)
    fitted = trim_to_fit(history, 700)

    assert sum(estimate_message_tokens(message) for message in history) > 700
    assert fitted.messages == history[2:]
    assert fitted.dropped == 2
    assert fitted.fits


def test_the_newest_messages_that_fit_stay() -> None:
    """Of forty messages of ten tokens the newest twenty fit 200."""
    history = [message(role, 5, name=str(n)) for n in range(20) for role in ("user", "assistant")]
    fitted = trim_to_fit(history, 200, estimate=ten)

    assert fitted.messages == history[20:]
    assert fitted.fits


def test_the_turn_under_way_stays_whole_though_it_is_too_large() -> None:
    """A latest tool turn of 215 tokens against a budget of 210: everything older is removed, nothing of it."""
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    active = [
        message("user", 5, tokens=5),
        message("assistant", 0, tool_calls=[call], tokens=10),
        message("tool", 500, tool_call_id="1", tokens=200),
    ]
    history = [message("user", 5, tokens=5), message("assistant", 5, tokens=5), *active]
    fitted = trim_to_fit(history, 210, estimate=lambda message: int(message["tokens"]))

    assert fitted.messages == active
    assert not fitted.fits


def test_a_history_that_fits_is_unchanged() -> None:
    history = [*exchanges(2, 5), message("user", 5)]
    fitted = trim_to_fit(history, 100, estimate=ten)

    assert fitted.messages == history
    assert fitted.dropped == 0


def test_the_budget_is_the_window_without_the_output() -> None:
    """A window of 5,000 with 2,000 for output has 3,000; system prompt, summary and tools come off too."""
    assert history_budget(5_000, max_tokens=2_000) == 3_000
    assert (
        history_budget(5_000, system_tokens=500, summary_tokens=300, tool_tokens=200, max_tokens=2_000) == 2_000
    )
    assert history_budget(1_000, max_tokens=2_000) == 0
