"""One session's stream of events: identity, numbering, and the buffer that leaves once a turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from windowpane.core.events import Event, EventContext, Payload
from windowpane.core.protocols import Clock

BUFFERED_EVENTS: Final = 1_000
"""Events held back at most before they leave in the middle of a turn."""


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """Who a session is."""

    session_id: str
    agent: str
    model: str
    source: str
    stream_id: str
    """Unique to this emitter; events are numbered within it."""
    parent_session_id: str | None = None


class Emitter:
    """Wraps payloads into numbered events that share one context a turn, and hands them over in lists."""

    def __init__(self, info: SessionInfo, *, emit: Callable[[list[Event]], None], clock: Clock | None) -> None:
        self.info = info
        self.turn = 0
        self.window_id = 1
        self._emit = emit
        self._clock = clock
        self._buffer: list[Event] = []
        self._n = 0
        self._trace: tuple[str | None, str | None] = (None, None)
        self._renew_context()

    def record(self, payload: Payload, at: float | None = None) -> Event:
        """Emit a fact that changes nothing in the window."""
        if at is None and self._clock is not None:
            at = self._clock()
        event = Event(self._context, self._n, at, payload)
        self._n += 1
        self._buffer.append(event)
        if len(self._buffer) >= BUFFERED_EVENTS:
            self.flush()
        return event

    def flush(self) -> None:
        """Hand the buffered events over; one list, one call."""
        if self._buffer:
            batch, self._buffer = self._buffer, []
            self._emit(batch)

    def now(self) -> float | None:
        """Seconds since the epoch, UTC; None without a clock."""
        return None if self._clock is None else self._clock()

    def trace(self, trace_id: str | None, span_id: str | None) -> None:
        """Note the OpenTelemetry span that the following events belong to."""
        if (trace_id, span_id) != self._trace:
            self._trace = (trace_id, span_id)
            self._renew_context()

    def _rename_model(self, model: str) -> None:
        if model != self.info.model:
            self.info = replace(self.info, model=model)
            self._renew_context()

    def _renew_context(self) -> None:
        info = self.info
        self._context = EventContext(
            info.session_id, info.agent, info.model, self.turn, self.window_id, info.source, info.stream_id,
            info.parent_session_id, *self._trace,
        )  # fmt: skip
