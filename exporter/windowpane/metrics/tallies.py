"""How each event counts: the counters and histograms of the catalog, one method an event."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import permutations
from typing import Any, Final

from windowpane.core import events
from windowpane.core.vocabulary import COMPONENT_OF, CONTENT_TYPES, DERIVED_TYPES, STANDING_TYPES, ZONES
from windowpane.metrics import catalog
from windowpane.metrics.catalog import LABELS
from windowpane.metrics.metric import Metric
from windowpane.metrics.series import Row, SeriesTable, Tally

_CONVERSATION: Final = tuple(
    kind for kind in CONTENT_TYPES if kind not in STANDING_TYPES and kind not in DERIVED_TYPES
)
"""Types that are added turn by turn and that a policy may take out."""


class Tallies:
    """The fold's counters over one series table."""

    def __init__(self, table: SeriesTable) -> None:
        def tally(metric: Metric) -> Tally:
            return Tally(table, metric)

        self._table = table
        self.turns = tally(catalog.TURNS)
        self.added = tally(catalog.ADDED_TOKENS)
        self.carried = tally(catalog.CARRIED_TOKENS)
        self.evicted_blocks = tally(catalog.EVICTED_BLOCKS)
        self.evicted_tokens = tally(catalog.EVICTED_TOKENS)
        self.compressions = tally(catalog.COMPRESSIONS)
        self.compression_input = tally(catalog.COMPRESSION_INPUT)
        self.compression_output = tally(catalog.COMPRESSION_OUTPUT)
        self.compression_seconds = tally(catalog.COMPRESSION_SECONDS)
        self.regrets = tally(catalog.REGRETS)
        self.zone_transitions = tally(catalog.ZONE_TRANSITIONS)
        self.velocity_spikes = tally(catalog.VELOCITY_SPIKES)
        self.budget_events = tally(catalog.BUDGET_EVENTS)
        self.overflows = tally(catalog.OVERFLOWS)
        self.checkpoints = tally(catalog.CHECKPOINTS)
        self.model_tokens = tally(catalog.MODEL_TOKENS)
        self.cost = tally(catalog.COST)
        self.alert_transitions = tally(catalog.ALERT_TRANSITIONS)
        self.turn_utilization = tally(catalog.TURN_UTILIZATION)
        self.block_tokens = tally(catalog.BLOCK_TOKENS)
        self.token_usage = tally(catalog.TOKEN_USAGE)

    def start_at_zero(
        self, table: SeriesTable, *, alerts: Iterable[tuple[str, str]], policies: Iterable[str]
    ) -> None:
        """Declare the combinations that can occur, for every label set seen from now on."""
        for metric, combinations in occurring(alerts=alerts, policies=policies).items():
            for labels in combinations:
                table.start_at_zero(catalog.BY_NAME[metric], labels)

    # -- turns ------------------------------------------------------------------------------------------------

    def block_added(self, row: Row, data: events.BlockAdded) -> None:
        """Size of a block."""
        block = data.block
        self.block_tokens.observe(row, block.tokens, (block.content_type,))

    def turn_ended(self, row: Row, data: events.TurnEnded) -> None:
        """A model call with its usage and price."""
        self.turns.add(row, 1)
        if data.cost_dollars is not None:
            self.cost.add(row, data.cost_dollars)
        usage = data.usage
        if usage is None:
            return
        add = self.model_tokens.add
        add(row, usage.input_tokens, ("input",))
        add(row, usage.output_tokens, ("output",))
        add(row, usage.cache_read_tokens, ("cache_read",))
        add(row, usage.cache_write_tokens, ("cache_write",))
        add(row, usage.reasoning_tokens, ("reasoning",))
        self.token_usage.observe(row, usage.input_total, ("input",))
        self.token_usage.observe(row, usage.output_tokens, ("output",))

    def pressure_measured(self, row: Row, data: events.PressureMeasured) -> None:
        """What a turn added and carried; only the final measurement counts, one a turn."""
        if data.phase != "final":
            return
        for component, tokens in data.added_by_component.items():
            self.added.add(row, tokens, (component,))
        add, duplicate, stale = self.carried.add, data.duplicate_tokens, data.stale_tokens
        add(row, duplicate, ("duplicate",))
        add(row, stale, ("stale",))
        add(row, max(0, data.used_tokens - duplicate - stale), ("fresh",))
        if data.utilization is not None:
            self.turn_utilization.observe(row, data.utilization)

    def zone_changed(self, row: Row, data: events.ZoneChanged) -> None:
        """A change of zone."""
        self.zone_transitions.add(row, 1, (data.from_zone, data.to_zone))

    def velocity_spiked(self, row: Row, _data: events.VelocitySpiked) -> None:
        """A spike."""
        self.velocity_spikes.add(row, 1)

    # -- reductions -------------------------------------------------------------------------------------------

    def blocks_evicted(self, row: Row, data: events.BlocksEvicted) -> None:
        """Blocks that left, by policy and type."""
        for block in data.blocks:
            labels = (data.policy, block.content_type)
            self.evicted_blocks.add(row, 1, labels)
            self.evicted_tokens.add(row, block.tokens, labels)

    def content_compressed(self, row: Row, data: events.ContentCompressed) -> None:
        """An attempt to compress; tokens only where they are those of the replaced content."""
        self.compressions.add(row, 1, (data.strategy, data.outcome))
        if data.outcome == "accepted" and data.scope == "content":
            self.compression_input.add(row, data.tokens_before)
            self.compression_output.add(row, data.tokens_after)
        if data.duration_seconds is not None:
            self.compression_seconds.observe(row, data.duration_seconds, (data.strategy,))
        if data.cost_dollars is not None:
            self.cost.add(row, data.cost_dollars)

    def content_regretted(self, row: Row, data: events.ContentRegretted) -> None:
        """A block that was needed again."""
        self.regrets.add(row, 1, (data.cause,))

    # -- budget, overflow, checkpoints, alerts ------------------------------------------------------------------

    def budget_warned(self, row: Row, data: events.BudgetWarned) -> None:
        """A soft limit was passed."""
        self.budget_events.add(row, 1, (data.component, "warned"))

    def budget_blocked(self, row: Row, data: events.BudgetBlocked) -> None:
        """A hard limit held."""
        self.budget_events.add(row, 1, (data.component, "blocked"))

    def overflow_detected(self, row: Row, data: events.OverflowDetected) -> None:
        """The window did not fit."""
        self.overflows.add(row, 1, (data.outcome,))

    def checkpoint_saved(self, row: Row, _data: events.CheckpointSaved) -> None:
        """A checkpoint was written."""
        self.checkpoints.add(row, 1, ("saved",))

    def checkpoint_loaded(self, row: Row, _data: events.CheckpointLoaded) -> None:
        """A window resumed from a checkpoint."""
        self.checkpoints.add(row, 1, ("loaded",))

    def checkpoint_rejected(self, row: Row, _data: events.CheckpointRejected) -> None:
        """A checkpoint was not used."""
        self.checkpoints.add(row, 1, ("rejected",))

    def alert_fired(self, row: Row, data: events.AlertFired) -> None:
        """An alert began to fire."""
        self.alert_seen(row, data.alert, data.severity)
        self.alert_transitions.add(row, 1, (data.alert, data.severity, "firing"))

    def alert_resolved(self, row: Row, data: events.AlertResolved) -> None:
        """An alert ceased to fire."""
        self.alert_seen(row, data.alert, data.severity)
        self.alert_transitions.add(row, 1, (data.alert, data.severity, "resolved"))

    def alert_seen(self, row: Row, alert: str, severity: str) -> None:
        """Both transitions of an alert exist once either does."""
        for state in ("firing", "resolved"):
            self.alert_transitions.touch(row, (alert, severity, state))

    def alert_labels(self, alert: str, severity: str) -> tuple[str, str]:
        """The alert and severity as labels."""
        labels = self._table.column(catalog.ALERT_TRANSITIONS, (alert, severity, "firing")).labels
        return labels[0], labels[1]


