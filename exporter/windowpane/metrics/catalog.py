"""The metric catalog: name, unit, labels, buckets, help, aggregate and source event of every metric.

Names, units and meanings are part of the public interface: changing one is a breaking change. Exporters, the
table in the documentation, dashboards and tests are all generated from or compared with this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

MetricKind = Literal["gauge", "counter", "histogram"]

Aggregate = Literal["max", "min", "sum", "weighted_mean", "max_abs", "count"]
"""Aggregate of the live sessions with the same labels. `weighted_mean` weights by used tokens, `max_abs` keeps
the sign of the value furthest from zero, `count` counts sessions."""

PREFIX: Final = "context_window_"
OTEL_PREFIX: Final = "context_window."
IDENTITY: Final = ("agent", "model")
"""The first labels of every session metric."""
TOKENS: Final = "{token}"
TOKENS_PER_TURN: Final = "{token}/{turn}"
MEASURED: Final = "pressure.measured"
QUOTA_SOURCE: Final = "quota.measured"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric, the same in Prometheus and OpenTelemetry."""

    name: str
    """The Prometheus name."""
    otel_name: str
    """The instrument's name; OpenTelemetry's rules derive the Prometheus name from it and the unit."""
    kind: MetricKind
    unit: str
    """Unit in UCUM."""
    help: str
    source: str
    """Type of the source event; empty for metrics about the exporter."""
    fields: tuple[str, ...] = ()
    """Fields of the source event's payload from which it is computed."""
    labels: tuple[str, ...] = ()
    """All labels; a session metric's start with `agent` and `model`."""
    aggregate: Aggregate | None = None
    """Only for gauges of sessions."""
    buckets: tuple[float, ...] = ()
    """Upper bounds, without infinity."""
    buckets_reason: str = ""
    prometheus: bool = True
    """False for a metric of OpenTelemetry's conventions only."""
    opt_in: bool = False
    """True if it is exported only on request."""

    @property
    def own_labels(self) -> tuple[str, ...]:
        """The labels after `agent` and `model`."""
        return self.labels[len(IDENTITY) :] if self.labels[: len(IDENTITY)] == IDENTITY else self.labels


def otel_instrument_name(name: str, kind: MetricKind, unit: str) -> str:
    """Return the instrument name from which OpenTelemetry's Prometheus rules derive *name*.

    They append `_ratio` to gauges of unit 1, the name of a unit that is not an annotation in braces, and
    `_total` to counters.
    """
    if kind == "counter":
        name = name.removesuffix("_total")
    if unit == "1" and kind == "gauge":
        name = name.removesuffix("_ratio")
    if unit == "s":
        name = name.removesuffix("_seconds")
    head, _, rest = name.partition("_window_" if name.startswith(PREFIX) else "_")
    return f"{OTEL_PREFIX}{rest}" if name.startswith(PREFIX) else f"{head}.{rest}"


def _metric(
    name: str,
    kind: MetricKind,
    unit: str,
    text: str,
    *,
    source: str,
    fields: tuple[str, ...],
    by: tuple[str, ...] = (),
    otel_name: str = "",
    **options: Any,
) -> Metric:
    full = f"{PREFIX}{name}"
    otel_name = otel_name or otel_instrument_name(full, kind, unit)
    return Metric(full, otel_name, kind, unit, text, source, fields, (*IDENTITY, *by), **options)


def _gauge(
    name: str, unit: str, aggregate: Aggregate, text: str, *fields: str, source: str = MEASURED, **options: Any
) -> Metric:
    return _metric(name, "gauge", unit, text, source=source, fields=fields, aggregate=aggregate, **options)


def _counter(name: str, unit: str, text: str, source: str, *fields: str, by: tuple[str, ...] = ()) -> Metric:
    return _metric(f"{name}_total", "counter", unit, text, source=source, fields=fields, by=by)


