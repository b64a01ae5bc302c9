"""The alert rules, declared once as data.

The same definitions drive the engine that evaluates them, the generated Prometheus rules, the thresholds drawn in
dashboards, and the runbook. A rule has its signal, threshold, duration and messages;
`windowpane.alerts.conditions` computes the signals, `windowpane.alerts.engine` compares them with the
threshold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from windowpane.core.choices import check_alerts
from windowpane.core.vocabulary import Severity, Zone
from windowpane.core.zones import MINIMUM_OUTPUT_TOKENS

Kind = Literal["level", "sample", "occurrence", "outside"]
"""The time of evaluation: `level` on the final pressure of each turn; `sample` whenever a new value arrives;
`occurrence` on an event, firing until it has not happened for some turns; `outside` by `AlertEngine.report`."""

Comparison = Literal["at_least", "above", "at_most", "below", "ahead", "occurs"]
"""`ahead`: above 0 and at most the threshold, for a forecast of what has not come yet."""

Nature = Literal["degradation", "anomaly"]
"""`degradation`: the window is short of room, or its content suffers; `anomaly`: the agent, or what observes it,
does something unusual, however much room there is."""

Unit = Literal["ratio", "tokens", "blocks_per_turn", "turns", "times", "count", "zone"]

ThresholdSource = Literal["red", "output_reserve", "usual_fidelity"]
"""A threshold that depends on the window, the red threshold or the minimum room for an answer; or on the agent:
half of the median fidelity of its earlier compressions."""

NO_ROOM: Final = ("output_reserve", "overflow", "cannot_compress")
"""Alerts that are more severe than red: the next call or its answer does not fit."""
COMPRESSION_SAMPLES: Final = 3
"""Number of compressions whose tokens are pooled into the compression ratio."""
COMPACTION_TURNS: Final = 14
"""Turns before the agent's own compaction from which on it is announced."""
CHURN_TURNS: Final = 10
"""Turns that thrashing and oscillation look back."""
EVICTING_TURNS: Final = 2
"""Turns with evictions, of the last 20, from which on evictions have a rate: an agent that clears its old tool
results at once does so in one."""
MINIMUM_OUTPUT_RATIO: Final = 0.25
FIDELITY_FLOOR: Final = 0.10
"""Threshold of fidelity until an agent has a baseline; recorded summaries of coding agents score above it."""
LOOP_TURNS: Final = 10
LOOP_REPEATS: Final = 3
"""Times that the same call with the same result has to occur within `LOOP_TURNS` turns, without anything new."""


