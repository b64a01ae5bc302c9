"""The metric fold: events in, every metric of the catalog out.

Constant work and memory a session: counters and histogram buckets are rows of numbers by (agent, model), gauges
sit in slots that a session gives back when it ends. The fold runs on the pipeline's worker, scrapes on other
threads; one lock guards both, held for one batch of events or for the copy a scrape begins with.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple

from windowpane.core.events import (
    AlertFired,
    AlertResolved,
    BlockAdded,
    ContentCompressed,
    Event,
    EventContext,
    FidelityEvaluated,
    NotificationDelivered,
    NotificationFailed,
    PressureMeasured,
    SessionEnded,
    SessionStarted,
    TurnStarted,
)
from windowpane.core.limits import LIVE_SECONDS
from windowpane.metrics import persisted, reading, sessions
from windowpane.metrics.families import Family
from windowpane.metrics.labels import LabelPolicy
from windowpane.metrics.metric import OTHER
from windowpane.metrics.persisted import LabelSet
from windowpane.metrics.series import Row, SeriesTable
from windowpane.metrics.tallies import COUNTED, Tallies

MAXIMUM_SESSIONS: Final = 20_000
MAXIMUM_LABEL_SETS: Final = 2_000
"""Distinct (agent, model) before the rest share (`other`, `other`)."""
_REMEMBERED_NAMES: Final = 1_000
"""Raw (agent, model) pairs whose labels are kept ready; names come from outside and may be long and many."""

AsOf = Literal["now", "last"]
"""Whether sessions are judged live by the reader's clock, or each session's last event is taken as now."""


class AlertKey(NamedTuple):
    """An alert that can fire, and how bad it is."""

    alert: str
    severity: str


class MetricState:
    """Folds events into metrics. Thread-safe; it is an `EventSink`.

    *labels* decides how agents and models become labels. *alerts* and *policies* name what can occur, so that
    their counters start at zero.
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
        self._lock = threading.Lock()
        self._table = SeriesTable()
        self._tallies = Tallies(self._table)
        self._tallies.start_at_zero(self._table, alerts=alerts, policies=policies)
        self._rows: list[LabelSet] = []
        self._groups: dict[tuple[str, str], int] = {}
        self._named: dict[tuple[str, str], int] = {}
        self._sessions = sessions.SessionGauges(maximum_sessions)
        self._last_event_at: float | None = None
        self._context: EventContext | None = None
        self._group = 0
        self._row: Row = []
        self._slot: int | None = None

    # -- folding ----------------------------------------------------------------------------------------------

    def apply(self, event: Event, *, counted: bool = True) -> None:
        """Fold one event; *counted* False leaves counters and histograms alone (a repeated prefix)."""
        with self._lock:
            self._apply(event, counted=counted)

    def write(self, batch: Sequence[Event]) -> None:
        """Fold a batch of events in order."""
        with self._lock:
            for event in batch:
                self._apply(event, counted=True)

    def _apply(self, event: Event, *, counted: bool) -> None:
        context, _, at, data = event
        kind = type(data)
        if context is not self._context:
            if kind in _DELIVERIES and (context.agent, context.model) not in self._named:
                return  # told on behalf of another process, whose agent's series are not ours
            self._enter(context)
        if self._slot is None and kind in _OPENING:
            self._slot = self._sessions.open(context.session_id, self._group)
        if at is not None:
            if self._slot is not None:
                self._sessions.touch(self._slot, at)
            if self._last_event_at is None or at > self._last_event_at:
                self._last_event_at = at
        if counted:
            count = COUNTED.get(kind)
            if count is not None:
                count(self._tallies, self._row, data)
        if self._slot is not None:
            set_gauges = _GAUGES.get(kind)
            if set_gauges is not None:
                set_gauges(self, self._slot, data)

    def _enter(self, context: EventContext) -> None:
        """The following events belong to this turn."""
        self._group = self._group_of(context.agent, context.model)
        self._row = self._rows[self._group].row
        self._slot = self._sessions.slot(context.session_id)
        if self._slot is not None:
            self._sessions.move(self._slot, self._group)
        self._context = context

    def _group_of(self, agent: str, model: str) -> int:
        group = self._named.get((agent, model))
        if group is None:
            group = self._label_set(self._labels.agent(agent), self._labels.model(model))
            if len(self._named) >= _REMEMBERED_NAMES:
                self._named.clear()
            self._named[agent, model] = group
        return group

    def _label_set(self, agent: str, model: str) -> int:
        group = self._groups.get((agent, model))
        if group is None:
            if len(self._groups) >= self._maximum_label_sets and (agent, model) != (OTHER, OTHER):
                return self._label_set(OTHER, OTHER)
            group = self._groups[agent, model] = len(self._rows)
            self._rows.append(LabelSet(agent, model, self._table.row()))
        return group

    # -- gauges that events carry -----------------------------------------------------------------------------

    def _start(self, slot: int, _data: SessionStarted) -> None:
        # A recording whose past changed is told again from its start; what the old telling left must not stay.
        self._sessions.forget(slot)

    def _measure(self, slot: int, data: PressureMeasured) -> None:
        self._sessions.measure(slot, data)

    def _compressed(self, slot: int, data: ContentCompressed) -> None:
        ratio = data.ratio
        if ratio is not None:
            self._sessions.set(slot, sessions.RATIO_COLUMN, ratio)

    def _evaluated(self, slot: int, data: FidelityEvaluated) -> None:
        column = sessions.FIDELITY_COLUMNS.get(data.method)
        if column is not None and data.score is not None:
            self._sessions.set(slot, column, data.score)

    def _fired(self, slot: int, data: AlertFired) -> None:
        self._mark(slot, data.alert, data.severity, firing=True)

    def _resolved(self, slot: int, data: AlertResolved) -> None:
        self._mark(slot, data.alert, data.severity, firing=False)

    def _mark(self, slot: int, alert: str, severity: str, *, firing: bool) -> None:
        self._tallies.alert_seen(self._row, alert, severity)
        self._sessions.fire(slot, self._tallies.alert_labels(alert, severity), firing=firing)

    def _end(self, slot: int, _data: SessionEnded) -> None:
        self._sessions.close_slot(slot)
        self._slot = None

    # -- reading ----------------------------------------------------------------------------------------------

    def collect(self, *, now: float, as_of: AsOf = "now", top_sessions: int = 0) -> list[Family]:
        """Every metric that has a value: gauges of live sessions, counters and histograms of all.

        *top_sessions* adds the gauges with a `session` label for that many sessions, fullest first.
        """
        since = now - LIVE_SECONDS if as_of == "now" else None
        with self._lock:
            live = self._sessions.live(since=since, with_ids=top_sessions > 0)
            rows = [LabelSet(agent, model, row.copy()) for agent, model, row in self._rows]
            columns = tuple(self._table.columns)
        return reading.families(live, rows, columns, top_sessions=top_sessions)

    @property
    def last_event_at(self) -> float | None:
        """Time of the newest event seen; None before the first that has one."""
        return self._last_event_at

    @property
    def open_sessions(self) -> int:
        """Sessions that have begun and not ended, live or not."""
        return len(self._sessions)

    # -- persistence ------------------------------------------------------------------------------------------

    def dump(self) -> bytes:
        """Counters and histograms as bytes; gauges belong to live sessions and are not kept."""
        with self._lock:
            return persisted.dump(self._table, self._rows)

    def load(self, raw: bytes) -> None:
        """Add a dump to what is counted here. Raises `StoreError` where it is damaged, and then adds nothing."""
        checked = SeriesTable()
        persisted.restore(raw, checked, lambda _agent, _model: checked.row())
        with self._lock:
            persisted.restore(raw, self._table, self._restored_row)

    def _restored_row(self, agent: str, model: str) -> Row:
        return self._rows[self._label_set(self._labels.agent(agent), model)].row


_DELIVERIES: Final = frozenset({NotificationDelivered, NotificationFailed})
"""What became of messages; whichever process shares the outbox delivers them."""

_OPENING: Final = frozenset({SessionStarted, TurnStarted, BlockAdded, PressureMeasured})
"""What shows that a session goes on; a late judgement or alert does not bring an ended one back."""

_GAUGES: Final[dict[type, Callable[[MetricState, int, Any], None]]] = {
    SessionStarted: MetricState._start,
    PressureMeasured: MetricState._measure,
    ContentCompressed: MetricState._compressed,
    FidelityEvaluated: MetricState._evaluated,
    AlertFired: MetricState._fired,
    AlertResolved: MetricState._resolved,
    SessionEnded: MetricState._end,
}
"""Every payload that sets a gauge of a session that has not ended."""