LIMIT_TOKENS: Final = _gauge(
    "limit_tokens", TOKENS, "sum", "Size of the context windows of the live sessions.", "limit_tokens"
)
USED_TOKENS: Final = _gauge(
    "used_tokens", TOKENS, "sum", "Tokens that the next calls would send, by component.",
    "used_by_component", by=("component",),
)  # fmt: skip
UTILIZATION: Final = _gauge("utilization_ratio", "1", "max", "Used over limit, 0 to 1.", "utilization")
USABLE_UTILIZATION: Final = _gauge(
    "usable_utilization_ratio", "1", "max",
    "Used over usable, which is the limit without output reserve and safety margin.", "usable_utilization",
)  # fmt: skip
SESSIONS: Final = _gauge("sessions", "{session}", "count", "Live sessions by zone.", "zone", by=("zone",))
VELOCITY: Final = _gauge(
    "velocity_tokens_per_turn",
    TOKENS_PER_TURN,
    "max",
    "Tokens added per turn, mean of the last 5 turns.",
    "velocity",
)
TURNS_UNTIL_RED: Final = _gauge(
    "turns_until_red", "{turn}", "min",
    "Forecast of the turns until the red zone; 0 in red, +Inf without growth, absent if unknown.",
    "turns_until_red_p10", "turns_until_red", "turns_until_red_p90", by=("bound",),
)  # fmt: skip
TURNS_UNTIL_COMPACTION: Final = _gauge(
    "turns_until_compaction", "{turn}", "min",
    "Forecast of the turns until the agent compacts by itself; 0 at that level, absent if it is unknown.",
    "turns_until_compaction_p10", "turns_until_compaction", "turns_until_compaction_p90", by=("bound",),
)  # fmt: skip
COMPACTION_TOKENS: Final = _gauge(
    "compaction_tokens", TOKENS, "min",
    "Used tokens at which the agent compacts by itself: stated, recorded or documented.", "compaction_tokens",
)  # fmt: skip
BURN_RATE: Final = _gauge(
    "burn_rate_tokens_per_turn", TOKENS_PER_TURN, "max", "Tokens added per turn, mean of the last 20 turns.",
    "burn_rate",
)  # fmt: skip
TURNS_UNTIL_EXHAUSTED: Final = _gauge(
    "turns_until_exhausted", "{turn}", "min",
    "Turns until used tokens reach the limit minus the output reserve, at the burn rate; +Inf without growth.",
    "turns_until_exhausted",
)  # fmt: skip
BUDGET_UTILIZATION: Final = _gauge(
    "budget_utilization_ratio", "1", "weighted_mean", "Used over budgeted tokens of a component; may exceed 1.",
    "budget_utilization", by=("component",),
)  # fmt: skip
TOOL_RESULT: Final = _gauge(
    "tool_result_ratio", "1", "max", "Share of tool results in the used tokens, 0 to 1.", "tool_result_ratio",
)  # fmt: skip
DUPLICATE: Final = _gauge(
    "duplicate_ratio", "1", "max",
    "Share of the used tokens that repeats an earlier block of the window, 0 to 1.", "duplicate_ratio",
)  # fmt: skip
STALE: Final = _gauge(
    "stale_ratio", "1", "max",
    "Share of the used tokens unreferenced for the lifetime of their type, without duplicates, 0 to 1.",
    "stale_ratio",
)  # fmt: skip
EVICTION_RATE: Final = _gauge(
    "eviction_rate_blocks_per_turn", "{block}/{turn}", "max",
    "Blocks evicted per turn, mean of the last 5 turns.", "eviction_rate",
)  # fmt: skip
COMPRESSION_RATIO: Final = _gauge(
    "compression_ratio", "1", "min",
    "Tokens of the replaced content over tokens of its replacement, in the last compression that recorded both; "
    "above 1 is smaller.",
    "ratio", source="content.compressed", otel_name="context_window.compression_ratio",
)  # fmt: skip
FIDELITY: Final = _gauge(
    "fidelity_ratio", "1", "min",
    "Facts that the last compression kept, 0 to 1.", "score",
    by=("method",), source="fidelity.evaluated",
)  # fmt: skip
SUMMARY_FAULTS: Final = _gauge(
    "summary_faults", "{fault}", "max",
    "Faults that the probe found in the last replacement: wrong or reversed statements, and damage to its form.",
    "facts_contradicted", "form", source="fidelity.evaluated",
)  # fmt: skip
ESTIMATE_ERROR: Final = _gauge(
    "estimate_error_ratio", "1", "max_abs",
    "Signed relative error of the token estimate of the last call the provider reported.", "estimate_error",
)  # fmt: skip
CACHE_HIT: Final = _gauge(
    "cache_hit_ratio", "1", "weighted_mean",
    "Share of the last call's input that the prompt cache served, 0 to 1.", "cache_hit_ratio",
)  # fmt: skip
ALERTS_FIRING: Final = _gauge(
    "alerts_firing", "{alert}", "sum", "Live sessions in which the alert fires.",
    "alert", "severity", by=("alert", "severity"), source="alert.fired",
)  # fmt: skip