GRADES: Final[tuple[tuple[Zone, Severity, float], ...]] = (
    ("yellow", "info", 0.5), ("orange", "warning", 0.8), ("red", "critical", 1.0),
)  # fmt: skip
"""Grades of a cost budget, with the spent part at which each starts."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One alert: its signal, threshold and duration, and its messages."""

    name: str
    """Stable identity; the value of the `alert` label."""
    title: str
    severity: Severity
    kind: Kind
    signal: str
    """The quantity of a level or sample; the event type of an occurrence."""
    comparison: Comparison
    unit: Unit
    summary: str
    """One line about a firing; `{value}`, `{threshold}`, `{turns}`, `{used}`, `{limit}`, and of the agent's own
    compaction `{level}` and `{evidence}` are filled in."""
    todo: str
    """One line on what to do first."""
    threshold: float | None = None
    """None for a rule that compares nothing."""
    threshold_from: ThresholdSource | None = None
    """Set for a threshold that follows the window; `threshold` then documents the default."""
    nature: Nature = "degradation"
    sustained_turns: int = 1
    """Turns in a row the condition must hold before it fires."""
    repeat_turns: int | None = None
    """Turns after which an alert that still holds resolves and fires again, since its announcement has not come
    true. None to fire once."""
    hold_turns: int = 5
    """Turns without the event after which an occurrence resolves."""
    from_zone: Zone | None = None
    """Evaluated only while the window is in this zone or a worse one."""
    inhibited_by: tuple[str, ...] = ()
    """Alerts about the same cause that are more severe or more exact: while one of them fires, this one does not
    start to fire."""
    needs_certain_limit: bool = False
    """Not evaluated while the size of the window is in doubt (`SignalHistory.limit_in_doubt`)."""
    metric: str | None = None
    """Name of the metric that shows the signal."""
    enabled: bool = True

    @property
    def runbook(self) -> str:
        """Anchor of the alert's section in the runbook: the name, so that a label is enough for a link."""
        return self.name


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "utilization", "Window in red", "critical", "level", "utilization", "at_least", "ratio",
        "utilization {value} ({used} of {limit} tokens), at or above {threshold} for {turns} turns",
        "Compact now, or give the agent a larger window.",
        threshold=0.90, threshold_from="red", sustained_turns=3,
        inhibited_by=("compaction_soon", "overflow", "cannot_compress"), needs_certain_limit=True,
        metric="context_window_utilization_ratio",
    ),
    Rule(
        "eviction_rate", "Many items removed", "warning", "level", "eviction_rate", "above", "blocks_per_turn",
        "{value} items removed per turn, above {threshold} for {turns} turns",
        "Cap tool results, or raise the limit.",
        threshold=5.0, sustained_turns=3, metric="context_window_eviction_rate_blocks_per_turn",
    ),
    Rule(
        "compression_ratio", "Compaction saves little", "warning", "sample", "compression_ratio", "below",
        "times",
        "the last compactions shrank content by a factor of {value}, below {threshold}",
        "Check what the summary keeps verbatim; compact older content, or remove it.",
        threshold=2.0, metric="context_window_compression_ratio",
    ),
    Rule(
        "burn_rate_spike", "Sudden growth", "info", "occurrence", "velocity.spiked", "occurs", "tokens",
        "one turn added {value} tokens, more than {threshold}",
        "Find the item that was added; cap that tool's output at ingest.",
        nature="anomaly", metric="context_window_velocity_spikes_total",
    ),
    Rule(
        "fidelity", "Compaction loses facts", "warning", "sample", "fidelity", "below", "ratio",
        "{value} of the facts kept by a compaction, below {threshold}: half of what is usual here",
        "Open the compaction's lost facts; pin what must survive or change the prompt.",
        threshold=FIDELITY_FLOOR, threshold_from="usual_fidelity", nature="anomaly",
        metric="context_window_fidelity_ratio",
    ),
    Rule(
        "tool_results", "Tool results fill the window", "warning", "level", "tool_result_ratio", "above", "ratio",
        "tool results are {value} of the used tokens, above {threshold} for {turns} turns",
        "Cap or summarize tool results; remove those that were never used.",
        threshold=0.60, sustained_turns=3, from_zone="orange", metric="context_window_tool_result_ratio",
        inhibited_by=("compaction_soon", "red_imminent", "utilization", *NO_ROOM),
    ),
    Rule(
        "compaction_soon", "Compaction soon", "warning", "level", "turns_until_compaction", "at_most", "turns",
        "the agent compacts {value}, at {level} tokens ({evidence}; {used} used)",
        "Have the agent note what must survive, or compact now with instructions.",
        threshold=float(COMPACTION_TURNS), repeat_turns=12, metric="context_window_turns_until_compaction",
    ),
    Rule(
        "red_imminent", "Red within one turn", "critical", "level", "turns_until_red", "ahead", "turns",
        "red {value} ({used} of {limit} tokens)",
        "Compact before the next call.",
        threshold=1.0, metric="context_window_turns_until_red",
        inhibited_by=("compaction_soon", "utilization", *NO_ROOM), needs_certain_limit=True,
    ),
    Rule(
        "overflow", "Window overflowed", "critical", "occurrence", "overflow.detected", "occurs", "tokens",
        "{value} tokens did not fit the window of {limit} with room for the reply",
        "Check what was reduced and whether the retry succeeded; lower the compaction threshold.",
        metric="context_window_overflows_total",
    ),
    Rule(
        "cannot_compress", "Cannot compact below the limit", "critical", "occurrence", "reduction.exhausted",
        "occurs", "tokens",
        "reduction made no progress ({used} of {limit} tokens)",
        "Unpin or split what may not be removed, or start a new window.",
        metric="context_window_overflows_total",
    ),
    Rule(
        "audit_chain_broken", "Audit chain broken", "critical", "outside", "audit_chain", "occurs", "count",
        "the audit chain does not verify",
        "Run the audit verification, keep a copy of the store and find out who wrote to it.",
        nature="anomaly",
    ),
    *(
        Rule(
            f"cost_{zone}", f"Cost budget in {zone}", severity, "outside", "cost_budget", "at_least", "ratio",
            "{value} of a day's budget is spent, at or above {threshold}",
            "Open the most expensive session of today, and see what its calls carry.",
            threshold=share, nature="anomaly", metric="context_window_cost_dollars_total",
        )
        for zone, severity, share in GRADES
    ),
    Rule(
        "quota_nearly_used", "Quota nearly used", "warning", "outside", "plan_quota", "at_least", "ratio",
        "{value} of the plan's quota is used, at or above {threshold}",
        "Finish what must be finished in this window, or change to another model or plan.",
        threshold=0.90, nature="anomaly", inhibited_by=("quota_used_up",),
        metric="context_window_quota_used_ratio",
    ),
    Rule(
        "quota_used_up", "Quota used up", "critical", "outside", "plan_quota", "at_least", "ratio",
        "{value} of the plan's quota is used, at or above {threshold}",
        "Change to another model or plan, or wait for the end of this window.",
        threshold=1.0, nature="anomaly", metric="context_window_quota_used_ratio",
    ),
    Rule(
        "output_reserve", "No room for an answer", "critical", "level", "room_tokens", "below", "tokens",
        "{value} tokens remain for the answer, below {threshold}",
        "Reduce the window before the next call, or its answer is cut off.",
        threshold=float(MINIMUM_OUTPUT_TOKENS), threshold_from="output_reserve",
        metric="context_window_used_tokens",
        inhibited_by=("overflow", "cannot_compress"), needs_certain_limit=True,
    ),
    Rule(
        "regret", "Removed content is needed again", "warning", "level", "regret_ratio", "above", "ratio",
        "{value} of the tokens removed within 20 turns were needed again, above {threshold}",
        "Protect content that is needed again: raise its priority or lifetime, or mask it.",
        threshold=0.10, metric="context_window_regrets_total",
    ),
    Rule(
        "rule_lost", "Compaction loses a rule", "warning", "occurrence", "rule.lost", "occurs", "count",
        "standing instructions that the compaction lost or reversed: {value}",
        "Give the agent the instruction again, and move it to a file that its program loads for every session.",
        metric="context_window_rules_followed_total",
    ),
    Rule(
        "thrashing", "Window is reduced again and again", "warning", "level", "reductions", "at_least", "count",
        "the window was reduced in {value} of the last 10 turns",
        "Lower the reduction target so that each one frees more.",
        threshold=5.0, metric="context_window_compressions_total",
    ),
    Rule(
        "repeated_calls", "Agent repeats a call", "warning", "occurrence", "call.repeated", "occurs", "count",
        "the same tool call returned the same result {value} times within 10 turns, and nothing new came",
        "Read the turns of the repetition, and stop the agent if it waits for nothing.",
        nature="anomaly", hold_turns=LOOP_TURNS, metric="context_window_alert_transitions_total",
    ),
    Rule(
        "oscillation", "Zones change back and forth", "info", "level", "zone_changes", "at_least", "count",
        "{value} zone changes in the last 10 turns",
        "Widen the hysteresis or lower the reduction target.",
        threshold=4.0, metric="context_window_zone_transitions_total",
    ),
    Rule(
        "yellow_entered", "Yellow entered", "info", "level", "zone", "at_least", "zone",
        "the window entered {value} ({used} of {limit} tokens)",
        "Plan what to remove first; nothing is urgent yet.",
        threshold=1.0, metric="context_window_sessions",
    ),
    Rule(
        "window_rolled", "New window started", "info", "occurrence", "window.rolled", "occurs", "tokens",
        "a new window was started; the previous one held {value} tokens",
        "Check that it has the goal and the rules.",
        hold_turns=1, metric="context_window_checkpoints_total",
    ),
    Rule(
        "compaction_done", "Compaction done", "info", "occurrence", "compaction.accepted", "occurs", "tokens",
        "the conversation was compacted; what replaced it has {value} tokens",
        "Compare before and after, and read the lost facts.",
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


def alert_title(alert: str) -> str:
    """Return an alert's title; its name where no rule has it."""
    rule = RULES_BY_NAME.get(alert)
    return rule.title if rule is not None else alert


def configured(
    thresholds: Mapping[str, float] | None = None,
    *,
    enable: Iterable[str] = (),
    disable: Iterable[str] = (),
) -> tuple[Rule, ...]:
    """Return the enabled rules, with *thresholds* by alert name instead of the defaults.

    A threshold that is set no longer follows the window. Raises `ConfigurationError` for an unknown alert, an
    alert without a threshold, and a threshold that the signal can never reach.
    """
    check_alerts(thresholds or {}, names=(*(enable := tuple(enable)), *(disable := tuple(disable))))
    rules = dict(RULES_BY_NAME)
    for name, threshold in (thresholds or {}).items():
        rules[name] = replace(rules[name], threshold=float(threshold), threshold_from=None)
    for names, enabled in ((enable, True), (disable, False)):
        for name in names:
            rules[name] = replace(rules[name], enabled=enabled)
    return tuple(rule for rule in rules.values() if rule.enabled)
