"""The projection: a fold of events into the rows of sessions, turns, blocks and alerts that pages read.

The same fold runs when events are appended, when every row is rebuilt and when the audit compares the rows with
the events, so all give the same rows. A change of the fold therefore needs a migration that rebuilds them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from windowpane.core.events import (
    ANNOTATIONS,
    AlertFired,
    AlertResolved,
    BlockAdded,
    BlocksEvicted,
    BlocksReferenced,
    CacheBroken,
    CallsCopied,
    CompactionMeasured,
    ContentCompressed,
    ContentRegretted,
    Event,
    EventContext,
    FidelityEvaluated,
    LimitChanged,
    NotificationDelivered,
    NotificationFailed,
    OverflowDetected,
    PressureMeasured,
    QuotaMeasured,
    ReplyDiscarded,
    SessionContinued,
    SessionDescribed,
    SessionEnded,
    SessionIdentified,
    SessionIncomplete,
    SessionStarted,
    SessionTitled,
    StaticContentRemoved,
    TotalsStated,
    TurnEnded,
    TurnStarted,
    WindowRolled,
)
from windowpane.core.vocabulary import REPLY_TYPES, REWOUND, SEVERITIES
from windowpane.store import quotas
from windowpane.store.projections import alerts, block_drafts
from windowpane.store.projections.block_drafts import BlockDrafts
from windowpane.store.projections.call_ids import CallIds
from windowpane.store.projections.session_drafts import PRICE_SCALE, RunPart, SessionDraft
from windowpane.store.projections.trends import COUNTED, DayDrafts
from windowpane.store.projections.turns import TurnChange, TurnDraft, TurnDrafts
from windowpane.store.statements import StatementBatch

_log: Final = logging.getLogger(__name__)

ROUTINE: Final = frozenset(
    {
        "turn.started", "turn.ended", "block.added", "blocks.referenced", "reply.discarded",
        "static_content.removed", "pressure.measured",
        "notification.delivered", "notification.failed", "quota.measured",
        "session.described", "session.rederived",
        "misstep.observed",
        *ANNOTATIONS,
    }
)  # fmt: skip
"""Events that do not change the fleet's `last_event`."""

BY_READER: Final = "reader"
"""Source of a title that a reader gave, which no recording replaces."""

_LATE: Final = "INSERT INTO late_events (session, turn, seq) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"


