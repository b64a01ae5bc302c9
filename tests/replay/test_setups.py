"""A setup of a replay: what fits under it, what it reads, and how people name thresholds."""

from __future__ import annotations

from windowpane.core.limits import Thresholds
from windowpane.replay import ReplaySetup, parse_thresholds


def test_a_preset_that_keeps_less_for_output_may_send_more() -> None:
    """One that keeps more is still measured by the usual reserve."""
    usual = ReplaySetup(32_768).fitting_tokens

    assert usual == 32_768 - 4_096
    assert ReplaySetup(32_768, preset="ai_sdk_go").fitting_tokens == 32_768
    assert ReplaySetup(32_768, preset="picoclaw").fitting_tokens == usual


def test_presets_and_most_policies_read_content_and_baselines_do_not() -> None:
    """A recording without texts can only be replayed under what needs none."""
    assert ReplaySetup(8_192, preset="cascade").reads_content
    assert ReplaySetup(8_192, policy="hybrid").reads_content
    assert not ReplaySetup(8_192, policy="fifo").reads_content
    assert not ReplaySetup(8_192, "truncate").reads_content


def test_one_threshold_is_where_eviction_begins() -> None:
    """Yellow keeps its proportion; red stays as usual, or goes half way to the limit above it."""
    assert parse_thresholds("0.6") == Thresholds(0.4, 0.6, 0.9)
    assert parse_thresholds("0.9") == Thresholds(0.6, 0.9, 0.95)
