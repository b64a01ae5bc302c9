"""Every alert, declared once as data.

The same definitions drive the engine that judges them, the generated Prometheus rules, the thresholds drawn in
dashboards, and the runbook. A rule says what it judges, how that compares with its threshold, for how long, and
what to tell a person; it never says how to compute the quantity (see `windowpane.alerts.conditions`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from windowpane.core.vocabulary import Severity, Zone
from windowpane.exceptions import ConfigurationError

Kind = Literal["level", "sample", "occurrence", "outside"]
"""`level` is judged on the final pressure of each turn; `sample` whenever a new value arrives; `occurrence` when
something happens, firing until it has not happened for a while; `outside` by callers of `AlertEngine.report`."""

Comparison = Literal["at_least", "above", "at_most", "below", "occurs"]

Unit = Literal["ratio", "tokens", "blocks_per_turn", "turns", "times", "count", "zone"]

ThresholdSource = Literal["red", "output_reserve"]
"""A threshold that depends on the window: where red begins, or the least room an answer needs."""

RATIO_HYSTERESIS: Final = 0.03
SHARE_HYSTERESIS: Final = 0.10
"""Of the threshold, for everything that is not a ratio."""

COMPRESSION_SAMPLES: Final = 3
"""Compressions whose tokens are pooled into the judged compression ratio."""
REGRET_TURNS: Final = 20
CHURN_TURNS: Final = 10
"""Horizon of thrashing and oscillation."""
SPIKE_MULTIPLE: Final = 3.0
"""As the tracker judges a spike by default."""
MINIMUM_OUTPUT_TOKENS: Final = 4_096
MINIMUM_OUTPUT_RATIO: Final = 0.25


@dataclass(frozen=True, slots=True)
class Rule:
    """One alert: what is judged, against what, for how long, and what to tell a person."""

    name: str
    """Stable identity; the value of the `alert` label."""
    title: str
    severity: Severity
    kind: Kind
    judges: str
    """The quantity of a level or sample, the event of an occurrence."""
    comparison: Comparison
    unit: Unit
    what: str
    """One line about a firing; `{value}`, `{threshold}`, `{turns}`, `{used}` and `{limit}` are filled in."""
    todo: str
    """One line on what to do first."""
    threshold: float | None = None
    """None where nothing is compared."""
    threshold_from: ThresholdSource | None = None
    """Where the window itself says the threshold; `threshold` then documents the default."""
    sustained_turns: int = 1
    """Turns in a row the condition must hold before it fires."""
    hold_turns: int = 5
    """Quiet turns after which an occurrence is over."""
    from_zone: Zone | None = None
    """Judged only while the window is in this zone or a worse one."""
    metric: str | None = None
    """The catalog's metric of the quantity."""
    enabled: bool = True

    @property
    def hysteresis(self) -> float:
        """How far the value must come back past the threshold before the alert resolves, in the rule's unit."""
        return self.hysteresis_at(self.threshold)

    def hysteresis_at(self, threshold: float | None) -> float:
        """The hysteresis at a *threshold* that the window gave."""
        if threshold is None or self.unit == "zone":
            return 0.0
        return RATIO_HYSTERESIS if self.unit == "ratio" else SHARE_HYSTERESIS * abs(threshold)

    @property
    def runbook(self) -> str:
        """Anchor of the alert's section in the runbook: its name, so that a label is enough to link to it."""
        return self.name

    def holds(self, value: float, threshold: float) -> bool:
        """Whether *value* is on the wrong side of *threshold*."""
        match self.comparison:
            case "at_least":
                return value >= threshold
            case "above":
                return value > threshold
            case "at_most":
                return value <= threshold
            case "below":
                return value < threshold
            case "occurs":
                return value > 0

    def cleared(self, value: float, threshold: float) -> bool:
        """Whether *value* has come back past *threshold* by the hysteresis."""
        slack = self.hysteresis_at(threshold)
        if self.comparison in ("at_least", "above"):
            return not self.holds(value, threshold - slack)
        return not self.holds(value, threshold + slack)


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "utilization", "Window in red", "critical", "level", "utilization", "at_least", "ratio",
        "utilization {value} ({used} of {limit} tokens), at or above {threshold} for {turns} turns",
        "Compact or roll the window now, or give the agent a larger one.",
        threshold=0.90, threshold_from="red", sustained_turns=3,
        metric="context_window_utilization_ratio",
    ),
    Rule(
        "eviction_rate", "Eviction rate high", "warning", "level", "eviction_rate", "above", "blocks_per_turn",
        "{value} blocks evicted a turn, above {threshold} for {turns} turns",
        "The window is too small for the task: cap tool results or raise the limit.",
        threshold=5.0, sustained_turns=3, metric="context_window_eviction_rate_blocks_per_turn",
    ),
    Rule(
        "compression_ratio", "Compression saves little", "warning", "sample", "compression_ratio", "below",
        "times",
        "the last compressions shrank content by a factor of {value}, below {threshold}",
        "Look at what the summary keeps verbatim; compress older content, or evict instead.",
        threshold=2.0, metric="context_window_compression_ratio",
    ),
    Rule(
        "burn_rate_spike", "Burn rate spike", "warning", "occurrence", "velocity.spiked", "occurs", "tokens",
        "one turn added {value} tokens, more than {threshold}",
        "Find the block that came in; cap that tool's output at ingest.",
        metric="context_window_velocity_spikes_total",
    ),
    Rule(
        "fidelity", "Compression loses facts", "warning", "sample", "fidelity", "below", "ratio",
        "fidelity {value} after a compression, below {threshold}",
        "Open the compression's lost facts; pin what must survive or change the prompt.",
        threshold=0.75, metric="context_window_fidelity_ratio",
    ),
    Rule(
        "tool_results", "Tool results fill the window", "warning", "level", "tool_result_ratio", "above", "ratio",
        "tool results are {value} of the used tokens, above {threshold} for {turns} turns",
        "Cap or summarise tool results; evict those that were never referenced.",
        threshold=0.30, sustained_turns=3, from_zone="yellow", metric="context_window_tool_result_ratio",
    ),
    Rule(
        "red_soon", "Red soon", "warning", "level", "turns_until_red", "at_most", "turns",
        "red {value} ({used} of {limit} tokens)",
        "Plan a compaction within the next turns.",
        threshold=3.0, metric="context_window_turns_until_red",
    ),
    Rule(
        "red_imminent", "Red within one turn", "critical", "level", "turns_until_red", "at_most", "turns",
        "red {value} ({used} of {limit} tokens)",
        "Compact before the next call.",
        threshold=1.0, metric="context_window_turns_until_red",
    ),
    Rule(
        "overflow", "Window overflowed", "critical", "occurrence", "overflow.detected", "occurs", "tokens",
        "{value} tokens did not fit the window of {limit} with room for the reply",
        "See what was reduced and whether the retry went through; lower the compaction threshold.",
        metric="context_window_overflows_total",
    ),
    Rule(
        "cannot_compress", "Cannot compress below the limit", "critical", "occurrence", "reduction.exhausted",
        "occurs", "tokens",
        "reduction made no progress ({used} of {limit} tokens)",
        "Unpin or split what may not be removed, or roll the window with a checkpoint.",
        metric="context_window_overflows_total",
    ),
    Rule(
        "audit_chain_broken", "Audit chain broken", "critical", "outside", "audit_chain", "occurs", "count",
        "the audit chain does not verify",
        "Run the audit verification, keep a copy of the store and find out who wrote to it.",
    ),
    Rule(
        "output_reserve", "No room for an answer", "critical", "level", "room_tokens", "below", "tokens",
        "{value} tokens left for the answer, below {threshold}",
        "Reduce the window before the next call, or its answer is cut off.",
        threshold=float(MINIMUM_OUTPUT_TOKENS), threshold_from="output_reserve",
        metric="context_window_used_tokens",
    ),
    Rule(
        "regret", "Evicted content is needed again", "warning", "level", "regret_ratio", "above", "ratio",
        "{value} of the tokens evicted within 20 turns were needed again, above {threshold}",
        "Protect what comes back: raise its priority or lifetime, or mask instead of dropping.",
        threshold=0.10, metric="context_window_regrets_total",
    ),
    Rule(
        "thrashing", "Reductions follow one another", "warning", "level", "reductions", "at_least", "count",
        "the window was reduced in {value} of the last 10 turns",
        "Lower the reduction target so that each one frees more.",
        threshold=3.0, metric="context_window_compressions_total",
    ),
    Rule(
        "oscillation", "Zones change to and fro", "info", "level", "zone_changes", "at_least", "count",
        "{value} zone changes in the last 10 turns",
        "Widen the hysteresis or lower the reduction target.",
        threshold=4.0, metric="context_window_zone_transitions_total",
    ),
    Rule(
        "estimate_off", "Token estimate off", "info", "level", "estimate_error", "above", "ratio",
        "the token estimate is off by {value}, more than {threshold}",
        "Report usage to the window, or name the model so that the right tokenizer is used.",
        threshold=0.10, metric="context_window_estimate_error_ratio",
    ),
    Rule(
        "yellow_entered", "Yellow entered", "info", "level", "zone", "at_least", "zone",
        "the window entered {value} ({used} of {limit} tokens)",
        "Nothing yet: plan what to evict first.",
        threshold=1.0, metric="context_window_sessions",
    ),
    Rule(
        "window_rolled", "Window rolled", "info", "occurrence", "window.rolled", "occurs", "tokens",
        "a new window began; the one before held {value} tokens",
        "Check that the checkpoint carried goal and constraints over.",
        hold_turns=1, metric="context_window_checkpoints_total",
    ),
    Rule(
        "compaction_done", "Compaction done", "info", "occurrence", "compaction.accepted", "occurs", "tokens",
        "the conversation was compacted; {value} tokens left",
        "Compare before and after, and look at the lost facts.",
        hold_turns=1, metric="context_window_compressions_total",
    ),
    Rule(
        "rot_threshold", "Long context", "info", "level", "used_tokens", "above", "tokens",
        "{value} tokens used, above {threshold}",
        "Attention dilutes in long contexts whatever the limit: compact earlier.",
        threshold=128_000.0, enabled=False, metric="context_window_used_tokens",
    ),
)  # fmt: skip