TURNS: Final = _counter("turns", "{turn}", "Completed model calls.", "turn.ended")
ADDED_TOKENS: Final = _counter(
    "added_tokens", TOKENS, "Tokens that entered the window, before any reduction.",
    MEASURED, "added_by_component", by=("component",),
)  # fmt: skip
TOOL_TOKENS: Final = _counter(
    "tool_tokens", TOKENS, "Tokens of tool definitions, calls and results that entered the window, by tool.",
    "block.added", "block", by=("component", "tool"),
)  # fmt: skip
NAMED_TOKENS: Final = _counter(
    "named_tokens", TOKENS, "Tokens of MCP servers, skills and memory files that entered the window, by name.",
    "block.added", "block", by=("kind", "name"),
)  # fmt: skip
CARRIED_TOKENS: Final = _counter(
    "carried_tokens", TOKENS, "Tokens sent again with each call, by state: fresh, stale or duplicate.",
    MEASURED, "used_tokens", "stale_tokens", "duplicate_tokens", by=("state",),
)  # fmt: skip
EVICTED_BLOCKS: Final = _counter(
    "evicted_blocks", "{block}", "Blocks evicted from the window.", "blocks.evicted", "blocks",
    by=("policy", "content_type"),
)  # fmt: skip
EVICTED_TOKENS: Final = _counter(
    "evicted_tokens", TOKENS, "Tokens of the blocks evicted from the window, placeholders not subtracted.",
    "blocks.evicted", "blocks", by=("policy", "content_type"),
)  # fmt: skip
COMPRESSIONS: Final = _counter(
    "compressions", "{compression}", "Attempted compressions, by strategy and outcome.",
    "content.compressed", "strategy", "outcome", by=("strategy", "outcome"),
)  # fmt: skip
COMPRESSION_INPUT: Final = _counter(
    "compression_input_tokens", TOKENS, "Tokens of the content that accepted compressions replaced.",
    "content.compressed", "tokens_before",
)  # fmt: skip
COMPRESSION_OUTPUT: Final = _counter(
    "compression_output_tokens", TOKENS, "Tokens of the content that replaced it in accepted compressions.",
    "content.compressed", "tokens_after",
)  # fmt: skip
REGRETS: Final = _counter(
    "regrets", "{block}", "Removed blocks that were needed again within 20 turns.",
    "content.regretted", "cause", by=("cause",),
)  # fmt: skip
MISSTEPS: Final = _counter(
    "missteps", "{misstep}",
    "Failed tool results, repeated reads and calls, and corrections by the user, by the fill of the window at "
    "the model call: 0.7 is from 70% to below 90%.",
    "misstep.observed", "misstep", "utilization", by=("misstep", "fill"),
)  # fmt: skip
RULES_FOLLOWED: Final = _counter(
    "rules_followed", "{rule}",
    "Standing instructions that were visible before a compaction, by what became of them and by their source.",
    "rules.followed", "user", "system", "memory", by=("fate", "rule_source"),
)  # fmt: skip
ZONE_TRANSITIONS: Final = _counter(
    "zone_transitions",
    "{transition}",
    "Changes of zone.",
    "zone.changed",
    "from_zone",
    "to_zone",
    by=("from", "to"),
)
VELOCITY_SPIKES: Final = _counter(
    "velocity_spikes", "{turn}", "Turns that added far more tokens than the turns before them.", "velocity.spiked"
)
BUDGET_EVENTS: Final = _counter(
    "budget_events", "{event}",
    "Components that passed their soft limit (warned) or were held at their hard limit (blocked).",
    "budget.warned", "component", by=("component", "outcome"),
)  # fmt: skip
OVERFLOWS: Final = _counter(
    "overflows", "{overflow}", "Windows that exceeded their limit, or would have, by outcome.",
    "overflow.detected", "outcome", by=("outcome",),
)  # fmt: skip
CHECKPOINTS: Final = _counter(
    "checkpoints", "{checkpoint}", "Checkpoints saved, loaded or rejected.", "checkpoint.saved", by=("outcome",)
)
MODEL_TOKENS: Final = _counter(
    "model_tokens", TOKENS,
    "Billed tokens as the provider reported them: input is uncached, reasoning is part of output.",
    "turn.ended", "usage", by=("type",),
)  # fmt: skip
COST: Final = _counter(
    "cost_dollars", "{USD}", "Price of the model calls, those of compressions included, in US dollars.",
    "turn.ended", "cost_dollars",
)  # fmt: skip
CACHE_BREAKS: Final = _counter(
    "cache_breaks", "{call}", "Calls that sent more than half of a cached prefix as new input, by cause.",
    "cache.broken", "cause", by=("cause",),
)  # fmt: skip
CACHE_REWRITTEN: Final = _counter(
    "cache_rewritten_tokens", TOKENS, "Tokens of cached prefixes that these calls sent as new input.",
    "cache.broken", "rewritten_tokens", by=("cause",),
)  # fmt: skip
CACHE_BREAK_COST: Final = _counter(
    "cache_break_dollars", "{USD}", "Price of these calls above that of reading the prefix from the cache.",
    "cache.broken", "dollars", by=("cause",),
)  # fmt: skip
ALERT_TRANSITIONS: Final = _counter(
    "alert_transitions", "{transition}", "Alerts that started or stopped firing.",
    "alert.fired", "alert", "severity", by=("alert", "severity", "state"),
)  # fmt: skip

