"""The metric fold: events in, every metric of the catalog out.

Constant work and memory per session: counters and histogram buckets are rows of numbers by (agent, model), gauges
last until their session ends. The fold runs on the pipeline's worker, scrapes on other threads; one lock guards
both, held for one batch of events or for the copy at the start of a scrape.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple

from windowpane.core.events import (
    AlertFired,
    AlertResolved,
    BlockAdded,
    CallsCopied,
    ContentCompressed,
    Event,
    EventContext,
    FidelityEvaluated,
    NoteAdded,
    NoteDeleted,
    NotificationDelivered,
    NotificationFailed,
    PressureMeasured,
    SessionContinued,
    SessionEnded,
    SessionIdentified,
    SessionRederived,
    SessionStarted,
    SessionTitled,
    TurnStarted,
)
from windowpane.core.protocols import Clock, EventsSkippedError
from windowpane.core.times import live_since
from windowpane.metrics import counters, gauges
from windowpane.metrics.counters import LabeledRow, Row, SeriesTable
from windowpane.metrics.families import Family, session_families
from windowpane.metrics.gauges import SessionGauges
from windowpane.metrics.labels import OTHER, LabelPolicy
from windowpane.metrics.reducer import EventReducer

MAXIMUM_SESSIONS: Final = 20_000
MAXIMUM_LABEL_SETS: Final = 2_000
"""Distinct (agent, model) pairs before the rest share (`other`, `other`)."""
_CACHED_NAMES: Final = 1_000
"""Raw (agent, model) pairs with cached labels; names come from outside and may be long and many."""

AsOf = Literal["now", "last"]
"""`now`: only sessions that are live by the reader's clock; `last`: every session that has not ended."""


class AlertKey(NamedTuple):
    """An alert that can fire, with its severity."""

    alert: str
    severity: str


