"""The names that settings may choose, and the bounds of their numbers, as plain data.

The configuration is checked against them without loading what they name.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Final, TypedDict

from windowpane.exceptions import ConfigurationError

POLICY_NAMES: Final = ("fifo", "lru", "priority", "type_based", "semantic_merge", "hybrid")
"""Eviction policies."""
HYBRID: Final = "hybrid"
"""The policy whose weights are configured."""
MERGING_POLICIES: Final = frozenset({"semantic_merge"})
"""Policies that merge similar blocks before any is evicted."""

PRESET_NAMES: Final = ("cascade", "baseagent", "picoclaw", "ai_sdk_go")
"""Presets, which manage the window as other systems do."""
FIXED_BY_PRESET: Final[dict[str, dict[str, str]]] = {
    "cascade": {},
    "baseagent": {
        "compression.cascade": "it prunes, then compacts",
        "compression.compaction_utilization_threshold": "choose it with baseagent(auto_compact_threshold=…)",
        "compression.background": "it compacts before a call, never between turns",
        "compression.summarization_threshold_tokens": "choose it with baseagent(max_output_tokens=…)",
        "embedder": "it merges nothing",
    },
    "picoclaw": {
        "compression.cascade": "its three paths are after a turn, before a call, and after an overflow",
        "compression.compaction_utilization_threshold": "choose it with picoclaw(summarize_token_percent=…)",
        "compression.summarization_threshold_tokens": "it summarizes no single result",
        "embedder": "it merges nothing",
    },
    "ai_sdk_go": {
        "compression.cascade": "one strategy acts; choose it with ai_sdk_go(strategy=…)",
        "compression.compaction_utilization_threshold": "choose it with ai_sdk_go(max_token_ratio=…)",
        "compression.background": "it acts before a call, never between turns",
        "compression.summarization_threshold_tokens": "it summarizes no single result",
        "embedder": "it merges nothing",
    },
}
"""Keys that cannot be set together with a preset, each with the reason."""

ALERT_MAXIMA: Final[dict[str, float | None]] = {
    "utilization": 1.0,
    "eviction_rate": math.inf,
    "compression_ratio": math.inf,
    "burn_rate_spike": None,
    "fidelity": 1.0,
    "rule_lost": None,
    "tool_results": 1.0,
    "compaction_soon": math.inf,
    "red_imminent": math.inf,
    "overflow": None,
    "cannot_compress": None,
    "audit_chain_broken": None,
    "cost_yellow": 1.0,
    "cost_orange": 1.0,
    "cost_red": 1.0,
    "quota_nearly_used": 1.0,
    "quota_used_up": 1.0,
    "output_reserve": math.inf,
    "regret": 1.0,
    "thrashing": math.inf,
    "repeated_calls": None,
    "oscillation": math.inf,
    "yellow_entered": math.inf,
    "window_rolled": None,
    "compaction_done": None,
    "rot_threshold": math.inf,
}
"""The highest threshold of each alert; None for an alert without a threshold."""

MINIMUM_REPLICATES: Final = 3
"""Times that a question is put to the judge."""
MAXIMUM_QUESTIONS: Final = 12
"""Questions per compression."""
JUDGE_CAPACITY: Final = 4
"""Compressions that wait for the judge by default; each holds the texts it is judged by."""


class AlertSettings(TypedDict):
    """Changes to the alert rules, as `alerts.rules.configured` takes them."""

    thresholds: Mapping[str, float]
    enable: Iterable[str]
    disable: Iterable[str]


def check_choice(path: str, name: str, choices: Collection[str]) -> str:
    """Return *name*. Raises `ConfigurationError` about *path* unless it is one of *choices*."""
    if name not in choices:
        raise ConfigurationError(path, f"{name!r} is unknown", expected=f"one of {', '.join(choices)}")
    return name


def check_alerts(thresholds: Mapping[str, float], *, names: Iterable[str] = ()) -> None:
    """Check thresholds by alert, and other *names* of alerts.

    Raises `ConfigurationError` for an unknown alert, an alert without a threshold, and a threshold that the
    signal can never reach.
    """
    for name in (*thresholds, *names):
        if name not in ALERT_MAXIMA:
            raise ConfigurationError(f"alerts.{name}", "unknown alert", expected=", ".join(ALERT_MAXIMA))
    for name, threshold in thresholds.items():
        maximum = ALERT_MAXIMA[name]
        if maximum is None:
            raise ConfigurationError(f"alerts.{name}", "this alert has no threshold")
        if not (math.isfinite(threshold) and 0 <= threshold <= maximum):
            expected = "0 or more" if maximum == math.inf else "a ratio between 0 and 1"
            raise ConfigurationError(f"alerts.{name}", f"threshold {threshold:g} is invalid", expected=expected)
