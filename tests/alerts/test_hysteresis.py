"""Alerts resolve only when the value has come back past the threshold by the hysteresis."""

from __future__ import annotations

import pytest

from windowpane.alerts.engine import breaches, has_cleared, hysteresis
from windowpane.alerts.rules import RULES_BY_NAME


@pytest.mark.parametrize(
    ("name", "expected"),
    [("utilization", 0.03), ("tool_results", 0.03), ("eviction_rate", 0.5), ("compression_ratio", 0.2)],
)
def test_the_hysteresis_depends_on_the_unit(name: str, expected: float) -> None:
    """0.03 for ratios, a tenth of the threshold otherwise."""
    assert hysteresis(RULES_BY_NAME[name]) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "threshold", "value", "is_breach", "is_clear"),
    [
        ("utilization", 0.90, 0.90, True, False),
        ("utilization", 0.90, 0.88, False, False),
        ("utilization", 0.90, 0.86, False, True),
        ("eviction_rate", 5.0, 5.0, False, False),
        ("eviction_rate", 5.0, 4.5, False, True),
        ("compaction_soon", 3.0, 3.2, False, False),
        ("compaction_soon", 3.0, 3.4, False, True),
        ("fidelity", 0.75, 0.76, False, False),
        ("fidelity", 0.75, 0.79, False, True),
    ],
)
def test_a_value_within_the_hysteresis_neither_fires_nor_resolves(
    name: str, threshold: float, value: float, is_breach: bool, is_clear: bool
) -> None:
    rule = RULES_BY_NAME[name]

    assert (breaches(rule, value, threshold), has_cleared(rule, value, threshold)) == (is_breach, is_clear)