class MetricState:
    """Folds events into metrics. Thread-safe; it is an `EventSink`.

    *labels* maps agents and models to labels. *alerts* and *policies* name what can occur, so that their counters
    start at zero.
    """

    def __init__(
        self,
        *,
        labels: LabelPolicy | None = None,
        alerts: Iterable[AlertKey] = (),
        policies: Iterable[str] = ("hybrid", "agent"),
        maximum_sessions: int = MAXIMUM_SESSIONS,
        maximum_label_sets: int = MAXIMUM_LABEL_SETS,
    ) -> None:
        self._labels = labels or LabelPolicy()
        self._maximum_label_sets = maximum_label_sets
        self._maximum_sessions = maximum_sessions
        self._alerts = tuple(alerts)
        self._policies = tuple(policies)
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        """Start over without any event."""
        with self._lock:
            self._reset()

    def _reset(self) -> None:
        self._table = SeriesTable()
        self._reducer = EventReducer(self._table, alerts=self._alerts, policies=self._policies)
        self._rows: list[LabeledRow] = []
        self._groups: dict[tuple[str, str], int] = {}
        """(agent, model) as labels to the index of their row."""
        self._cached_groups: dict[tuple[str, str], int] = {}
        """The same for raw names."""
        self._sessions = gauges.OpenSessions(self._maximum_sessions)
        self._copied: dict[str, CallsCopied] = {}
        """By session, its latest range of turns whose calls another session counts."""
        self._last_event_at: float | None = None
        self._context: EventContext | None = None
        self._group = 0
        self._row: Row = []
        self._session: SessionGauges | None = None

    def apply(self, event: Event, *, counted: bool = True) -> None:
        """Fold one event; with *counted* False only into gauges (an event of a repeated prefix)."""
        with self._lock:
            failed = self._fold((event,), counted=counted)
        if failed:
            raise failed[0]

    def write(self, batch: Sequence[Event]) -> None:
        """Fold a batch of events in order. Raises `EventsSkippedError` about those that cannot be folded."""
        skipped: list[Event] = []
        cause: Exception | None = None
        with self._lock:
            for turn in _by_context(batch):
                for position, error in self._fold(turn, counted=True).items():
                    skipped.append(turn[position])
                    cause = error
        if cause is not None:
            raise EventsSkippedError(skipped, cause) from cause

    def _fold(self, events: Sequence[Event], *, counted: bool) -> dict[int, Exception]:
        """Fold events of one context: counters, then gauges; return the errors of events by their position."""
        try:
            entered = self._entered(events)
        except Exception as error:  # noqa: BLE001  # a faulty event must not affect the others
            self._context = None  # it may have been entered half
            return dict.fromkeys(range(len(events)), error)
        if entered is None:
            return {}
        if self._copied and self._is_copied(events[entered].context):
            counted = False
        failed = self._reducer.count(self._row, events[entered:]) if counted else {}
        failed = {position + entered: error for position, error in failed.items()}
        self._set_gauges(events, entered, failed)
        if failed:
            self._context = None
        return failed

    def _entered(self, events: Sequence[Event]) -> int | None:
        """Enter the context of *events*; return the position of the first one to fold, or None."""
        context = events[0].context
        for position, event in enumerate(events):
            if context is self._context:
                return position
            kind = type(event.data)
            if kind in _ANNOTATIONS:
                if isinstance(event.data, CallsCopied):
                    self._remember_copied(context.session_id, event.data)
                continue  # a reader's or the store's: nothing happened in the session
            if kind in _DELIVERIES and (context.agent, context.model) not in self._cached_groups:
                continue  # delivered for another process, whose agents have no series here
            self._enter(context)
            return position
        return None

    def _remember_copied(self, session_id: str, data: CallsCopied) -> None:
        """Remember a range of copied turns, which follow before the session's next range."""
        self._copied[session_id] = data
        if len(self._copied) > self._maximum_sessions:
            del self._copied[next(iter(self._copied))]

    def _is_copied(self, context: EventContext) -> bool:
        data = self._copied.get(context.session_id)
        return data is not None and data.covers(context.turn)

    def _set_gauges(self, events: Sequence[Event], start: int, failed: dict[int, Exception]) -> None:
        """Set the gauges of the session by the events from position *start* on; add the errors to *failed*.

        Measurements are stored together, before an event that sets other gauges and at the end.
        """
        measured: dict[int, PressureMeasured] = {}
        last_at = None
        for position in range(start, len(events)):
            context, _n, at, data = events[position]
            if position in failed:
                continue
            if self._session is None and type(data) in _OPENING:
                self._session = self._sessions.open(context.session_id, self._group)
            if at is not None:
                last_at = at
                self._last_event_at = at if self._last_event_at is None else max(at, self._last_event_at)
            if self._session is None:
                continue
            if isinstance(data, PressureMeasured):
                measured[position] = data
            elif (set_gauges := _GAUGES.get(type(data))) is not None:
                failed.update(self._measure(self._session, measured))
                measured = {}
                try:
                    set_gauges(self, self._session, data)
                except Exception as error:  # noqa: BLE001  # a faulty event must not affect the others
                    failed[position] = error
                last_at = None if self._session is None else last_at  # the session has ended
        if self._session is not None:
            failed.update(self._measure(self._session, measured))
            if last_at is not None:
                self._session.last_at = last_at

    def _measure(self, session: SessionGauges, measured: dict[int, PressureMeasured]) -> dict[int, Exception]:
        """Store measurements, given by their position; return the errors of those that cannot be stored.

        Where one of several is faulty, each is stored alone.
        """
        try:
            session.measure(list(measured.values()))
        except Exception as error:  # noqa: BLE001  # a faulty event must not affect the others
            if len(measured) == 1:
                return dict.fromkeys(measured, error)
            failed: dict[int, Exception] = {}
            for position, data in measured.items():
                failed |= self._measure(session, {position: data})
            return failed
        return {}

    def _enter(self, context: EventContext) -> None:
        """Look up row and session once for the events of a turn."""
        self._group = self._group_of(context.agent, context.model)
        self._row = self._rows[self._group].row
        self._session = self._sessions.find(context.session_id)
        if self._session is not None:
            self._session.group = self._group
        self._context = context

    def _group_of(self, agent: str, model: str) -> int:
        group = self._cached_groups.get((agent, model))
        if group is None:
            group = self._label_set(self._labels.agent(agent), self._labels.model(model))
            if len(self._cached_groups) >= _CACHED_NAMES:
                self._cached_groups.clear()
            self._cached_groups[agent, model] = group
        return group

    def _label_set(self, agent: str, model: str) -> int:
        group = self._groups.get((agent, model))
        if group is None:
            if len(self._groups) >= self._maximum_label_sets and (agent, model) != (OTHER, OTHER):
                return self._label_set(OTHER, OTHER)
            group = self._groups[agent, model] = len(self._rows)
            self._rows.append(LabeledRow(agent, model, self._table.new_row()))
        return group

    def _start(self, session: SessionGauges, _data: SessionStarted) -> None:
        # A recording whose past changed is imported again from its start: gauges of the old revision are cleared.
        session.clear()

    def _continue(self, session: SessionGauges, data: SessionContinued) -> None:
        # The run before may have crashed: neither its window nor its alerts are those of the next.
        if not data.interleaved:
            session.clear()

    def _compressed(self, session: SessionGauges, data: ContentCompressed) -> None:
        ratio = data.ratio
        if ratio is not None:
            session.set(gauges.RATIO_COLUMN, ratio)

    def _evaluated(self, session: SessionGauges, data: FidelityEvaluated) -> None:
        column = gauges.FIDELITY_COLUMNS.get(data.method)
        if column is not None and data.score is not None:
            session.set(column, data.score)
        if data.method == "probe" and (data.facts_total or data.form):
            session.set(gauges.FAULTS_COLUMN, data.facts_contradicted + len(data.form))

    def _alert_fired(self, session: SessionGauges, data: AlertFired) -> None:
        self._set_firing(session, data.alert, data.severity, firing=True)

    def _alert_resolved(self, session: SessionGauges, data: AlertResolved) -> None:
        self._set_firing(session, data.alert, data.severity, firing=False)

    def _set_firing(self, session: SessionGauges, alert: str, severity: str, *, firing: bool) -> None:
        declared = self._reducer.declare_alert(self._row, alert, severity)
        (session.firing.add if firing else session.firing.discard)(declared)

    def _end(self, session: SessionGauges, _data: SessionEnded) -> None:
        self._sessions.release(session)
        self._session = None

    def collect(self, *, now: float, as_of: AsOf = "now", top_sessions: int = 0) -> list[Family]:
        """Return every metric with a value: gauges of live sessions, counters and histograms of all.

        *top_sessions* adds the gauges with a `session` label for that many sessions, fullest first.
        """
        since = live_since(now) if as_of == "now" else None
        with self._lock:
            live = self._sessions.live(since=since)
            rows = [LabeledRow(agent, model, row.copy()) for agent, model, row in self._rows]
            columns = tuple(self._table.columns)
        return session_families(live, rows, columns, top_sessions=top_sessions)

    @property
    def last_event_at(self) -> float | None:
        """Time of the newest event; None before the first event with a time."""
        return self._last_event_at

    @property
    def open_sessions(self) -> int:
        """Number of sessions that have started and not ended, live or not."""
        return len(self._sessions)

    def dump(self) -> bytes:
        """Serialize counters and histograms; gauges belong to live sessions and are not persisted."""
        with self._lock:
            return counters.dump(self._table, self._rows)

    def load(self, raw: bytes) -> None:
        """Add a dump to the counters. Raises `StoreError` for a damaged dump, and then adds nothing."""
        checked = SeriesTable()
        counters.restore(raw, checked, lambda _agent, _model: checked.new_row())
        with self._lock:
            counters.restore(raw, self._table, self._restored_row)

    def _restored_row(self, agent: str, model: str) -> Row:
        return self._rows[self._label_set(self._labels.agent(agent), model)].row


