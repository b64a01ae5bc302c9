"""The reducer: which counters and histograms each event increases, and by how much.

A call that two sources report at the same time counts once, whichever is folded first. A session that replays a
recording has the ids of its calls as well, but not their times, or is of the same rank (`core.same_session`): its
calls count.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from itertools import permutations, product
from typing import Any, Final, NamedTuple

from windowpane.core import events
from windowpane.core.names import file_name, mcp_server_of
from windowpane.core.same_session import CLOCK_SECONDS, is_recording, number_in, rank
from windowpane.core.vocabulary import (
    CACHE_BREAK_CAUSES,
    COMPONENT_OF,
    CONTENT_TYPES,
    DERIVED_TYPES,
    MISSTEPS,
    RULE_FATES,
    RULE_SOURCES,
    STATIC_TYPES,
    ZONES,
)
from windowpane.metrics import catalog
from windowpane.metrics.catalog import Metric
from windowpane.metrics.counters import Instrument, Row, SeriesTable
from windowpane.metrics.labels import FILLS, LABELS, REMOVAL_CAUSES

_CONVERSATION_TYPES: Final = tuple(
    kind for kind in CONTENT_TYPES if kind not in STATIC_TYPES and kind not in DERIVED_TYPES
)
"""Content types that are added turn by turn and that a policy may evict."""
_TOOL_TYPES: Final = frozenset({"tool_call", "tool_result", "tool_definition"})
_ALERT_STATES: Final = ("firing", "resolved")

_CACHE_BREAKS: Final = (catalog.CACHE_BREAKS, catalog.CACHE_REWRITTEN, catalog.CACHE_BREAK_COST)

_CALLS: Final = frozenset({events.BlockAdded, events.TurnEnded})
"""Events that name a call."""


def fill_label(utilization: float | None) -> str:
    """Return the start of the range that *utilization* is in."""
    if utilization is None:
        return "unknown"
    return next(label for label, start in FILLS.items() if utilization >= start)


_COUNTED_ONCE: Final[dict[type, tuple[Metric, Callable[[Any], tuple[str, ...]]]]] = {
    events.ZoneChanged: (catalog.ZONE_TRANSITIONS, lambda data: (data.from_zone, data.to_zone)),
    events.VelocitySpiked: (catalog.VELOCITY_SPIKES, lambda _: ()),
    events.ContentRegretted: (catalog.REGRETS, lambda data: (data.cause,)),
    events.MisstepObserved: (catalog.MISSTEPS, lambda data: (data.misstep, fill_label(data.utilization))),
    events.BudgetWarned: (catalog.BUDGET_EVENTS, lambda data: (data.component, "warned")),
    events.BudgetBlocked: (catalog.BUDGET_EVENTS, lambda data: (data.component, "blocked")),
    events.OverflowDetected: (catalog.OVERFLOWS, lambda data: (data.outcome,)),
    events.CheckpointSaved: (catalog.CHECKPOINTS, lambda _: ("saved",)),
    events.CheckpointLoaded: (catalog.CHECKPOINTS, lambda _: ("loaded",)),
    events.CheckpointRejected: (catalog.CHECKPOINTS, lambda _: ("rejected",)),
}
"""Events that increase one counter by one, with the labels of its series."""


MAXIMUM_CALLS: Final = 20_000
"""Calls that are remembered, the latest."""
MAXIMUM_OPEN_TURNS: Final = 1_000


class _Report(NamedTuple):
    """The first report of a call: its session, source and time."""

    session_id: str
    source: str
    at: float | None

    def is_of_same_call(self, other: _Report) -> bool:
        """Return whether another report with the same id is of this call, by another source or in a copy."""
        at_once = self.at is None or other.at is None or abs(other.at - self.at) <= CLOCK_SECONDS
        if rank(self.source) != rank(other.source):
            return at_once
        is_copy = is_recording(self.source) and is_recording(other.source)
        return at_once and is_copy and self.session_id != other.session_id


class RepeatedCalls:
    """Remembers the calls that were counted, by the ids of their replies and tool calls."""

    def __init__(self) -> None:
        self._counted: OrderedDict[int, _Report] = OrderedDict()
        self._open: OrderedDict[str, list[int]] = OrderedDict()
        """The tool calls of a session's turn under way."""

    def is_repeated(
        self, context: events.EventContext, at: float | None, data: events.BlockAdded | events.TurnEnded
    ) -> bool:
        """Return whether *data*, of the time *at*, ends a turn whose call was reported elsewhere before."""
        if isinstance(data, events.BlockAdded):
            if data.block.content_type == "tool_call" and (number := number_in(data)) is not None:
                self._add_tool_call(context, number)
            return False
        number = number_in(data)
        numbers = self._open.pop(context.session_id, [])
        if number is not None:
            numbers.append(number)
        report = _Report(context.session_id, context.source, at)
        earlier = [self._counted.setdefault(number, report) for number in numbers]
        repeated = any(one.is_of_same_call(report) for one in earlier)
        while len(self._counted) > MAXIMUM_CALLS:
            self._counted.popitem(last=False)
        return repeated

    def _add_tool_call(self, context: events.EventContext, number: int) -> None:
        self._open.setdefault(context.session_id, []).append(number)
        if len(self._open) > MAXIMUM_OPEN_TURNS:
            self._open.popitem(last=False)


