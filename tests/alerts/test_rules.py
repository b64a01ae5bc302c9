"""The alert definitions are complete, consistent, and configurable with clear errors."""

from __future__ import annotations

import math

import pytest

from windowpane.alerts.engine import AlertEngine
from windowpane.alerts.hysteresis import hysteresis
from windowpane.alerts.rules import RULES, RULES_BY_NAME, Rule, configured
from windowpane.alerts.summary import firing_summary, value_text
from windowpane.exceptions import ConfigurationError

FIRST_SIX = ("utilization", "eviction_rate", "compression_ratio", "burn_rate_spike", "fidelity", "tool_results")


def test_names_are_unique_and_safe_as_labels() -> None:
    """A name is one alert, usable as label value and runbook anchor."""
    assert len(RULES_BY_NAME) == len(RULES)
    assert all(rule.name.isidentifier() and rule.name.islower() for rule in RULES)
    assert len({rule.runbook for rule in RULES}) == len(RULES)


def test_the_first_six_come_first() -> None:
    """The six alerts everyone needs lead the table."""
    assert tuple(rule.name for rule in RULES[:6]) == FIRST_SIX


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_each_rule_is_whole(rule: Rule) -> None:
    """Each has a severity, words for a person, a threshold where it compares, and a readable summary."""
    assert rule.title
    assert rule.todo.endswith(".")
    assert (rule.threshold is None) == (rule.comparison == "occurs")
    assert (rule.kind in ("occurrence", "outside")) == (rule.comparison == "occurs")
    text = firing_summary(rule, 2.0, 3.0, None)
    assert "{" not in text
    assert len(text) < 160


@pytest.mark.parametrize(
    ("name", "expected"),
    [("utilization", 0.03), ("tool_results", 0.03), ("eviction_rate", 0.5), ("compression_ratio", 0.2)],
)
def test_hysteresis(name: str, expected: float) -> None:
    """0.03 for ratios, a tenth of the threshold otherwise."""
    assert hysteresis(RULES_BY_NAME[name]) == pytest.approx(expected)


def test_configuration() -> None:
    """Thresholds, on and off are settings; everything else stays."""
    rules = {
        rule.name: rule for rule in configured({"fidelity": 0.6}, enable=["rot_threshold"], disable=["regret"])
    }

    assert rules["fidelity"].threshold == 0.6
    assert "rot_threshold" in rules
    assert "regret" not in rules
    assert "rot_threshold" not in {rule.name for rule in AlertEngine().rules}


@pytest.mark.parametrize(("name", "problem"), [("fidelty", "unknown alert"), ("overflow", "no threshold")])
def test_a_wrong_setting_is_named(name: str, problem: str) -> None:
    """An unknown alert, or a threshold where nothing is compared, is an error that says so."""
    with pytest.raises(ConfigurationError, match=f"alerts.{name}.*{problem}"):
        configured({name: 1.0})


@pytest.mark.parametrize(
    ("turns", "text"), [(0.0, "now"), (0.4, "within a turn"), (1.2, "in 1 turn"), (2.6, "in 3 turns")]
)
def test_turns_in_words(turns: float, text: str) -> None:
    """Forecasts read as a person would say them."""
    assert value_text(turns, "turns") == text


@pytest.mark.parametrize(
    ("name", "threshold"),
    [
        ("utilization", 90.0), ("fidelity", -0.1), ("regret", math.nan), ("eviction_rate", math.inf),
        ("red_soon", -1.0),
    ],
)  # fmt: skip
def test_a_threshold_that_could_never_be_met_is_refused(name: str, threshold: float) -> None:
    """A percentage for a share, a number that is none: an alert must not fall silent by a slip of the pen."""
    with pytest.raises(ConfigurationError, match=f"alerts.{name}: threshold"):
        configured({name: threshold})
