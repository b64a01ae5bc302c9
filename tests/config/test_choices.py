"""The names and bounds that settings are checked against are those of the code behind them."""

from __future__ import annotations

import math

from windowpane.alerts.rules import RULES
from windowpane.core.choices import (
    ALERT_MAXIMA,
    FIXED_BY_PRESET,
    MERGING_POLICIES,
    POLICY_NAMES,
    PRESET_NAMES,
)
from windowpane.manager.plans.policies import POLICIES
from windowpane.manager.presets.registry import PRESETS


def test_every_policy_can_be_named() -> None:
    assert tuple(POLICIES) == POLICY_NAMES
    assert {name for name, policy in POLICIES.items() if policy.merges} == MERGING_POLICIES


def test_every_preset_can_be_named_and_fixes_its_keys() -> None:
    assert tuple(PRESETS) == PRESET_NAMES
    assert {name: preset.fixed for name, preset in PRESETS.items()} == FIXED_BY_PRESET


def test_every_alert_has_the_bound_of_its_threshold() -> None:
    bounds = {"ratio": 1.0}

    assert {
        rule.name: None if rule.threshold is None else bounds.get(rule.unit, math.inf) for rule in RULES
    } == ALERT_MAXIMA
