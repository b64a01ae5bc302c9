"""The alert definitions are complete, consistent, and configurable with clear errors."""

from __future__ import annotations

import math

import pytest

from windowpane.alerts.engine import AlertEngine, hysteresis
from windowpane.alerts.rules import MINIMUM_OUTPUT_RATIO, RULES, RULES_BY_NAME, Rule, configured
from windowpane.alerts.summary import firing_summary, value_text
from windowpane.core.limits import SPIKE_MINIMUM_TOKENS, SPIKE_MINIMUM_TURNS, SPIKE_MULTIPLE
from windowpane.exceptions import ConfigurationError

FIRST_SIX = ("utilization", "eviction_rate", "compression_ratio", "burn_rate_spike", "fidelity", "tool_results")

TABLE = """
    utilization         critical at_least 0.90   3 0.03
    eviction_rate       warning  above    5      3 0.5
    compression_ratio   warning  below    2      1 0.2
    burn_rate_spike     info     occurs   -      1 -
    fidelity            warning  below    0.10   1 0.03
    tool_results        warning  above    0.60   3 0.03
    compaction_soon     warning  at_most  14     1 1.4
    red_imminent        critical ahead    1      1 0.1
    overflow            critical occurs   -      1 -
    cannot_compress     critical occurs   -      1 -
    audit_chain_broken  critical occurs   -      1 -
    cost_yellow         info     at_least 0.50   1 0.03
    cost_orange         warning  at_least 0.80   1 0.03
    cost_red            critical at_least 1.00   1 0.03
    quota_nearly_used   warning  at_least 0.90   1 0.03
    quota_used_up       critical at_least 1.00   1 0.03
    output_reserve      critical below    4096   1 409.6
    regret              warning  above    0.10   1 0.03
    rule_lost           warning  occurs   -      1 -
    thrashing           warning  at_least 5      1 0.5
    repeated_calls      warning  occurs   -      1 -
    oscillation         info     at_least 4      1 0.4
    yellow_entered      info     at_least 1      1 0
    window_rolled       info     occurs   -      1 -
    compaction_done     info     occurs   -      1 -
    rot_threshold       info     above    128000 1 12800
"""
"""A second copy on purpose: the rules are compared with it."""
ROWS = [line.split() for line in TABLE.strip().splitlines()]


def test_names_are_unique_and_safe_as_labels() -> None:
    assert len(RULES_BY_NAME) == len(RULES)
    assert all(rule.name.isidentifier() and rule.name.islower() for rule in RULES)
    assert len({rule.runbook for rule in RULES}) == len(RULES)


def test_the_first_six_come_first() -> None:
    assert tuple(rule.name for rule in RULES[:6]) == FIRST_SIX


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_each_rule_is_whole(rule: Rule) -> None:
    assert rule.title
    assert rule.todo.endswith(".")
    assert (rule.threshold is None) == (rule.comparison == "occurs")
    assert rule.kind == "outside" or (rule.kind == "occurrence") == (rule.comparison == "occurs")
    text = firing_summary(rule, 2.0, 3.0, None)
    assert "{" not in text
    assert len(text) < 160


def test_configuration() -> None:
    rules = {
        rule.name: rule for rule in configured({"fidelity": 0.6}, enable=["rot_threshold"], disable=["regret"])
    }

    assert rules["fidelity"].threshold == 0.6
    assert "rot_threshold" in rules
    assert "regret" not in rules
    assert "rot_threshold" not in {rule.name for rule in AlertEngine().rules}


@pytest.mark.parametrize(("name", "problem"), [("fidelty", "unknown alert"), ("overflow", "no threshold")])
def test_a_wrong_setting_is_named(name: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=f"alerts.{name}.*{problem}"):
        configured({name: 1.0})


@pytest.mark.parametrize(
    ("turns", "text"), [(0.0, "now"), (0.4, "within a turn"), (1.2, "in 1 turn"), (2.6, "in 3 turns")]
)
def test_forecasts_as_text(turns: float, text: str) -> None:
    assert value_text(turns, "turns") == text


@pytest.mark.parametrize(("index", "text"), [(-1.0, "green"), (2.0, "orange"), (3.0, "red"), (9.0, "overflow")])
def test_zones_as_text(index: float, text: str) -> None:
    assert value_text(index, "zone") == text


@pytest.mark.parametrize(
    ("name", "threshold"),
    [
        ("utilization", 90.0), ("fidelity", -0.1), ("regret", math.nan), ("eviction_rate", math.inf),
        ("red_imminent", -1.0),
    ],
)  # fmt: skip
def test_a_threshold_that_could_never_be_met_is_refused(name: str, threshold: float) -> None:
    with pytest.raises(ConfigurationError, match=f"alerts.{name}: threshold"):
        configured({name: threshold})


def test_the_table_lists_all_alerts() -> None:
    assert [row[0] for row in ROWS] == [rule.name for rule in RULES]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_an_alert_is_as_in_the_table(row: list[str]) -> None:
    name, severity, comparison, threshold, turns, expected = row
    rule = RULES_BY_NAME[name]

    assert (rule.severity, rule.comparison, rule.sustained_turns) == (severity, comparison, int(turns))
    assert rule.threshold == (None if threshold == "-" else pytest.approx(float(threshold)))
    assert hysteresis(rule) == pytest.approx(0.0 if expected == "-" else float(expected))
    assert rule.enabled is (name != "rot_threshold")


def test_thresholds_that_depend_on_the_window() -> None:
    assert RULES_BY_NAME["utilization"].threshold_from == "red"
    assert RULES_BY_NAME["output_reserve"].threshold_from == "output_reserve"
    assert MINIMUM_OUTPUT_RATIO == 0.25
    assert RULES_BY_NAME["tool_results"].from_zone == "orange"


def test_a_spike_is_the_tracker_s() -> None:
    """More than 3 times the previous turns, after at least 5 turns, and at least 2,000 tokens."""
    assert (SPIKE_MULTIPLE, SPIKE_MINIMUM_TURNS, SPIKE_MINIMUM_TOKENS) == (3.0, 5, 2_000)
