"""Judges alert conditions over events: pending, firing, resolved, once per crossing.

A pure state machine. What it emits depends on the events it was given and on nothing else (no clock, no chance),
so judging a recording twice gives the same bytes. Alerts travel in a stream of their own beside the session's, so
that they never disturb the numbering of its facts.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from windowpane.alerts.conditions import (
    TAKEN,
    Occurrence,
    Tallies,
    in_scope,
    sample_of,
    threshold_of,
    value_of,
)
from windowpane.alerts.rules import Rule, configured
from windowpane.alerts.wording import summary
from windowpane.core.events import (
    AlertFired,
    AlertResolved,
    Event,
    EventContext,
    PressureMeasured,
    SessionEnded,
    SessionStarted,
)

REMEMBERED_SESSIONS: Final = 10_000
"""Sessions followed at once, and ended ones remembered; the longest silent are forgotten first."""
ALERT_STREAM: Final = "/alerts"


@dataclass(slots=True)
class _Alert:
    """One rule's state in one session."""

    crossing_turn: int | None = None
    """Turn at which the condition began to hold; None while it does not."""
    turns_held: int = 0
    fired_turn: int | None = None
    """None while pending or inactive."""
    last_crossing: int = -1
    """Of the last firing: the same crossing never fires twice."""
    last_occurred: int = 0
    value: float | None = None
    threshold: float | None = None


class _Verdict(NamedTuple):
    """What a condition that holds was judged on."""

    value: float | None
    threshold: float | None


class _Session:
    """What the engine knows of one emitter's session."""

    __slots__ = ("alerts", "context", "n", "tallies")

    def __init__(self, n: int) -> None:
        self.n = n
        """Number of the next alert event."""
        self.tallies = Tallies()
        self.alerts: dict[str, _Alert] = {}
        self.context: EventContext | None = None

    def alert(self, rule: Rule) -> _Alert:
        """The state of *rule*, made when first asked for."""
        return self.alerts.setdefault(rule.name, _Alert())

    def event(self, data: AlertFired | AlertResolved, context: EventContext, at: float | None) -> Event:
        """The next event of the session's alert stream."""
        stream = context.stream_id + ALERT_STREAM
        if self.context is None or replace(context, stream_id=stream) != self.context:
            self.context = replace(context, stream_id=stream)
        event = Event(self.context, self.n, at, data)
        self.n += 1
        return event