TURN_UTILIZATION: Final = _metric(
    "turn_utilization_ratio", "histogram", "1", "Used over limit at the end of each turn, 0 to 1.",
    source=MEASURED, fields=("utilization",),
    buckets=(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0),
    buckets_reason="every default zone threshold (0.40 to 0.90) is a bound, so time spent in a zone is exact",
)  # fmt: skip
BLOCK_TOKENS: Final = _metric(
    "block_tokens", "histogram", TOKENS, "Size of the blocks that entered the window.",
    source="block.added", fields=("block",), by=("content_type",),
    buckets=(10, 50, 200, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000),
    buckets_reason="a placeholder is at most 50, results are summarized above 500 and cut at 2,500 or 25,000",
)  # fmt: skip
COMPRESSION_SECONDS: Final = _metric(
    "compression_seconds", "histogram", "s", "Duration of a compression.",
    source="content.compressed", fields=("duration_seconds",), by=("strategy",),
    buckets=(0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60),
    buckets_reason="extractive takes milliseconds, a model call seconds and times out at 60",
)  # fmt: skip

SESSION_UTILIZATION: Final = _metric(
    "session_utilization_ratio", "gauge", "1", "Used over limit of one session, 0 to 1.",
    source=MEASURED, fields=("utilization",), by=("session",), aggregate="max", opt_in=True,
)  # fmt: skip
SESSION_USED_TOKENS: Final = _metric(
    "session_used_tokens", "gauge", TOKENS, "Tokens that the next call of one session would send.",
    source=MEASURED, fields=("used_tokens",), by=("session",), aggregate="max", opt_in=True,
)  # fmt: skip

TOKEN_USAGE: Final = Metric(
    "gen_ai_client_token_usage", "gen_ai.client.token.usage", "histogram", TOKENS,
    "Tokens a model call used.", "turn.ended", ("usage",), (*IDENTITY, "type"),
    buckets=(
        1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864,
    ),
    buckets_reason="the bounds that the GenAI semantic conventions prescribe",
    prometheus=False,
)  # fmt: skip


INFERENCE_DURATION: Final = Metric(
    "gen_ai_client_operation_duration_seconds", "gen_ai.client.operation.duration", "histogram", "s",
    "Duration of a model call.", "turn.ended", ("latency_seconds",), IDENTITY,
    buckets=(0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92),
    buckets_reason="the bounds that the GenAI semantic conventions prescribe",
    prometheus=False,
)  # fmt: skip


def _own(
    name: str, kind: MetricKind, unit: str, text: str, labels: tuple[str, ...] = (), **options: Any
) -> Metric:
    full = f"windowpane_{name}"
    return Metric(full, otel_instrument_name(full, kind, unit), kind, unit, text, "", (), labels, **options)


HOOK_SECONDS: Final = _own(
    "hook_seconds", "histogram", "s", "Time a hook of the window manager kept the agent waiting.", ("hook",),
    buckets=(0.00001, 0.00005, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 1, 10),
    buckets_reason="a hook that only observes takes tens of microseconds, one that compresses seconds",
)  # fmt: skip
STORE_WRITE_SECONDS: Final = _own(
    "store_write_seconds", "histogram", "s", "Time the store took for one batch of events.",
    buckets=(0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5),
    buckets_reason="a batch takes milliseconds; above half a second the queue starts to fill",
)  # fmt: skip
DROPPED_EVENTS: Final = _own(
    "dropped_events_total",
    "counter",
    "{event}",
    "Events that did not reach a sink, by reason.",
    ("sink", "reason"),
)
QUEUE_EVENTS: Final = _own(
    "queue_events", "gauge", "{event}", "Events in the pipeline's queue, or waiting for a store that takes none."
)
STORE_AVAILABLE: Final = _own(
    "store_available", "gauge", "{store}", "1 while the event store takes events, 0 while events wait for it."
)
CLICKHOUSE_LAG: Final = _own(
    "clickhouse_lag_events", "gauge", "{event}", "Events of the store that its copy in ClickHouse lacks; absent "
    "without `serve --clickhouse`.",
)  # fmt: skip
NOTIFICATIONS: Final = _own(
    "notifications_total", "counter", "{notification}", "Notifications about alerts, by channel and outcome.",
    ("channel", "outcome"),
)  # fmt: skip
LAST_EVENT_AGE: Final = _own(
    "last_event_age_seconds", "gauge", "s", "Time since the newest event of any session; absent before the first."
)
BUILD_INFO: Final = _own(
    "build_info", "gauge", "{build}", "Always 1; the labels contain the release and the version of Python.",
    ("version", "python"),
)  # fmt: skip