def _by_context(batch: Sequence[Event]) -> Iterator[Sequence[Event]]:
    """Yield the events of a batch, those of one turn together, which share their context."""
    start, context = 0, batch[0].context if batch else None
    for position, event in enumerate(batch):
        if event.context is not context:
            yield batch[start:position]
            start, context = position, event.context
    if batch:
        yield batch[start:]


_ANNOTATIONS: Final = frozenset(
    {CallsCopied, NoteAdded, NoteDeleted, SessionIdentified, SessionRederived, SessionTitled}
)
_DELIVERIES: Final = frozenset({NotificationDelivered, NotificationFailed})
"""Results of notifications; any process that shares the outbox may deliver them."""

_OPENING: Final = frozenset({SessionStarted, TurnStarted, BlockAdded, PressureMeasured})
"""Events that open a session; a late evaluation or alert does not reopen an ended session."""

_GAUGES: Final[dict[type, Callable[[MetricState, SessionGauges, Any], None]]] = {
    SessionStarted: MetricState._start,
    SessionContinued: MetricState._continue,
    ContentCompressed: MetricState._compressed,
    FidelityEvaluated: MetricState._evaluated,
    AlertFired: MetricState._alert_fired,
    AlertResolved: MetricState._alert_resolved,
    SessionEnded: MetricState._end,
}
"""Type of a payload to the method that sets the gauges of a session that has not ended."""


class StateSource:
    """A `FamilySource` over a fold's current state."""

    def __init__(self, state: MetricState, *, clock: Clock, as_of: AsOf = "now", top_sessions: int = 0) -> None:
        self._state = state
        self._clock = clock
        self._as_of = as_of
        self._top_sessions = top_sessions

    def collect(self) -> list[Family]:
        """Return every session metric with a value now."""
        return self._state.collect(now=self._clock(), as_of=self._as_of, top_sessions=self._top_sessions)