RULES_BY_NAME: Final[dict[str, Rule]] = {rule.name: rule for rule in RULES}


def configured(
    thresholds: Mapping[str, float] | None = None,
    *,
    enable: Iterable[str] = (),
    disable: Iterable[str] = (),
) -> tuple[Rule, ...]:
    """The enabled rules, with other *thresholds* by alert name.

    A threshold that is set no longer follows the window. Raises `ConfigurationError` for a name that is no alert,
    an alert that compares with nothing, and a threshold that its quantity can never reach.
    """
    rules = dict(RULES_BY_NAME)
    for name, threshold in (thresholds or {}).items():
        rule = _named(rules, name)
        if rule.threshold is None:
            raise ConfigurationError(f"alerts.{name}", "this alert has no threshold")
        most = 1.0 if rule.unit == "ratio" else math.inf
        if not (math.isfinite(threshold) and 0 <= threshold <= most):
            expected = "a share from 0 to 1" if rule.unit == "ratio" else "a number of 0 or more"
            raise ConfigurationError(f"alerts.{name}", f"a threshold of {threshold:g}", expected=expected)
        rules[name] = replace(rule, threshold=float(threshold), threshold_from=None)
    for names, on in ((enable, True), (disable, False)):
        for name in names:
            rules[name] = replace(_named(rules, name), enabled=on)
    return tuple(rule for rule in rules.values() if rule.enabled)


def _named(rules: Mapping[str, Rule], name: str) -> Rule:
    if name not in rules:
        raise ConfigurationError(f"alerts.{name}", "no such alert", expected=", ".join(rules))
    return rules[name]