QUOTA_LABELS: Final = ("agent", "window")
QUOTA_USED: Final = Metric(
    f"{PREFIX}quota_used_ratio", f"{OTEL_PREFIX}quota_used", "gauge", "1",
    "Used part of a window of the plan's quota, as the provider reports it; absent after the window's end.",
    QUOTA_SOURCE, labels=QUOTA_LABELS,
)  # fmt: skip
QUOTA_REMAINING: Final = Metric(
    f"{PREFIX}quota_remaining_seconds", f"{OTEL_PREFIX}quota_remaining", "gauge", "s",
    "Forecast time until the quota is used up; absent where it lasts until the window's end.",
    QUOTA_SOURCE, labels=QUOTA_LABELS,
)  # fmt: skip

SESSION_METRICS: Final = (
    LIMIT_TOKENS, USED_TOKENS, UTILIZATION, USABLE_UTILIZATION, SESSIONS, VELOCITY, TURNS_UNTIL_RED, BURN_RATE,
    TURNS_UNTIL_EXHAUSTED, TURNS_UNTIL_COMPACTION, COMPACTION_TOKENS, BUDGET_UTILIZATION, TOOL_RESULT, DUPLICATE,
    STALE, EVICTION_RATE, COMPRESSION_RATIO, FIDELITY, SUMMARY_FAULTS, ESTIMATE_ERROR, CACHE_HIT, ALERTS_FIRING,
    SESSION_UTILIZATION, SESSION_USED_TOKENS, TURNS, ADDED_TOKENS, TOOL_TOKENS, NAMED_TOKENS, CARRIED_TOKENS,
    EVICTED_BLOCKS, EVICTED_TOKENS, COMPRESSIONS, COMPRESSION_INPUT, COMPRESSION_OUTPUT, REGRETS, MISSTEPS,
    RULES_FOLLOWED, ZONE_TRANSITIONS, VELOCITY_SPIKES, BUDGET_EVENTS, OVERFLOWS, CHECKPOINTS, MODEL_TOKENS, COST,
    CACHE_BREAKS, CACHE_REWRITTEN,
    CACHE_BREAK_COST, ALERT_TRANSITIONS, TURN_UTILIZATION, BLOCK_TOKENS, COMPRESSION_SECONDS, TOKEN_USAGE,
    INFERENCE_DURATION,
)  # fmt: skip
"""Metrics of sessions, all folded from events."""

OWN_METRICS: Final = (
    HOOK_SECONDS, STORE_WRITE_SECONDS, DROPPED_EVENTS, QUEUE_EVENTS, STORE_AVAILABLE, CLICKHOUSE_LAG,
    NOTIFICATIONS, LAST_EVENT_AGE, BUILD_INFO,
)  # fmt: skip
"""Metrics about the exporter."""

QUOTA_METRICS: Final = (QUOTA_USED, QUOTA_REMAINING)
"""Metrics of plans, which `serve` and `watch` read from the store."""

ALL_METRICS: Final = (*SESSION_METRICS, *QUOTA_METRICS, *OWN_METRICS)
BY_NAME: Final = {metric.name: metric for metric in ALL_METRICS}


_HEADER = "| metric | kind | unit | labels | over sessions | meaning |\n| --- | --- | --- | --- | --- | --- |"


def markdown_table() -> str:
    """Return a Markdown table with one row for each metric that Prometheus gets, without a final line break."""
    return "\n".join([_HEADER, *(_row(metric) for metric in ALL_METRICS if metric.prometheus)])


def _row(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels) or "none"
    over = (metric.aggregate or "").replace("_", " ") or ("sum" if metric.kind != "gauge" else "")
    cells = (f"`{metric.name}`", metric.kind, f"`{metric.unit}`", labels, over, metric.help)
    return "| " + " | ".join(cells) + " |"
