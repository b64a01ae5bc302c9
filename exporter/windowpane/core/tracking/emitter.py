"""The stream of events of one session: numbered, sharing one context per turn, without secrets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from windowpane.core.events import Event, EventContext, Payload
from windowpane.core.stored_payloads import MADE_BY_TRACKER, stored_events, stored_text

BUFFERED_EVENTS: Final = 1_000
"""Size at which the buffer is handed over in the middle of a turn."""


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """Identity of a session."""

    session_id: str
    agent: str
    model: str
    source: str
    stream_id: str
    """Unique to this emitter; events are numbered within it."""
    parent_session_id: str | None = None

    def __post_init__(self) -> None:
        """Remove the secrets from names and ids, which every event of the session repeats."""
        for name in ("session_id", "agent", "model", "source", "stream_id", "parent_session_id"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else stored_text(name, value))


class EventEmitter:
    """Wraps payloads into numbered events that share one context per turn, and hands them over in lists."""

    def __init__(self, info: SessionInfo, *, emit: Callable[[list[Event]], None]) -> None:
        self.info = info
        self.buffer: list[Event] = []
        self._unchecked: list[int] = []
        """Positions in the buffer of the events whose texts may hold a secret."""
        self.n = 0
        """Number of the next event."""
        self._emit = emit
        self._turn, self._window_id = 0, 1
        self._trace: tuple[str | None, str | None] = (None, None)
        self.renew_context()

    def record(self, payload: Payload, at: float | None) -> Event:
        """Emit an event at time *at*; the returned one may hold secrets, `flush` removes them."""
        if type(payload) not in MADE_BY_TRACKER:
            self._unchecked.append(len(self.buffer))
        # The constructor of a named tuple is a Python function, which takes twice as long.
        event: Event = tuple.__new__(Event, (self.context, self.n, at, payload))
        self.n += 1
        self.buffer.append(event)
        if len(self.buffer) >= BUFFERED_EVENTS:
            self.flush()
        return event

    def flush(self) -> None:
        """Hand the buffered events over in one list."""
        if self.buffer:
            batch, self.buffer = self.buffer, []
            unchecked, self._unchecked = self._unchecked, []
            self._emit(stored_events(batch, unchecked))

    def enter(self, turn: int, window_id: int) -> None:
        """Set the turn and window of the following events."""
        self._turn, self._window_id = turn, window_id
        self.renew_context()

    def set_trace(self, trace_id: str | None, span_id: str | None) -> None:
        """Set the OpenTelemetry span of the following events."""
        if (trace_id, span_id) != self._trace:
            self._trace = (trace_id, span_id)
            self.renew_context()

    def set_model(self, model: str) -> None:
        """Set the model of the following events."""
        if model != self.info.model:
            self.info = replace(self.info, model=model)
            self.renew_context()

    def renew_context(self) -> None:
        """Build the context of the following events."""
        info = self.info
        self.context = EventContext(
            info.session_id, info.agent, info.model, self._turn, self._window_id, info.source, info.stream_id,
            info.parent_session_id, *self._trace,
        )  # fmt: skip