class EventReducer:
    """Increases the counters and histograms of one series table.

    *alerts* (name, severity) and *policies* name what can occur, so that their series start at zero.
    """

    def __init__(
        self, table: SeriesTable, *, alerts: Iterable[tuple[str, str]] = (), policies: Iterable[str] = ()
    ) -> None:
        def instrument(metric: Metric) -> Instrument:
            return Instrument(table, metric)

        self._table = table
        self._repeated = RepeatedCalls()
        self._turns = instrument(catalog.TURNS)
        self._added = instrument(catalog.ADDED_TOKENS)
        self._carried = instrument(catalog.CARRIED_TOKENS)
        self._evicted_blocks = instrument(catalog.EVICTED_BLOCKS)
        self._evicted_tokens = instrument(catalog.EVICTED_TOKENS)
        self._compressions = instrument(catalog.COMPRESSIONS)
        self._compression_input = instrument(catalog.COMPRESSION_INPUT)
        self._compression_output = instrument(catalog.COMPRESSION_OUTPUT)
        self._compression_seconds = instrument(catalog.COMPRESSION_SECONDS)
        self._rules_followed = instrument(catalog.RULES_FOLLOWED)
        self._model_tokens = instrument(catalog.MODEL_TOKENS)
        self._cost = instrument(catalog.COST)
        self._cache_breaks, self._cache_rewritten, self._cache_cost = map(instrument, _CACHE_BREAKS)
        self._alert_transitions = instrument(catalog.ALERT_TRANSITIONS)
        self._turn_utilization = instrument(catalog.TURN_UTILIZATION)
        self._tool_tokens = instrument(catalog.TOOL_TOKENS)
        self._named_tokens = instrument(catalog.NAMED_TOKENS)
        self._block_tokens = instrument(catalog.BLOCK_TOKENS)
        self._token_usage = instrument(catalog.TOKEN_USAGE)
        self._inference_duration = instrument(catalog.INFERENCE_DURATION)
        self.by_event: dict[type, Callable[[Row, Any], None]] = {
            events.BlockAdded: self._block_added,
            events.TurnEnded: self._turn_ended,
            events.PressureMeasured: self._pressure_measured,
            events.BlocksEvicted: self._blocks_evicted,
            events.ContentCompressed: self._content_compressed,
            events.RulesFollowed: self._rules_counted,
            events.CacheBroken: self._cache_broken,
            events.AlertFired: self._alert_fired,
            events.AlertResolved: self._alert_resolved,
        }
        """Type of a payload to the function that counts it in a row."""
        shared = {metric.name: instrument(metric) for metric, _ in _COUNTED_ONCE.values()}
        for kind, (metric, labels) in _COUNTED_ONCE.items():
            self.by_event[kind] = _counting_one(shared[metric.name], labels)
        for metric, combinations in possible_series(alerts=alerts, policies=policies):
            for values in combinations:
                table.start_at_zero(metric, values)

    def count(self, row: Row, batch: Sequence[events.Event]) -> dict[int, Exception]:
        """Count events in *row*; return the errors of those that cannot be counted, by their position."""
        failed: dict[int, Exception] = {}
        for position, (context, _n, at, data) in enumerate(batch):
            kind = type(data)
            count = self.by_event.get(kind)
            if count is None:
                continue
            try:
                repeated = kind in _CALLS and self._repeated.is_repeated(context, at, data)  # type: ignore[arg-type]
                if not repeated:
                    count(row, data)
            except Exception as error:  # noqa: BLE001  # a faulty event must not affect the others
                failed[position] = error
        return failed

    def declare_alert(self, row: Row, alert: str, severity: str) -> tuple[str, str]:
        """Give *row* both transitions of an alert; returns the alert and its severity as label values."""
        for state in _ALERT_STATES:
            self._alert_transitions.touch(row, (alert, severity, state))
        labels = self._table.column(catalog.ALERT_TRANSITIONS, (alert, severity, "firing")).labels
        return labels[0], labels[1]

    def _block_added(self, row: Row, data: events.BlockAdded) -> None:
        block = data.block
        self._block_tokens.observe(row, block.tokens, (block.content_type,))
        if block.tool_name and block.content_type in _TOOL_TYPES and block.replaces is None:
            self._tool_tokens.add(row, block.tokens, (COMPONENT_OF[block.content_type], block.tool_name))
            server = mcp_server_of(block.tool_name)
            if server is not None:
                self._named_tokens.add(row, block.tokens, ("mcp_server", server))
        elif block.target and block.content_type == "memory_injection":
            labels = ("skill", block.target) if block.tool_name else ("memory_file", file_name(block.target))
            self._named_tokens.add(row, block.tokens, labels)

    def _turn_ended(self, row: Row, data: events.TurnEnded) -> None:
        usage = data.usage
        input_tokens = 0 if usage is None else usage.input_total
        self._turns.add(row, 1)
        if data.cost_dollars is not None:
            self._cost.add(row, data.cost_dollars)
        if data.latency_seconds is not None:
            self._inference_duration.observe(row, data.latency_seconds)
        if usage is None:
            return
        add = self._model_tokens.add
        add(row, usage.input_tokens, ("input",))
        add(row, usage.output_tokens, ("output",))
        add(row, usage.cache_read_tokens, ("cache_read",))
        add(row, usage.cache_write_tokens, ("cache_write",))
        add(row, usage.reasoning_tokens, ("reasoning",))
        self._token_usage.observe(row, input_tokens, ("input",))
        self._token_usage.observe(row, usage.output_tokens, ("output",))

    def _pressure_measured(self, row: Row, data: events.PressureMeasured) -> None:
        """Count the tokens that a turn added and carried; only the final measurement counts, one per turn."""
        if data.phase != "final":
            return
        for component, tokens in data.added_by_component.items():
            self._added.add(row, tokens, (component,))
        add, duplicate, stale = self._carried.add, data.duplicate_tokens, data.stale_tokens
        add(row, duplicate, ("duplicate",))
        add(row, stale, ("stale",))
        add(row, max(0, data.used_tokens - duplicate - stale), ("fresh",))
        if data.utilization is not None:
            self._turn_utilization.observe(row, data.utilization)

    def _blocks_evicted(self, row: Row, data: events.BlocksEvicted) -> None:
        for block in data.blocks:
            labels = (data.policy, block.content_type)
            self._evicted_blocks.add(row, 1, labels)
            self._evicted_tokens.add(row, block.tokens, labels)
        unstated = data.tokens_removed - sum(block.tokens for block in data.blocks)
        if unstated > 0:  # the size of the blocks is not recorded, or only a lower total shows the removal
            self._evicted_tokens.add(row, unstated, (data.policy, "unattributed"))

    def _rules_counted(self, row: Row, data: events.RulesFollowed) -> None:
        for source, fates in data.by_source.items():
            for fate, count in fates.items():
                self._rules_followed.add(row, count, (fate, source))

    def _content_compressed(self, row: Row, data: events.ContentCompressed) -> None:
        """Count an attempt to compress; its tokens only where they are the replaced content's."""
        self._compressions.add(row, 1, (data.strategy, data.outcome))
        if data.outcome == "accepted" and data.scope == "content":
            self._compression_input.add(row, data.tokens_before)
            self._compression_output.add(row, data.tokens_after)
        if data.duration_seconds is not None:
            self._compression_seconds.observe(row, data.duration_seconds, (data.strategy,))
        if data.cost_dollars is not None:
            self._cost.add(row, data.cost_dollars)

    def _cache_broken(self, row: Row, data: events.CacheBroken) -> None:
        self._cache_breaks.add(row, 1, (data.cause,))
        self._cache_rewritten.add(row, data.rewritten_tokens, (data.cause,))
        if data.dollars is not None:
            self._cache_cost.add(row, data.dollars, (data.cause,))

    def _alert_fired(self, row: Row, data: events.AlertFired) -> None:
        self.declare_alert(row, data.alert, data.severity)
        self._alert_transitions.add(row, 1, (data.alert, data.severity, "firing"))

    def _alert_resolved(self, row: Row, data: events.AlertResolved) -> None:
        self.declare_alert(row, data.alert, data.severity)
        self._alert_transitions.add(row, 1, (data.alert, data.severity, "resolved"))


