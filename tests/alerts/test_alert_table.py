"""The alerts as they are promised: what fires, at what, for how long, how bad, and when it is over.

Written out a second time on purpose; the definitions are compared with it.
"""

from __future__ import annotations

import pytest

from windowpane.alerts.hysteresis import hysteresis
from windowpane.alerts.rules import MINIMUM_OUTPUT_RATIO, RULES, RULES_BY_NAME, SPIKE_MULTIPLE
from windowpane.core.limits import TrackerSettings

TABLE = """
    utilization         critical at_least 0.90   3 0.03
    eviction_rate       warning  above    5      3 0.5
    compression_ratio   warning  below    2      1 0.2
    burn_rate_spike     warning  occurs   -      1 -
    fidelity            warning  below    0.75   1 0.03
    tool_results        warning  above    0.30   3 0.03
    red_soon            warning  at_most  3      1 0.3
    red_imminent        critical at_most  1      1 0.1
    overflow            critical occurs   -      1 -
    cannot_compress     critical occurs   -      1 -
    audit_chain_broken  critical occurs   -      1 -
    output_reserve      critical below    4096   1 409.6
    regret              warning  above    0.10   1 0.03
    thrashing           warning  at_least 3      1 0.3
    oscillation         info     at_least 4      1 0.4
    estimate_off        info     above    0.10   1 0.03
    yellow_entered      info     at_least 1      1 0
    window_rolled       info     occurs   -      1 -
    compaction_done     info     occurs   -      1 -
    rot_threshold       info     above    128000 1 12800
"""
ROWS = [line.split() for line in TABLE.strip().splitlines()]


def test_there_are_exactly_these() -> None:
    """Nothing is judged that is not promised, and the other way round."""
    assert [row[0] for row in ROWS] == [rule.name for rule in RULES]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_an_alert_is_as_promised(row: list[str]) -> None:
    """Severity, comparison, threshold, turns in a row and hysteresis."""
    name, severity, comparison, threshold, turns, expected = row
    rule = RULES_BY_NAME[name]

    assert (rule.severity, rule.comparison, rule.sustained_turns) == (severity, comparison, int(turns))
    assert rule.threshold == (None if threshold == "-" else pytest.approx(float(threshold)))
    assert hysteresis(rule) == pytest.approx(0.0 if expected == "-" else float(expected))
    assert rule.enabled is (name != "rot_threshold")


def test_what_depends_on_the_window_says_so() -> None:
    """Red is where the zones say, room for an answer at most a quarter, and bloat counts from yellow up."""
    assert RULES_BY_NAME["utilization"].threshold_from == "red"
    assert RULES_BY_NAME["output_reserve"].threshold_from == "output_reserve"
    assert MINIMUM_OUTPUT_RATIO == 0.25
    assert RULES_BY_NAME["tool_results"].from_zone == "yellow"


def test_a_spike_is_what_the_tracker_calls_one() -> None:
    """More than 3 times the turns before, after at least 5 turns, and at least 2,000 tokens."""
    settings = TrackerSettings()

    assert SPIKE_MULTIPLE == settings.spike_multiple == 3.0
    assert (settings.spike_minimum_turns, settings.spike_minimum_tokens) == (5, 2_000)
