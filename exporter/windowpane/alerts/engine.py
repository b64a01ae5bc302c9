"""The alert engine: evaluates rules over events; an alert is pending, firing, then resolved.

A pure state machine: what it emits depends only on its input events, without a clock or chance, so that
evaluating a recording twice gives the same bytes. Alerts are emitted in a stream separate from the session's,
so that they do not change the numbering of its events. A condition that starts to hold at turn *n* fires at most
once for that turn.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from windowpane.alerts.conditions import (
    RELEVANT_PAYLOADS,
    DueEvent,
    Occurrence,
    SignalHistory,
    level_readings,
    sample_readings,
)
from windowpane.alerts.rules import Rule, configured
from windowpane.alerts.summary import firing_summary
from windowpane.core.events import (
    ALERT_STREAM,
    AlertFired,
    AlertResolved,
    BlockAdded,
    Event,
    EventContext,
    Payload,
    PressureMeasured,
    SessionEnded,
    SessionStarted,
)
from windowpane.core.stored_payloads import stored_payload

RATIO_HYSTERESIS: Final = 0.03
SHARE_HYSTERESIS: Final = 0.10
"""Share of the threshold, for all units except ratios."""


def hysteresis(rule: Rule, threshold: float | None = None) -> float:
    """Return how far a value must come back past *threshold* (default: the rule's) to resolve the alert."""
    threshold = rule.threshold if threshold is None else threshold
    if threshold is None or rule.unit == "zone":
        return 0.0
    return RATIO_HYSTERESIS if rule.unit == "ratio" else SHARE_HYSTERESIS * abs(threshold)


def breaches(rule: Rule, value: float, threshold: float) -> bool:
    """Return whether *value* is on the wrong side of *threshold*."""
    match rule.comparison:
        case "at_least":
            return value >= threshold
        case "above":
            return value > threshold
        case "at_most":
            return value <= threshold
        case "ahead":
            return 0 < value <= threshold
        case "below":
            return value < threshold
        case "occurs":
            return value > 0


def has_cleared(rule: Rule, value: float, threshold: float) -> bool:
    """Return whether *value* has come back past *threshold* by the hysteresis."""
    margin = hysteresis(rule, threshold)
    if rule.comparison == "ahead":
        return value > threshold + margin  # what has come did not go away
    resolving = threshold - margin if rule.comparison in ("at_least", "above") else threshold + margin
    return not breaches(rule, value, resolving)


MAXIMUM_SESSIONS: Final = 10_000
"""Live sessions in memory, and ended ones likewise; the least recently active are dropped first."""

AlertPayload = AlertFired | AlertResolved


@dataclass(slots=True)
class _Alert:
    """One rule's state in one session."""

    crossing_turn: int | None = None
    """Turn at which the condition started to hold; None while it does not."""
    turns_held: int = 0
    fired_turn: int | None = None
    """None while pending or inactive."""
    last_crossing_turn: int = -1
    """Crossing turn of the last firing: the same one never fires twice."""
    last_occurred: int = 0
    value: float | None = None
    threshold: float | None = None

    def hold(
        self,
        rule: Rule,
        turn: int,
        value: float | None,
        threshold: float | None,
        pressure: PressureMeasured | None,
        *,
        entered: PressureMeasured | None = None,
        inhibited: bool = False,
        subject: str = "",
    ) -> list[AlertPayload]:
        """Record that the condition holds in *turn*: fire, unless it is too early or *inhibited*."""
        self.value, self.threshold = _finite(value), _finite(threshold)
        if self.crossing_turn is None:
            if turn <= self.last_crossing_turn:
                return []
            self.crossing_turn, self.turns_held = turn, 0
        self.turns_held += 1
        if self.fired_turn is not None or inhibited or self.turns_held < rule.sustained_turns:
            return []
        self.fired_turn, self.last_crossing_turn = turn, self.crossing_turn
        text = firing_summary(rule, self.value, self.threshold, pressure, entered)
        return [
            AlertFired(rule.name, rule.severity, self.crossing_turn, self.value, self.threshold, text, subject)
        ]

    def is_due_again(self, rule: Rule, turn: int) -> bool:
        """Return whether the alert has fired for so long that it fires anew."""
        fired, repeat = self.fired_turn, rule.repeat_turns
        return fired is not None and repeat is not None and turn - fired >= repeat

    def resolve(self, rule: Rule, value: float | None) -> list[AlertPayload]:
        """Record that the condition no longer holds: discard a pending alert, resolve a firing one."""
        crossing_turn, fired = self.crossing_turn, self.fired_turn
        self.crossing_turn, self.fired_turn, self.turns_held = None, None, 0
        if crossing_turn is None or fired is None:
            return []
        return [AlertResolved(rule.name, rule.severity, crossing_turn, _finite(value), self.threshold, fired)]


class _Session:
    """The alerts and signals of one stream of events."""

    __slots__ = ("alerts", "context", "history", "n")

    def __init__(self, n: int) -> None:
        self.n = n
        """Number of the next alert event."""
        self.history = SignalHistory()
        self.alerts: dict[str, _Alert] = {}
        self.context: EventContext | None = None

    def alert(self, rule: Rule) -> _Alert:
        state = self.alerts.get(rule.name)
        if state is None:
            state = self.alerts[rule.name] = _Alert()
        return state

    def inhibits(self, rule: Rule) -> bool:
        """Return whether an alert fires that makes one of *rule* superfluous."""
        firing = (self.alerts.get(name) for name in rule.inhibited_by)
        return any(alert is not None and alert.fired_turn is not None for alert in firing)

    def event(self, data: AlertPayload, context: EventContext, at: float | None) -> Event:
        """Return the next event of the session's alert stream."""
        stream = context.stream_id + ALERT_STREAM
        if self.context is None or replace(context, stream_id=stream) != self.context:
            self.context = replace(context, stream_id=stream)
        event = Event(self.context, self.n, at, stored_payload(data))
        self.n += 1
        return event


class AlertEngine:
    """Turns events into `alert.fired` and `alert.resolved`. Not thread-safe; its owner serializes calls.

    Alerts name the file, command or rule that they are about only *with_subjects*, which is content.
    """

    def __init__(
        self,
        rules: Sequence[Rule] | None = None,
        *,
        sessions: int = MAXIMUM_SESSIONS,
        with_subjects: bool = False,
    ) -> None:
        self.with_subjects = with_subjects
        self._rules = tuple(rules) if rules is not None else configured()
        self._by_name = {rule.name: rule for rule in self._rules}
        self._samples = tuple(rule for rule in self._rules if rule.kind == "sample")
        by_gravity = sorted(self._rules, key=lambda rule: len(rule.inhibited_by))
        self._counted = (*(rule for rule in by_gravity if rule.kind == "level"), *self._samples)
        """The rules that count turns, each after those that may inhibit it."""
        self._occurrences = tuple(rule for rule in self._rules if rule.kind == "occurrence")
        self._capacity = sessions
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._ended: OrderedDict[str, int] = OrderedDict()

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that are evaluated."""
        return self._rules

    def evaluate(
        self, events: Sequence[Event], *, failed: Callable[[Exception], object] | None = None
    ) -> list[Event]:
        """Return the alert events that *events* cause, in order; they belong right after the batch.

        *failed* is called for an event that cannot be evaluated, which affects no other; without it the exception
        is raised.
        """
        alerts: list[Event] = []
        for run in _runs(events):
            remaining = iter(run)
            for _ in run:  # a faulty event ends an attempt; the next one continues after it
                try:
                    alerts.extend(self._alerts(run[0], remaining))
                    break
                except Exception as error:
                    if failed is None:
                        raise
                    failed(error)
        return alerts

    def interleave(self, events: Iterable[Event]) -> Iterator[Event]:
        """Yield *events*, each followed by the alerts it causes; for whole recordings."""
        for event in events:
            yield event
            if _matters(event.data):
                yield from self._alerts(event, iter((event,)))

    def report(
        self, alert: str, *, holds: bool, context: EventContext, at: float | None, value: float | None = None
    ) -> list[Event]:
        """Record the state of a condition that is checked outside the event stream, such as the audit chain's.

        Returns the alert events it causes; none for an unknown *alert* or a session that has ended.
        """
        rule = self._by_name.get(alert)
        session = self._session(context.stream_id)
        if rule is None or session is None:
            return []
        state, pressure = session.alert(rule), session.history.pressure
        alerts = state.hold(rule, context.turn, value, None, pressure) if holds else state.resolve(rule, value)
        return [session.event(data, context, at) for data in alerts]

    def _alerts(self, first: Event, events: Iterator[Event]) -> Iterator[Event]:
        """Yield the alerts of a run of one stream that starts with *first*; *events* are the remaining ones."""
        stream_id = first.context.stream_id
        if isinstance(first.data, SessionStarted):
            next(events, None)
            self._start(stream_id, first.n)
            return
        session = self._session(stream_id)
        if session is None:
            return
        if isinstance(first.data, SessionEnded):
            for event in events:
                yield from [session.event(one, event.context, event.at) for one in self._end(stream_id, session)]
            return
        while (due := session.history.next_due(events)) is not None:
            context, _n, at, _ = due.event
            alerts = self._on_due(session, due)
            yield from [session.event(one, context, at) for one in alerts]

    def _on_due(self, session: _Session, due: DueEvent) -> list[AlertPayload]:
        data, turn = due.event.data, due.event.context.turn
        alerts = self._on_occurrences(session, turn, due.occurrences) if due.occurrences else []
        if due.has_samples:
            alerts += self._on_samples(session, turn)
        if isinstance(data, PressureMeasured) and data.phase == "final":
            alerts += self._on_turn_end(session, data, turn)
        return alerts

    # -- sessions ---------------------------------------------------------------------------------------------

    def _start(self, stream_id: str, n: int) -> None:
        """Start a session, or continue it in the same stream; a stream that starts at 0 is new."""
        next_n = 0 if n == 0 else self._ended.get(stream_id, 0)
        self._ended.pop(stream_id, None)
        if n == 0 or stream_id not in self._sessions:
            self._sessions.pop(stream_id, None)
            self._add(stream_id, _Session(next_n))

    def _session(self, stream_id: str) -> _Session | None:
        """Return the session of a stream; None after it has ended."""
        if stream_id in self._ended:
            return None
        session = self._sessions.get(stream_id)
        if session is None:
            return self._add(stream_id, _Session(0))
        self._sessions.move_to_end(stream_id)
        return session

    def _add(self, stream_id: str, session: _Session) -> _Session:
        self._sessions[stream_id] = session
        if len(self._sessions) > self._capacity:
            self._sessions.popitem(last=False)
        return session

    def _end(self, stream_id: str, session: _Session) -> list[AlertPayload]:
        alerts = [
            resolved
            for name, state in session.alerts.items()
            for resolved in state.resolve(self._by_name[name], state.value)
        ]
        self._sessions.pop(stream_id, None)
        self._ended[stream_id] = session.n + len(alerts)
        if len(self._ended) > self._capacity:
            self._ended.popitem(last=False)
        return alerts

    # -- conditions -------------------------------------------------------------------------------------------

    def _on_turn_end(self, session: _Session, pressure: PressureMeasured, turn: int) -> list[AlertPayload]:
        """Evaluate all rules that count turns, on the one final pressure of a turn."""
        alerts: list[AlertPayload] = []
        for rule, value, threshold, scope in level_readings(self._counted, pressure, session.history, turn):
            state = session.alert(rule)
            if scope and breaches(rule, value, threshold):
                if state.is_due_again(rule, turn):
                    alerts += state.resolve(rule, value)
                inhibited = bool(rule.inhibited_by) and session.inhibits(rule)
                names = self.with_subjects and rule.signal == "regret_ratio"
                alerts += state.hold(
                    rule, turn, value, threshold, session.history.pressure, entered=session.history.entered,
                    inhibited=inhibited,
                    subject=session.history.largest_regret(turn) if names else "",
                )  # fmt: skip
            elif state.crossing_turn is not None and (
                not scope or state.fired_turn is None or has_cleared(rule, value, threshold)
            ):
                alerts += state.resolve(rule, value)
        for rule in self._occurrences:
            occurred = session.alerts.get(rule.name)
            if occurred is not None and turn - occurred.last_occurred >= rule.hold_turns:
                alerts += occurred.resolve(rule, None)
        return alerts

    def _on_samples(self, session: _Session, turn: int) -> list[AlertPayload]:
        """Fire on a new sample at once; it resolves at the end of a turn, so that nothing flaps within one."""
        alerts: list[AlertPayload] = []
        for rule, value, threshold, _scope in sample_readings(self._samples, session.history):
            if not breaches(rule, value, threshold):
                continue
            state = session.alert(rule)
            if state.fired_turn is None:
                alerts += state.hold(rule, turn, value, threshold, session.history.pressure)
        return alerts

    def _on_occurrences(
        self, session: _Session, turn: int, occurrences: Sequence[Occurrence]
    ) -> list[AlertPayload]:
        alerts: list[AlertPayload] = []
        for occurrence in occurrences:
            for rule in self._occurrences:
                if rule.signal == occurrence.signal:
                    state = session.alert(rule)
                    state.last_occurred = turn
                    alerts += state.hold(
                        rule, turn, occurrence.value, occurrence.threshold, session.history.pressure,
                        subject=occurrence.subject if self.with_subjects else "",
                    )  # fmt: skip
        return alerts


def _runs(events: Iterable[Event]) -> Iterator[list[Event]]:
    """Yield the events that alerts depend on: starts and ends of sessions alone, others by stream."""
    run: list[Event] = []
    for event in events:
        if not _matters(event.data):
            continue
        if isinstance(event.data, SessionStarted | SessionEnded):
            yield from filter(None, (run, [event]))
            run = []
        else:
            if run and event.context.stream_id != run[0].context.stream_id:
                yield run
                run = []
            run.append(event)
    if run:
        yield run


def _matters(data: Payload) -> bool:
    """Return whether alerts depend on an event; of the added blocks, which most events are, on those of tools."""
    if isinstance(data, BlockAdded):
        return data.block.tool_call_id is not None
    return type(data) in RELEVANT_PAYLOADS or isinstance(data, SessionStarted | SessionEnded)


def _finite(value: float | None) -> float | None:
    """Return a float that JSON can represent; None for an infinite forecast."""
    return float(value) if value is not None and math.isfinite(value) else None
