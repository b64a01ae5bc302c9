"""Thresholds: when a window is over its limits."""

from __future__ import annotations

from typing import Any

import pytest
from builders import filler, manager

from windowpane.core.events import BlocksEvicted, ContentCompressed
from windowpane.core.limits import WindowLimits
from windowpane.exceptions import ConfigurationError
from windowpane.manager.levels import Levels
from windowpane.manager.status import due
from windowpane.testing import RecordingSink, chat_reply


def zone(used: int, limit: int, output: int = 0) -> str:
    return WindowLimits.of(limit, "given", requested_output_tokens=output).zone_of(used)


def test_the_output_s_room_belongs_to_the_output() -> None:
    """80K are too much for 100K with a large output, 110K are not for 200K with the same."""
    assert zone(80_000, 100_000, 32_000) == "overflow"
    assert zone(110_000, 200_000, 32_000) != "overflow"


def test_cached_input_is_input() -> None:
    """60K fresh, 10K read from and 10K written to the cache are 80K of 100K."""
    sink = RecordingSink()
    with manager(sink, limit=100_000, requested_output_tokens=32_000) as window:
        window.add_user("hello")
        window.on_turn_start()
        reply: dict[str, Any] = {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "text", "text": "ok"}],
            "usage": {
                "input_tokens": 60_000,
                "cache_read_input_tokens": 10_000,
                "cache_creation_input_tokens": 10_000,
                "output_tokens": 1,
            },
        }
        window.on_turn_end(reply)

        assert window.status().used_tokens == 80_001
        assert window.status().zone == "overflow"


@pytest.mark.parametrize(
    ("used", "limit", "over"),
    [
        pytest.param(274_000, 272_000, True, id="above_the_cap"),
        pytest.param(230_000, 272_000, False, id="below_the_cap"),
        pytest.param(198_000, 200_000, True, id="no_room_for_an_answer"),
    ],
)
def test_a_window_is_over_when_the_answer_has_no_room(used: int, limit: int, over: bool) -> None:
    assert (zone(used, limit) == "overflow") is over


def test_a_window_of_unknown_size_is_never_over() -> None:
    sink = RecordingSink()
    with manager(sink, limit=None) as window:
        window.add_user(filler(100_000))
        decision = window.on_turn_start()
        window.on_turn_end(chat_reply("ok", input_tokens=3_000_000))

        assert decision.action == window.on_turn_start().action == "none"
        assert window.status().zone is None


def test_where_reduction_is_switched_off_none_is_made() -> None:
    sink = RecordingSink()
    with manager(sink, limit=100_000, cascade=[]) as window:
        for n in range(9):
            window.add_user(f"question {n}")
            decision = window.on_turn_start()
            window.on_turn_end(chat_reply(filler(10_000, tag=f"a{n}x")))
            assert decision.freed_tokens == 0
        window.add_user("and now?")

        assert window.on_turn_start().freed_tokens == 0
        assert window.status().zone == "red"
    assert sink.of(ContentCompressed) == []
    assert sink.of(BlocksEvicted) == []


@pytest.mark.parametrize(
    ("limit", "shares"),
    [
        pytest.param(100_000, (0.50, 0.75, 0.90), id="50_75_90"),
        pytest.param(20_000, (0.40, 0.65, 0.85), id="small_windows_act_earlier"),
        pytest.param(8_192, (0.40, 0.65, 0.85), id="a_reserve_that_is_a_quarter_acts_earlier_still"),
    ],
)
def test_a_zone_starts_exactly_at_its_threshold(limit: int, shares: tuple[float, float, float]) -> None:
    usable = WindowLimits.of(limit, "given").usable_tokens
    for share, below, name in zip(
        shares, ("green", "yellow", "orange"), ("yellow", "orange", "red"), strict=True
    ):
        at = int(min(share * limit, share / 0.90 * usable))

        assert (zone(at - 1, limit), zone(at, limit)) == (below, name)


@pytest.mark.parametrize(
    ("used", "acts"),
    [
        pytest.param(7_900, True, id="above"),
        pytest.param(5_000, False, id="below"),
        pytest.param(7_500, True, id="exactly"),
        pytest.param(7_499, False, id="just_below"),
    ],
)
def test_at_three_quarters_something_is_done(used: int, acts: bool) -> None:
    limits = WindowLimits(10_000, "given", 500, 500)

    assert (due(used, Levels.of(limits)) == "evict") is acts


@pytest.mark.parametrize(("limit", "output"), [(32_768, 16_000), (65_536, 32_000), (8_192, 4_096)])
def test_input_and_requested_output_stay_within_the_window_for_a_whole_run(limit: int, output: int) -> None:
    sent = []
    with manager(RecordingSink(), limit=limit, requested_output_tokens=output) as window:
        window.add_user("go")
        for turn in range(60):
            window.on_turn_start()
            sent.append(window.status().used_tokens)
            window.on_turn_end(chat_reply(f"turn {turn}", calls=[(f"c{turn}", "read", "{}")]))
            window.on_tool_result("read", filler(limit // 40, tag=f"t{turn}w"), f"c{turn}")

    assert max(sent) > 0.5 * (limit - output)
    assert max(sent) + output <= limit


def test_an_output_as_large_as_the_window_is_refused_when_the_manager_is_made() -> None:
    with pytest.raises(ConfigurationError) as refused:
        manager(RecordingSink(), limit=32_768, requested_output_tokens=32_000)

    assert str(refused.value) == (
        "requested_output_tokens: 32,000 leave no room for messages in a window of 32,768 tokens; "
        "expected at most 30,874"
    )


def test_a_window_learned_too_small_for_the_output_is_managed_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with manager(RecordingSink(), limit=100_000, requested_output_tokens=32_000) as window:
        window.add_user("go")
        window.on_turn_start()
        window.on_overflow("This model's maximum context length is 16384 tokens")

        status = window.status()

    assert (status.limit_tokens, status.output_tokens) == (16_384, 4_096)
    assert "32,000 output tokens do not fit into a window of 16,384" in caplog.text


def test_the_output_that_a_refused_call_requested_is_reserved_from_then_on() -> None:
    with manager(RecordingSink(), limit=32_768) as window:
        window.add_user("go")
        window.on_turn_start()
        window.on_overflow("input length and `max_tokens` exceed context limit: 25000 + 8192 > 32768")

        assert window.status().output_tokens == 8_192


def test_a_preset_reserves_the_requested_output() -> None:
    with manager(RecordingSink(), limit=32_768, preset="cascade", requested_output_tokens=16_000) as window:
        assert window.status().output_tokens == 16_000
