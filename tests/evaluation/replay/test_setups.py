"""Setups of a replay: what fits, which content they read, and how thresholds are written."""

from __future__ import annotations

from windowpane.core.limits import Thresholds
from windowpane.evaluation.replay import ReplaySetup, parse_thresholds


def test_a_preset_with_a_smaller_output_reserve_may_send_more() -> None:
    """A preset with a larger reserve is still measured by the default one."""
    usual = ReplaySetup(32_768).fitting_tokens

    assert usual == 32_768 - 4_096
    assert ReplaySetup(32_768, preset="ai_sdk_go").fitting_tokens == 32_768
    assert ReplaySetup(32_768, preset="picoclaw").fitting_tokens == usual


def test_presets_and_most_policies_read_content_and_baselines_do_not() -> None:
    assert ReplaySetup(8_192, preset="cascade").reads_content
    assert ReplaySetup(8_192, policy="hybrid").reads_content
    assert not ReplaySetup(8_192, policy="fifo").reads_content
    assert not ReplaySetup(8_192, "truncate").reads_content


def test_a_single_threshold_is_where_eviction_starts() -> None:
    assert parse_thresholds("0.6") == Thresholds(0.4, 0.6, 0.9)
    assert parse_thresholds("0.9") == Thresholds(0.6, 0.9, 0.95)
