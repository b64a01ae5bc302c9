"""Folds events into the rows that pages read; the same fold runs when events arrive and when all is rebuilt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from windowpane.core.events import (
    AlertFired,
    AlertResolved,
    BlockAdded,
    BlocksEvicted,
    BlocksReferenced,
    ContentCompressed,
    ContentRegretted,
    Event,
    FidelityEvaluated,
    LimitChanged,
    NotificationDelivered,
    NotificationFailed,
    OverflowDetected,
    PressureMeasured,
    SessionEnded,
    SessionIncomplete,
    SessionStarted,
    TurnEnded,
    TurnStarted,
    WindowRolled,
)
from windowpane.core.vocabulary import ZONES
from windowpane.store import block_projection as blocks
from windowpane.store.operations import Operations
from windowpane.store.session_state import SEVERITIES, SessionState
from windowpane.store.turn_projection import TurnDrafts

ROUTINE: Final = frozenset(
    {
        "turn.started", "turn.ended", "block.added", "blocks.referenced", "pressure.measured",
        "notification.delivered", "notification.failed",
    }
)  # fmt: skip
"""Events that are no news in the fleet's `last_event`."""

_FIRE: Final = (
    "INSERT OR IGNORE INTO alerts (session, alert, crossing_turn, fired_seq, severity, fired_turn, fired_at, "
    "value, threshold, summary) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_RESOLVE: Final = (
    "UPDATE alerts SET resolved_turn = ?, resolved_at = ? WHERE session = ? AND alert = ? AND crossing_turn = ?"
)
_CHANNELS: Final = "SELECT delivered, failed FROM alerts WHERE session = ? AND alert = ? AND crossing_turn = ?"
_DELIVERED: Final = "UPDATE alerts SET delivered = ? WHERE session = ? AND alert = ? AND crossing_turn = ?"
_FAILED: Final = "UPDATE alerts SET failed = ? WHERE session = ? AND alert = ? AND crossing_turn = ?"
_LATE: Final = "INSERT OR IGNORE INTO late_events VALUES (?, ?, ?)"


