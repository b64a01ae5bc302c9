"""Comparison of a value with a rule's threshold, and the hysteresis that keeps an alert from flapping.

An alert fires when its value is on the wrong side of the threshold. It resolves when the value has come back past
the threshold by the hysteresis: 0.03 for ratios, a tenth of the threshold for other units, nothing for zones.
"""

from __future__ import annotations

from typing import Final

from windowpane.alerts.rules import Rule

RATIO_HYSTERESIS: Final = 0.03
SHARE_HYSTERESIS: Final = 0.10
"""Share of the threshold, for all units except ratios."""


def hysteresis(rule: Rule, threshold: float | None = None) -> float:
    """Return how far a value must come back past *threshold* (default: the rule's) to resolve the alert."""
    threshold = rule.threshold if threshold is None else threshold
    if threshold is None or rule.unit == "zone":
        return 0.0
    return RATIO_HYSTERESIS if rule.unit == "ratio" else SHARE_HYSTERESIS * abs(threshold)


def breaches(rule: Rule, value: float, threshold: float) -> bool:
    """Return whether *value* is on the wrong side of *threshold*."""
    match rule.comparison:
        case "at_least":
            return value >= threshold
        case "above":
            return value > threshold
        case "at_most":
            return value <= threshold
        case "ahead":
            return 0 < value <= threshold
        case "below":
            return value < threshold
        case "occurs":
            return value > 0


def has_cleared(rule: Rule, value: float, threshold: float) -> bool:
    """Return whether *value* has come back past *threshold* by the hysteresis."""
    margin = hysteresis(rule, threshold)
    if rule.comparison == "ahead":
        return value > threshold + margin  # what has come did not go away
    resolving = threshold - margin if rule.comparison in ("at_least", "above") else threshold + margin
    return not breaches(rule, value, resolving)