class Projection:
    """The fold over one batch; `save` writes the turns it touched, the caller saves the sessions.

    Changes of turns, days and the peak are collected and made together. A handler that reads these, or that
    changes a value they depend on (names, limits, overflows), calls `_settle` first.
    """

    def __init__(self, statements: StatementBatch) -> None:
        self._statements = statements
        self._turns = TurnDrafts(statements)
        self._days = DayDrafts(statements)
        self._blocks = BlockDrafts(statements)
        self.calls = CallIds(statements)
        self._turn_changes: list[TurnChange] = []
        """Changes of the session's turns that are not made yet."""
        self._counted: list[Event] = []
        """Events that the days of the session do not count yet."""
        self._measured_sizes: list[tuple[PressureMeasured, int, str]] = []
        """Measurements that the session's peak does not count yet, with turn and model."""
        self._has_new_peak = False
        self.first_turns: set[int] = set()
        """Row numbers of the sessions whose first turn ends in the batch."""

    def load_turns(self, sessions: Sequence[int]) -> None:
        """Read the last turns of sessions that the batch continues with one statement, by their row numbers."""
        self._turns.load_last(sessions)

    def apply(self, session: SessionDraft, events: Sequence[Event], seqs: Sequence[int]) -> None:
        """Apply events of one session in order, with their numbers."""
        for event in events:
            if type(event.data) is CallsCopied:
                session.memory.add_copied(event.data.first_turn, event.data.last_turn)
        self.calls.apply(session, events)
        context = None
        for event, seq in zip(events, seqs, strict=True):
            if event.context is not context:
                context = event.context
                self._enter(session, context)
            self._apply(session, event, seq)
        self._settle(session)
        if self._has_new_peak:
            self._has_new_peak = False
            peak = session.memory.peak
            fullest = peak.fullest
            if fullest is not None:
                session.peak_used_tokens, session.peak_utilization = fullest.tokens, fullest.utilization
                session.worst_zone = peak.worst_zone

    def _apply(self, session: SessionDraft, event: Event, seq: int) -> None:
        context, _n, at, data = event
        session.events += 1
        if at is not None and (session.last_at is None or at > session.last_at) and data.type not in ANNOTATIONS:
            session.last_at = at
            if session.started_at is None:
                session.started_at = at
        if context.turn != session.last_turn:
            self._enter_turn(session, event, seq)
        kind = type(data)
        memory = session.memory
        if kind in COUNTED and not (memory.copied and memory.is_copied(context.turn)):
            self._counted.append(event)
        handler = _HANDLERS.get(kind)
        if handler is not None:
            handler(self, session, event, seq, data)
        if data.type not in ROUTINE:
            session.last_event = data.type

    def _settle(self, session: SessionDraft) -> None:
        """Make the collected changes."""
        if self._turn_changes:
            changes, self._turn_changes = self._turn_changes, []
            self._turns.apply(session.key, changes)
        if self._counted:
            counted, self._counted = self._counted, []
            self._days.count(session, counted)
        if self._measured_sizes:
            sizes, self._measured_sizes = self._measured_sizes, []
            session.memory.peak.count_all(sizes, overflowed=session.overflows > 0)
            self._has_new_peak = True

    def _enter_turn(self, session: SessionDraft, event: Event, seq: int) -> None:
        """Start the row of a new turn, or record an event that comes after a later turn had started."""
        turn = event.context.turn
        if turn > session.last_turn:
            session.last_turn = turn
            self._turn_changes.append(TurnChange(event, seq, is_new=True))
        else:
            self._statements.defer(_LATE, (session.key, turn, seq))

    def _enter(self, session: SessionDraft, context: EventContext) -> None:
        """Record the session's identity."""
        model = context.model or session.model
        if (context.agent, model) != (session.agent, session.model):
            self._settle(session)
            session.agent, session.model = context.agent, model
        session.source = context.source
        session.parent_session_id = context.parent_session_id or session.parent_session_id
        session.windows = max(session.windows, context.window_id)

    def save(self) -> None:
        """Write everything except the session rows."""
        self._turns.save()
        self._days.save()
        self._blocks.save()
        self._statements.finish()

    # -- by event ---------------------------------------------------------------------------------------------

    def _called(self, session: SessionDraft, event: Event, seq: int) -> None:
        """Record a model call with the window just before *seq*."""
        session.memory.called_turn = event.context.turn
        self._turn_changes.append(TurnChange(event, seq, partial(TurnDraft.call, moment=seq - 1)))

    def _block_added(self, session: SessionDraft, event: Event, seq: int, data: BlockAdded) -> None:
        block, turn = data.block, event.context.turn
        if block.content_type in REPLY_TYPES and session.memory.called_turn != turn:
            self._called(session, event, seq)
        if block.exchange > session.exchanges:  # noqa: PLR1730  # max() costs a call, on the busiest path of all
            session.exchanges = block.exchange
        if block_drafts.is_appended(session, block):
            block_drafts.append(self._blocks.of(session), session, block, seq)
            return
        call_seq = None
        if block.content_type == "unattributed":
            self._settle(session)
            draft = self._turns.find(session.key, turn)
            call_seq = None if draft is None else draft.call_seq
        block_drafts.replace_others(self._blocks.of(session), session, block, turn, seq, call_seq=call_seq)

    def _evicted(self, session: SessionDraft, event: Event, seq: int, data: BlocksEvicted) -> None:
        if data.policy != REWOUND:
            session.evicted_blocks += len(data.blocks)
            session.evicted_tokens += data.tokens_removed
        block_drafts.evict(self._blocks.of(session), session, data, event.context.turn, seq)

    def _discarded(self, session: SessionDraft, event: Event, seq: int, data: ReplyDiscarded) -> None:
        reason = "not sent back by the agent"
        block_drafts.discard(
            self._blocks.of(session), session, data.block_ids, event.context.turn, seq, reason=reason
        )

    def _static_removed(self, session: SessionDraft, event: Event, seq: int, data: StaticContentRemoved) -> None:
        reason = "no longer sent by the agent"
        block_drafts.discard(
            self._blocks.of(session), session, data.block_ids, event.context.turn, seq, reason=reason
        )

    def _compressed(self, session: SessionDraft, event: Event, seq: int, data: ContentCompressed) -> None:
        if not session.memory.is_copied(event.context.turn):
            _add_cost(session, data.cost_dollars)
        if data.outcome == "accepted":
            session.compressions += 1
            session.fidelity = None
            session.memory.compress(event.event_id)
            session.memory.compressed_exchange = session.exchanges
            block_drafts.compress(self._blocks.of(session), session, data, event.context.turn, seq)

    def _rolled(self, session: SessionDraft, event: Event, seq: int, data: WindowRolled) -> None:
        session.windows = max(session.windows, data.to_window)
        block_drafts.roll(self._blocks.of(session), session, event.context.turn, seq, data.reason)

    def _referenced(self, session: SessionDraft, event: Event, seq: int, data: BlocksReferenced) -> None:
        block_drafts.refer(self._blocks.of(session), data, event.context.turn, seq)

    def _regretted(self, session: SessionDraft, event: Event, seq: int, data: ContentRegretted) -> None:
        session.regrets += 1
        self._blocks.of(session).regret(data.block_id, event.context.turn, seq)

    def _cache_broken(self, session: SessionDraft, event: Event, _seq: int, data: CacheBroken) -> None:
        if session.memory.is_copied(event.context.turn):
            return
        session.cache_breaks += 1
        session.cache_break_tokens += data.rewritten_tokens
        if data.dollars is not None:
            session.cache_break_dollars = (session.cache_break_dollars or 0.0) + data.dollars

    def _turn_started(self, session: SessionDraft, event: Event, seq: int, _data: TurnStarted) -> None:
        session.ended = 0
        self._turn_changes.append(TurnChange(event, seq))

    def _turn_ended(self, session: SessionDraft, event: Event, seq: int, data: TurnEnded) -> None:
        session.turns += 1
        if session.turns == 1:
            self.first_turns.add(session.key)
        if session.memory.compressed_exchange is not None:
            session.compressions_in_task += session.memory.compressed_exchange == session.exchanges
            session.memory.compressed_exchange = None
        total = 0 if data.usage is None else data.usage.input_total
        if session.memory.is_copied(event.context.turn):
            session.copied_turns += 1
        else:
            self._add_call(session, data, total)
        if session.memory.called_turn != event.context.turn:
            self._called(session, event, seq)
        change = partial(TurnDraft.end, event=event, data=data, input_tokens=total)
        self._turn_changes.append(TurnChange(event, seq, change))

    def _add_call(self, session: SessionDraft, data: TurnEnded, total: int) -> None:
        """Add a call with an input of *total* tokens to the session's sums."""
        _add_cost(session, data.cost_dollars)
        if data.usage is not None:
            session.input_tokens += total
            session.output_tokens += data.usage.output_tokens
            session.estimated_outputs += data.recorded_output_tokens is not None
            session.cache_read_tokens += data.usage.cache_read_tokens
            if data.cost_dollars and total > 0:
                session.carried_price += round(data.cost_dollars * PRICE_SCALE / total)

    def _measured(self, session: SessionDraft, event: Event, seq: int, data: PressureMeasured) -> None:
        session.limit_tokens, session.limit_source = data.limit_tokens, data.limit_source
        session.used_tokens, session.count_source = data.used_tokens, data.count_source
        session.utilization, session.velocity = data.utilization, data.velocity
        session.turns_until_red, session.zone = data.turns_until_red, data.zone
        session.compaction_tokens, session.compaction_evidence = data.compaction_tokens, data.compaction_evidence
        session.turns_until_compaction = data.turns_until_compaction
        context = event.context
        self._measured_sizes.append((data, context.turn, context.model))
        if data.phase == "next":
            return  # the turn that sends it counts it
        called = session.memory.called_turn == event.context.turn
        change = partial(TurnDraft.measure, data=data, moment=None if called else seq)
        self._turn_changes.append(TurnChange(event, seq, change))

    def _compaction_measured(
        self, session: SessionDraft, event: Event, _seq: int, data: CompactionMeasured
    ) -> None:
        self._settle(session)
        session.memory.peak.count_compaction(data, event.context.turn, overflowed=session.overflows > 0)
        self._has_new_peak = True

    def _started(self, session: SessionDraft, _event: Event, _seq: int, data: SessionStarted) -> None:
        session.limit_tokens, session.limit_source = data.limit_tokens, data.limit_source

    def _quota(self, session: SessionDraft, event: Event, _seq: int, data: QuotaMeasured) -> None:
        if event.at is None:
            return
        for window in data.windows:
            row = quotas.row(session.agent, window.minutes, window.resets_at, window.used_ratio, event.at)
            self._statements.add(quotas.RECORD, row)
        self._statements.add(quotas.EXPIRE, (event.at - quotas.RETAINED_SECONDS,))

    def _described(self, session: SessionDraft, _event: Event, _seq: int, data: SessionDescribed) -> None:
        self._settle(session)
        if session.title_source != BY_READER:
            session.title = data.title or session.title
            session.title_source = data.title_source or session.title_source
        session.folder = data.folder or session.folder
        session.repository = data.repository or session.repository
        session.branch = data.branch or session.branch
        session.agent_version = data.agent_version or session.agent_version
        session.label = data.label or session.label
        if data.project:
            session.project = data.project
            self._days.move(session)

    def _titled(self, session: SessionDraft, _event: Event, _seq: int, data: SessionTitled) -> None:
        session.title, session.title_source = data.title, BY_READER

    def _identified(self, session: SessionDraft, _event: Event, _seq: int, data: SessionIdentified) -> None:
        self._settle(session)
        session.same_as = data.same_as
        self._days.remove(session.key)

    def _continued(self, session: SessionDraft, event: Event, seq: int, data: SessionContinued) -> None:
        """Start with an empty window, unless the other run records on: what it left was never sent again."""
        memory = session.memory
        memory.continue_with(
            RunPart(data.run, data.number, data.from_turn, data.turns, data.windows, data.exchanges)
        )
        if not data.interleaved:
            block_drafts.roll(self._blocks.of(session), session, event.context.turn, seq, "session continued")
            for alert, crossing_turn in memory.firing:  # of a run that did not end
                alerts.resolve(self._statements, session.key, event, alert, crossing_turn)
            memory.firing, session.firing = [], 0

    def _totals(self, session: SessionDraft, _event: Event, _seq: int, data: TotalsStated) -> None:
        session.stated_input_tokens, session.stated_output_tokens = data.input_tokens, data.output_tokens
        session.stated_cost_dollars = data.cost_dollars

    def _limit(self, session: SessionDraft, event: Event, _seq: int, data: LimitChanged) -> None:
        self._settle(session)
        session.limit_tokens, session.limit_source = data.limit_tokens, data.limit_source
        peak = session.memory.peak
        limits = peak.change_limit(data, event.context.model)
        if peak.now is not None:
            session.utilization, session.zone = peak.now.utilization, peak.now.zone
        self._has_new_peak = True
        if limits is not None and data.previous_tokens:
            self._turns.correct(session.key, data.previous_tokens, limits)
            self._days.correct(session, data.previous_tokens, limits.limit_tokens)

    def _ended(self, session: SessionDraft, _event: Event, _seq: int, _data: SessionEnded) -> None:
        session.ended = 1

    def _incomplete(self, session: SessionDraft, _event: Event, _seq: int, _data: SessionIncomplete) -> None:
        session.incomplete = 1

    def _overflow(self, session: SessionDraft, _event: Event, _seq: int, _data: OverflowDetected) -> None:
        self._settle(session)
        session.overflows += 1

    def _fidelity(self, session: SessionDraft, _event: Event, _seq: int, data: FidelityEvaluated) -> None:
        """Record the evaluation of the last compression; that of an earlier one may come after it."""
        if data.of not in session.memory.compressions[:-1]:
            session.fidelity = data.score

    def _fired(self, session: SessionDraft, event: Event, seq: int, data: AlertFired) -> None:
        alerts.fire(self._statements, session.key, event, seq, data)
        firing = session.memory.firing
        if (data.alert, data.crossing_turn) not in firing:
            firing.append((data.alert, data.crossing_turn))
        session.firing = len(firing)
        worst = session.worst_severity
        if worst is None or SEVERITIES.index(data.severity) > SEVERITIES.index(worst):
            session.worst_severity = data.severity

    def _resolved(self, session: SessionDraft, event: Event, _seq: int, data: AlertResolved) -> None:
        alerts.resolve(self._statements, session.key, event, data.alert, data.crossing_turn)
        firing = session.memory.firing
        if (data.alert, data.crossing_turn) in firing:
            firing.remove((data.alert, data.crossing_turn))
        session.firing = len(firing)

    def _delivered(
        self,
        session: SessionDraft,
        _event: Event,
        _seq: int,
        data: NotificationDelivered | NotificationFailed,
    ) -> None:
        alerts.record_delivery(self._statements, session.key, data)