def occurring(*, alerts: Iterable[tuple[str, str]], policies: Iterable[str]) -> dict[str, list[tuple[str, ...]]]:
    """Label values that can occur, by metric: their counters exist, at zero, before anything happens."""
    evicted = [(policy, kind) for policy in policies for kind in _CONVERSATION]
    components = sorted({COMPONENT_OF[kind] for kind in _CONVERSATION})
    return {
        catalog.TURNS.name: [()],
        catalog.ADDED_TOKENS.name: [(component,) for component in components],
        catalog.CARRIED_TOKENS.name: [("fresh",), ("stale",), ("duplicate",)],
        catalog.EVICTED_BLOCKS.name: list(evicted),
        catalog.EVICTED_TOKENS.name: list(evicted),
        catalog.COMPRESSIONS.name: [
            (strategy, outcome)
            for strategy in LABELS["strategy"].values
            for outcome in ("accepted", "rejected", "failed")
        ],
        catalog.COMPRESSION_INPUT.name: [()],
        catalog.COMPRESSION_OUTPUT.name: [()],
        catalog.REGRETS.name: [(cause,) for cause in LABELS["cause"].values],
        catalog.ZONE_TRANSITIONS.name: list(permutations(ZONES, 2)),
        catalog.VELOCITY_SPIKES.name: [()],
        catalog.BUDGET_EVENTS.name: [
            (component, outcome) for component in LABELS["component"].values for outcome in ("warned", "blocked")
        ],
        catalog.OVERFLOWS.name: [
            (outcome,) for outcome in ("reduced", "retried", "rolled", "failed", "rejected")
        ],
        catalog.CHECKPOINTS.name: [(outcome,) for outcome in ("saved", "loaded", "rejected")],
        catalog.MODEL_TOKENS.name: [(kind,) for kind in LABELS["type"].values],
        catalog.COST.name: [()],
        catalog.ALERT_TRANSITIONS.name: [
            (alert, severity, state) for alert, severity in alerts for state in ("firing", "resolved")
        ],
        catalog.TURN_UTILIZATION.name: [()],
    }


COUNTED: Final[dict[type, Callable[[Tallies, Row, Any], None]]] = {
    events.BlockAdded: Tallies.block_added,
    events.TurnEnded: Tallies.turn_ended,
    events.PressureMeasured: Tallies.pressure_measured,
    events.ZoneChanged: Tallies.zone_changed,
    events.VelocitySpiked: Tallies.velocity_spiked,
    events.BlocksEvicted: Tallies.blocks_evicted,
    events.ContentCompressed: Tallies.content_compressed,
    events.ContentRegretted: Tallies.content_regretted,
    events.BudgetWarned: Tallies.budget_warned,
    events.BudgetBlocked: Tallies.budget_blocked,
    events.OverflowDetected: Tallies.overflow_detected,
    events.CheckpointSaved: Tallies.checkpoint_saved,
    events.CheckpointLoaded: Tallies.checkpoint_loaded,
    events.CheckpointRejected: Tallies.checkpoint_rejected,
    events.AlertFired: Tallies.alert_fired,
    events.AlertResolved: Tallies.alert_resolved,
}
"""Every payload that counts, with the method that counts it."""
