"""The blocks that the two baselines keep."""

from __future__ import annotations

from windowpane.core.vocabulary import ContentType
from windowpane.core.window.blocks import Block
from windowpane.evaluation.replay import PreparedRecording, ReplaySetup, keep_last, simulate, truncate


def block(number: int, content_type: ContentType, tokens: int = 10, group: str = "") -> Block:
    name = f"b{number}"
    return Block(name, content_type, tokens, number, group or name, 1, name, tokens * 4, "exact", name)


HISTORY = [
    block(0, "system_prompt", 20),
    block(1, "user_message"),
    block(2, "tool_call", 5, "g"),
    block(3, "tool_result", 50, "g"),
    block(4, "assistant_response"),
    block(5, "user_message"),
]


def ids(blocks: list[Block]) -> list[str]:
    return [one.id for one in blocks]


def test_truncation_drops_the_oldest_groups_until_the_rest_fits() -> None:
    assert ids(truncate(HISTORY, 105)) == ids(HISTORY)
    assert ids(truncate(HISTORY, 104)) == ["b0", "b2", "b3", "b4", "b5"]
    assert ids(truncate(HISTORY, 94)) == ["b0", "b4", "b5"]


def test_truncation_keeps_the_newest_group_whatever_its_size() -> None:
    assert ids(truncate(HISTORY, 1)) == ["b0", "b5"]


def test_keep_last_keeps_groups_whatever_their_size() -> None:
    assert ids(keep_last(HISTORY, 3)) == ["b0", "b2", "b3", "b4", "b5"]
    assert ids(keep_last(HISTORY, 2)) == ["b0", "b4", "b5"]
    assert ids(keep_last(HISTORY, 99)) == ids(HISTORY)


def test_truncation_fills_the_window_and_never_overflows_it_here(prepared: PreparedRecording) -> None:
    run = simulate(prepared, ReplaySetup(8_192, "truncate"))
    fits = ReplaySetup(8_192).limits.overflow_tokens

    assert run.measures.overflows == 0
    assert 0.7 * fits < run.measures.peak_tokens <= fits


def test_a_smaller_truncation_sends_less(prepared: PreparedRecording) -> None:
    sent = [
        simulate(prepared, ReplaySetup(8_192, "truncate", truncate_ratio=ratio)).measures.tokens_sent
        for ratio in (0.4, 0.7, 1.0)
    ]

    assert sent == sorted(sent)
    assert sent[0] < sent[-1]


def test_keep_last_overflows_with_large_groups(prepared: PreparedRecording) -> None:
    run = simulate(prepared, ReplaySetup(8_192, "keep_last", keep_groups=20))

    assert run.measures.overflows > 0
    assert run.measures.peak_utilization > 1


def test_a_sliding_baseline_reads_no_cache_once_it_slides(prepared: PreparedRecording) -> None:
    sliding = simulate(prepared, ReplaySetup(8_192, "keep_last", keep_groups=3)).measures
    whole = simulate(prepared, ReplaySetup(1_048_576)).measures

    assert sliding.cached_tokens / sliding.tokens_sent < 0.1
    assert whole.cached_tokens / whole.tokens_sent > 0.9