def _counting_one(instrument: Instrument, labels: Callable[[Any], tuple[str, ...]]) -> Callable[[Row, Any], None]:
    return lambda row, data: instrument.add(row, 1, labels(data))


def possible_series(
    *, alerts: Iterable[tuple[str, str]], policies: Iterable[str]
) -> list[tuple[Metric, list[tuple[str, ...]]]]:
    """Return the label values that can occur, by metric: those series exist, at zero, before anything happens."""
    evicted = [(policy, kind) for policy in policies for kind in _CONVERSATION_TYPES]
    components = sorted({COMPONENT_OF[kind] for kind in _CONVERSATION_TYPES})
    tried, budgeted = ("accepted", "rejected", "failed"), ("warned", "blocked")
    breaks: list[tuple[str, ...]] = [(cause,) for cause in CACHE_BREAK_CAUSES]
    transitions: list[tuple[str, ...]] = [
        (alert, severity, state) for alert, severity in alerts for state in _ALERT_STATES
    ]
    return [
        (catalog.TURNS, [()]),
        (catalog.ADDED_TOKENS, [(component,) for component in components]),
        (catalog.CARRIED_TOKENS, [("fresh",), ("stale",), ("duplicate",)]),
        (catalog.EVICTED_BLOCKS, list(evicted)),
        (catalog.EVICTED_TOKENS, list(evicted)),
        (catalog.COMPRESSIONS, [(name, outcome) for name in LABELS["strategy"].values for outcome in tried]),
        (catalog.COMPRESSION_INPUT, [()]),
        (catalog.COMPRESSION_OUTPUT, [()]),
        (catalog.REGRETS, [(cause,) for cause in REMOVAL_CAUSES]),
        (catalog.MISSTEPS, list(product(MISSTEPS, FILLS))),
        (catalog.RULES_FOLLOWED, list(product(RULE_FATES, RULE_SOURCES))),
        (catalog.ZONE_TRANSITIONS, list(permutations(ZONES, 2))),
        (catalog.VELOCITY_SPIKES, [()]),
        (catalog.BUDGET_EVENTS, [(name, outcome) for name in LABELS["component"].values for outcome in budgeted]),
        (catalog.OVERFLOWS, [(outcome,) for outcome in ("reduced", "retried", "rolled", "failed", "rejected")]),
        (catalog.CHECKPOINTS, [(outcome,) for outcome in ("saved", "loaded", "rejected")]),
        (catalog.MODEL_TOKENS, [(kind,) for kind in LABELS["type"].values]),
        (catalog.COST, [()]),
        *((metric, breaks) for metric in _CACHE_BREAKS),
        (catalog.ALERT_TRANSITIONS, transitions),
        (catalog.TURN_UTILIZATION, [()]),
    ]