def _add_cost(session: SessionDraft, dollars: float | None) -> None:
    if dollars is not None:
        session.cost_dollars = (session.cost_dollars or 0.0) + dollars


Handler = Callable[[Projection, SessionDraft, Event, int, Any], None]

_HANDLERS: Final[dict[type, Handler]] = {
    BlockAdded: Projection._block_added,
    BlocksEvicted: Projection._evicted,
    ReplyDiscarded: Projection._discarded,
    StaticContentRemoved: Projection._static_removed,
    ContentCompressed: Projection._compressed,
    WindowRolled: Projection._rolled,
    BlocksReferenced: Projection._referenced,
    ContentRegretted: Projection._regretted,
    CacheBroken: Projection._cache_broken,
    TurnStarted: Projection._turn_started,
    TurnEnded: Projection._turn_ended,
    PressureMeasured: Projection._measured,
    CompactionMeasured: Projection._compaction_measured,
    SessionStarted: Projection._started,
    QuotaMeasured: Projection._quota,
    SessionDescribed: Projection._described,
    SessionTitled: Projection._titled,
    SessionIdentified: Projection._identified,
    SessionContinued: Projection._continued,
    LimitChanged: Projection._limit,
    TotalsStated: Projection._totals,
    SessionEnded: Projection._ended,
    SessionIncomplete: Projection._incomplete,
    OverflowDetected: Projection._overflow,
    FidelityEvaluated: Projection._fidelity,
    AlertFired: Projection._fired,
    AlertResolved: Projection._resolved,
    NotificationDelivered: Projection._delivered,
    NotificationFailed: Projection._delivered,
}
