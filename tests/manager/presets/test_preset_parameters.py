"""The presets' numbers at their edges, as their sources state them."""

from __future__ import annotations

from windowpane.manager.presets.ai_sdk_go import SlidingWindow, Summarize, ai_sdk_go
from windowpane.manager.presets.baseagent import BaseAgentSettings
from windowpane.manager.presets.picoclaw import picoclaw


def test_picoclaw_counts_media_flat_and_keeps_a_quarter_for_output() -> None:
    assert picoclaw().control.image_tokens == 256
    assert picoclaw().limits(32_768, "given").reserved_tokens == 8_192
    assert picoclaw().limits(32_768, "given", requested_output_tokens=1_000).reserved_tokens == 1_000
    assert picoclaw().limits(1_000, "given", requested_output_tokens=5_000).usable_tokens == 1


def test_ai_sdk_go_s_strategies_have_the_source_s_defaults() -> None:
    limits = ai_sdk_go().limits(40_000, "given")

    assert (SlidingWindow().messages, Summarize().keep) == (20, 10)
    assert limits.reserved_tokens == 0
    assert ai_sdk_go().control.levels_of(limits, 0.85).evict == 34_000
    assert ai_sdk_go(max_token_ratio=0.80).control.levels_of(limits, 0.85).evict == 32_000


def test_baseagent_keeps_the_same_share_of_a_smaller_window_and_the_same_number_of_a_larger_one() -> None:
    """32,000 of 200,000, 40,000 protected, 20,000 at least; beyond that size nothing grows."""
    numbers = BaseAgentSettings()
    reserved, pruning = {}, {}
    for limit in (100_000, 200_000, 1_000_000):
        limits = numbers.window(limit, "given")
        reserved[limit] = limits.reserved_tokens
        pruning[limit] = (numbers.pruning_of(limits).protect_tokens, numbers.pruning_of(limits).minimum_tokens)

    assert reserved == {100_000: 16_000, 200_000: 32_000, 1_000_000: 32_000}
    assert pruning == {100_000: (20_000, 10_000), 200_000: (40_000, 20_000), 1_000_000: (40_000, 20_000)}
    assert numbers.window(200_000, "given", 8_000).reserved_tokens == 8_000