class AlertEngine:
    """Turns events into `alert.fired` and `alert.resolved`. Not thread-safe; its owner serialises calls."""

    def __init__(self, rules: Sequence[Rule] | None = None, *, sessions: int = REMEMBERED_SESSIONS) -> None:
        self._rules = tuple(rules) if rules is not None else configured()
        self._by_name = {rule.name: rule for rule in self._rules}
        self._levels = tuple(rule for rule in self._rules if rule.kind == "level")
        self._samples = tuple(rule for rule in self._rules if rule.kind == "sample")
        self._occurrences = tuple(rule for rule in self._rules if rule.kind == "occurrence")
        self._capacity = sessions
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._ended: OrderedDict[str, int] = OrderedDict()

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that are judged."""
        return self._rules

    @property
    def followed(self) -> int:
        """Sessions followed now."""
        return len(self._sessions)

    def judge(self, events: Sequence[Event]) -> list[Event]:
        """The alert events that *events* cause, in order; they belong right after the batch."""
        return [alert for event in events for alert in self._step(event)]

    def weave(self, events: Iterable[Event]) -> Iterator[Event]:
        """The same events, each followed by the alerts it causes; for whole recordings."""
        for event in events:
            yield event
            yield from self._step(event)

    def report(
        self, alert: str, *, holds: bool, context: EventContext, at: float | None, value: float | None = None
    ) -> list[Event]:
        """Take the verdict on a condition judged outside the event stream, such as the audit chain's."""
        rule = self._by_name.get(alert)
        session = self._session(context.stream_id)
        if rule is None or session is None:
            return []
        state = session.alert(rule)
        verdict = _Verdict(value, None)
        found = _hold(rule, state, session, context.turn, verdict) if holds else _resolve(rule, state, value)
        return [session.event(data, context, at) for data in found]

    def _step(self, event: Event) -> list[Event]:
        data, context = event.data, event.context
        if isinstance(data, SessionStarted):
            self._begin(context.stream_id, event.n)
            return []
        if type(data) not in TAKEN and not isinstance(data, SessionEnded):
            return []
        session = self._session(context.stream_id)
        if session is None:
            return []
        if isinstance(data, SessionEnded):
            found = self._end(context.stream_id, session)
        else:
            occurrences = session.tallies.take(data, context.turn)
            found = [*self._occurred(session, context.turn, occurrences), *self._sampled(session, context.turn)]
            if isinstance(data, PressureMeasured) and data.phase == "final":
                found += self._turn_closed(session, data, context.turn)
        return [session.event(alert, context, event.at) for alert in found]

    # -- sessions ---------------------------------------------------------------------------------------------

    def _begin(self, stream_id: str, n: int) -> None:
        """A session begins, or goes on in the same stream; one that starts at 0 is judged from the start."""
        known = 0 if n == 0 else self._ended.get(stream_id, 0)
        self._ended.pop(stream_id, None)
        if n == 0 or stream_id not in self._sessions:
            self._sessions.pop(stream_id, None)
            self._follow(stream_id, _Session(known))

    def _session(self, stream_id: str) -> _Session | None:
        """The session of a stream; None once it has ended."""
        if stream_id in self._ended:
            return None
        session = self._sessions.get(stream_id)
        if session is None:
            return self._follow(stream_id, _Session(0))
        self._sessions.move_to_end(stream_id)
        return session

    def _follow(self, stream_id: str, session: _Session) -> _Session:
        self._sessions[stream_id] = session
        if len(self._sessions) > self._capacity:
            self._sessions.popitem(last=False)
        return session

    def _end(self, stream_id: str, session: _Session) -> list[AlertFired | AlertResolved]:
        found = [
            resolved
            for name, state in session.alerts.items()
            for resolved in _resolve(self._by_name[name], state, state.value)
        ]
        self._sessions.pop(stream_id, None)
        self._ended[stream_id] = session.n + len(found)
        if len(self._ended) > self._capacity:
            self._ended.popitem(last=False)
        return found

    # -- conditions -------------------------------------------------------------------------------------------

    def _turn_closed(
        self, session: _Session, pressure: PressureMeasured, turn: int
    ) -> list[AlertFired | AlertResolved]:
        """Judge everything that is counted in turns, on the one final pressure of a turn."""
        found: list[AlertFired | AlertResolved] = []
        for rule in (*self._levels, *self._samples):
            value = value_of(rule, pressure, session.tallies, turn)
            scope = in_scope(rule, pressure)
            threshold = threshold_of(rule, pressure)
            if value is None or scope is None or threshold is None:
                continue
            state = session.alert(rule)
            if scope and rule.holds(value, threshold):
                found += _hold(rule, state, session, turn, _Verdict(value, threshold))
            elif not scope or state.fired_turn is None or rule.cleared(value, threshold):
                found += _resolve(rule, state, value)
        for rule in self._occurrences:
            seen = session.alerts.get(rule.name)
            if seen is not None and turn - seen.last_occurred >= rule.hold_turns:
                found += _resolve(rule, seen, None)
        return found

    def _sampled(self, session: _Session, turn: int) -> list[AlertFired | AlertResolved]:
        """Fire on a new sample at once; resolution waits for the turn's end, so that nothing flaps within it."""
        found: list[AlertFired | AlertResolved] = []
        for rule in self._samples:
            value = sample_of(rule, session.tallies)
            if value is None or rule.threshold is None or not rule.holds(value, rule.threshold):
                continue
            state = session.alert(rule)
            if state.fired_turn is None:
                found += _hold(rule, state, session, turn, _Verdict(value, rule.threshold))
        return found

    def _occurred(
        self, session: _Session, turn: int, occurrences: Sequence[Occurrence]
    ) -> list[AlertFired | AlertResolved]:
        found: list[AlertFired | AlertResolved] = []
        for occurrence in occurrences:
            for rule in self._occurrences:
                if rule.judges == occurrence.judges:
                    state = session.alert(rule)
                    state.last_occurred = turn
                    verdict = _Verdict(occurrence.value, occurrence.threshold)
                    found += _hold(rule, state, session, turn, verdict)
        return found


def _hold(
    rule: Rule, state: _Alert, session: _Session, turn: int, verdict: _Verdict
) -> list[AlertFired | AlertResolved]:
    """The condition holds in *turn*: wait, fire, or go on firing."""
    state.value, state.threshold = _finite(verdict.value), _finite(verdict.threshold)
    if state.crossing_turn is None:
        if turn <= state.last_crossing:
            return []
        state.crossing_turn, state.turns_held = turn, 0
    state.turns_held += 1
    if state.fired_turn is not None or state.turns_held < rule.sustained_turns:
        return []
    state.fired_turn, state.last_crossing = turn, state.crossing_turn
    return [
        AlertFired(
            rule.name,
            rule.severity,
            state.crossing_turn,
            state.value,
            state.threshold,
            summary(rule, state.value, state.threshold, session.tallies.pressure),
        )
    ]


def _resolve(rule: Rule, state: _Alert, value: float | None) -> list[AlertFired | AlertResolved]:
    """The condition no longer holds: forget a pending alert, resolve a firing one."""
    crossing, fired = state.crossing_turn, state.fired_turn
    state.crossing_turn, state.fired_turn, state.turns_held = None, None, 0
    if crossing is None or fired is None:
        return []
    return [AlertResolved(rule.name, rule.severity, crossing, _finite(value), state.threshold, fired)]


def _finite(value: float | None) -> float | None:
    """As a float that JSON can say; an infinite forecast is no number."""
    return float(value) if value is not None and math.isfinite(value) else None