class Projection:
    """The fold over one batch; `save` writes the turns it touched, sessions are saved by their owner."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._turns = TurnDrafts(operations)

    def apply(self, state: SessionState, event: Event, seq: int) -> None:
        """Take in one event, in the order of `seq`."""
        at, data = event.at, event.data
        state.events += 1
        if at is not None and (state.last_at is None or at > state.last_at):
            state.last_at = at
            if state.started_at is None:
                state.started_at = at
        turn = event.context.turn
        if turn < state.last_turn:
            self._operations.defer(_LATE, (state.key, turn, seq))
        elif turn > state.last_turn:
            state.last_turn = turn
            self._turns.begin(state.key, event, seq)
        if isinstance(data, BlockAdded):
            if blocks.begins_reply(state, data.block, turn):
                self._called(state, event, seq)
            if blocks.appended(self._operations, state, data.block, seq):
                return
        handler = _HANDLERS.get(type(data))
        if handler is not None:
            handler(self, state, event, seq, data)
        if data.type not in ROUTINE:
            state.last_event = data.type

    def enter(self, state: SessionState, event: Event) -> None:
        """Note who the session is; called when the events' context changes."""
        context = event.context
        state.agent = context.agent
        state.model = context.model or state.model
        state.source = context.source
        state.parent_session_id = context.parent_session_id or state.parent_session_id
        state.windows = max(state.windows, context.window_id)

    def save(self) -> None:
        """Hand over everything that is not a session row."""
        self._turns.save()
        self._operations.finish()

    # -- by event ---------------------------------------------------------------------------------------------

    def _called(self, state: SessionState, event: Event, seq: int) -> None:
        """The model was called: the window as it was just before *seq* is what it saw."""
        state.memory.called_turn = event.context.turn
        self._turns.of(state.key, event, seq).call_seq = seq - 1

    def _block_added(self, state: SessionState, event: Event, seq: int, data: BlockAdded) -> None:
        call_seq = None
        if data.block.content_type == "unattributed":
            draft = self._turns.known(state.key, event.context.turn)
            call_seq = None if draft is None else draft.call_seq
        blocks.stood_in(self._operations, state, event, seq, call_seq)

    def _evicted(self, state: SessionState, event: Event, seq: int, data: BlocksEvicted) -> None:
        state.evicted_blocks += len(data.blocks)
        state.evicted_tokens += data.tokens_removed
        blocks.evicted(self._operations, state, event, seq)

    def _compressed(self, state: SessionState, event: Event, seq: int, data: ContentCompressed) -> None:
        if data.outcome == "accepted":
            state.compressions += 1
            state.fidelity = None
            blocks.compressed(self._operations, state, event, seq)

    def _rolled(self, state: SessionState, event: Event, seq: int, data: WindowRolled) -> None:
        state.windows = max(state.windows, data.to_window)
        blocks.rolled(self._operations, state, event, seq, data.reason)

    def _referenced(self, state: SessionState, event: Event, _seq: int, _data: BlocksReferenced) -> None:
        blocks.referenced(self._operations, state, event)

    def _regretted(self, state: SessionState, event: Event, _seq: int, data: ContentRegretted) -> None:
        state.regrets += 1
        blocks.regretted(self._operations, state, data.block_id, event.context.turn)

    def _turn_started(self, state: SessionState, event: Event, seq: int, _data: TurnStarted) -> None:
        state.ended = 0
        self._turns.of(state.key, event, seq)

    def _turn_ended(self, state: SessionState, event: Event, seq: int, data: TurnEnded) -> None:
        state.turns += 1
        if data.cost_dollars is not None:
            state.cost_dollars = (state.cost_dollars or 0.0) + data.cost_dollars
        if data.usage is not None:
            state.input_tokens += data.usage.input_total
            state.output_tokens += data.usage.output_tokens
            state.cache_read_tokens += data.usage.cache_read_tokens
        if state.memory.called_turn != event.context.turn:
            self._called(state, event, seq)
        self._turns.of(state.key, event, seq).end(event, data)

    def _measured(self, state: SessionState, event: Event, seq: int, data: PressureMeasured) -> None:
        state.limit_tokens, state.limit_source = data.limit_tokens, data.limit_source
        state.used_tokens, state.count_source = data.used_tokens, data.count_source
        state.peak_used_tokens = max(state.peak_used_tokens, data.used_tokens)
        state.utilization, state.velocity = data.utilization, data.velocity
        state.turns_until_red, state.zone = data.turns_until_red, data.zone
        if data.utilization is not None:
            state.peak_utilization = max(state.peak_utilization or 0.0, data.utilization)
        if data.zone is not None and (
            state.worst_zone is None or ZONES.index(data.zone) > ZONES.index(state.worst_zone)
        ):
            state.worst_zone = data.zone
        if data.phase == "final":
            state.memory.sparkline.add(data.used_tokens, data.utilization)
        called = state.memory.called_turn == event.context.turn
        self._turns.of(state.key, event, seq).measure(data, None if called else seq)

    def _started(self, state: SessionState, _event: Event, _seq: int, data: SessionStarted) -> None:
        state.limit_tokens, state.limit_source = data.limit_tokens, data.limit_source

    def _limit(self, state: SessionState, _event: Event, _seq: int, data: LimitChanged) -> None:
        state.limit_tokens, state.limit_source = data.limit_tokens, data.limit_source

    def _ended(self, state: SessionState, _event: Event, _seq: int, _data: SessionEnded) -> None:
        state.ended = 1

    def _incomplete(self, state: SessionState, _event: Event, _seq: int, _data: SessionIncomplete) -> None:
        state.incomplete = 1

    def _overflow(self, state: SessionState, _event: Event, _seq: int, _data: OverflowDetected) -> None:
        state.overflows += 1

    def _fidelity(self, state: SessionState, _event: Event, _seq: int, data: FidelityEvaluated) -> None:
        state.fidelity = data.score

    def _fired(self, state: SessionState, event: Event, seq: int, data: AlertFired) -> None:
        self._operations.add(
            _FIRE,
            (
                state.key, data.alert, data.crossing_turn, seq, data.severity, event.context.turn, event.at,
                data.value, data.threshold, data.summary,
            ),
        )  # fmt: skip
        firing = state.memory.firing
        if (data.alert, data.crossing_turn) not in firing:
            firing.append((data.alert, data.crossing_turn))
        state.firing = len(firing)
        worst = state.worst_severity
        if worst is None or SEVERITIES.index(data.severity) > SEVERITIES.index(worst):
            state.worst_severity = data.severity

    def _resolved(self, state: SessionState, event: Event, _seq: int, data: AlertResolved) -> None:
        self._operations.add(_RESOLVE, (event.context.turn, event.at, state.key, data.alert, data.crossing_turn))
        firing = state.memory.firing
        if (data.alert, data.crossing_turn) in firing:
            firing.remove((data.alert, data.crossing_turn))
        state.firing = len(firing)

    def _delivered(
        self,
        state: SessionState,
        _event: Event,
        _seq: int,
        data: NotificationDelivered | NotificationFailed,
    ) -> None:
        identity = (state.key, data.alert, data.crossing_turn)
        found = self._operations.one(_CHANNELS, identity)
        if found is None:
            return
        delivered = isinstance(data, NotificationDelivered)
        known: list[str] = msgspec.json.decode(str(found[0 if delivered else 1]))
        if data.channel not in known:
            channels = msgspec.json.encode([*known, data.channel]).decode()
            self._operations.add(_DELIVERED if delivered else _FAILED, (channels, *identity))


Handler = Callable[[Projection, SessionState, Event, int, Any], None]

_HANDLERS: Final[dict[type, Handler]] = {
    BlockAdded: Projection._block_added,
    BlocksEvicted: Projection._evicted,
    ContentCompressed: Projection._compressed,
    WindowRolled: Projection._rolled,
    BlocksReferenced: Projection._referenced,
    ContentRegretted: Projection._regretted,
    TurnStarted: Projection._turn_started,
    TurnEnded: Projection._turn_ended,
    PressureMeasured: Projection._measured,
    SessionStarted: Projection._started,
    LimitChanged: Projection._limit,
    SessionEnded: Projection._ended,
    SessionIncomplete: Projection._incomplete,
    OverflowDetected: Projection._overflow,
    FidelityEvaluated: Projection._fidelity,
    AlertFired: Projection._fired,
    AlertResolved: Projection._resolved,
    NotificationDelivered: Projection._delivered,
    NotificationFailed: Projection._delivered,
}
