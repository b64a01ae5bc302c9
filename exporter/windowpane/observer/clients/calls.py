"""The calls of a watched client, on the agent's thread: references are taken and queued, nothing more.

A captured call is an `ApiCall` with a shallow copy of its messages (`observer.messages.capture_call`). The call,
its reply, the pieces of a stream and its failure are tasks of one queue, whose worker reads, compares, counts and
hashes them in order (`recording.CallRecord`). The agent's calls pass through unchanged; an internal failure is
logged and never reaches the agent.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Final

from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.observer.clients.recording import CallRecord
from windowpane.observer.conversations import Scope
from windowpane.observer.messages import Shape, capture_call
from windowpane.runtime.current import running_outputs

if TYPE_CHECKING:
    from windowpane.runtime.current import RunningOutputs

PIECES_PER_TASK: Final = 64
"""Pieces of a stream that are queued together."""

boundary: Final = ErrorBoundary(logging.getLogger("windowpane"))
current_scope: Final[ContextVar[Scope | None]] = ContextVar("windowpane_session", default=None)


class WatchedClient:
    """Starts a record of each call of one client; never raises."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def start(self, shape: Shape, body: object) -> WatchedCall | None:
        """Capture a call that is about to be sent; returns None where it cannot be observed."""
        outputs = running_outputs()
        if outputs is None:
            return None
        started = time.perf_counter()
        watched = None
        try:
            call = capture_call(shape, body) if isinstance(body, Mapping) else None
            if call is not None:
                record = CallRecord(call, current_scope.get() or self._scope, outputs)
                task = partial(record.start, time.time())
                if outputs.observations.put("observing a call", task, weight=1 + len(call.messages)):
                    watched = WatchedCall(record, outputs)
            outputs.record_hook("observe_call", time.perf_counter() - started)
        except Exception as error:  # noqa: BLE001  # written out: this is what the agent waits for
            boundary.log_failure("observing a call", error)
        return watched


class WatchedCall:
    """One call under way. Its methods take references on the agent's thread and never raise."""

    def __init__(self, record: CallRecord, outputs: RunningOutputs) -> None:
        self._record = record
        self._outputs = outputs
        self._pieces: list[object] = []
        self._streamed = False
        self._ended = False
        self._sent_at = time.perf_counter()

    def record_reply(self, reply: object) -> None:
        """Record a reply that came back whole."""
        self._end(partial(self._record.add_reply, reply))

    def record_deferred_reply(self, load: Callable[[], object]) -> None:
        """Record a reply that *load* returns when the worker calls it; None where it cannot be read."""
        self._end(partial(self._record.add_deferred_reply, load))

    def record_unread_reply(self) -> None:
        """Record that the call came back with a reply that cannot be read from here."""
        self._end(self._record.add_unread_reply)

    def record_failure(self, error: BaseException) -> None:
        """Record that the call raised *error*."""
        self._end(partial(self._record.add_failure, error))

    def record_piece(self, piece: object) -> None:
        """Record one piece of a streamed reply."""
        self._streamed = True
        self._pieces.append(piece)
        if len(self._pieces) >= PIECES_PER_TASK:
            pieces, self._pieces = self._pieces, []
            self._outputs.observations.put("observing a stream", partial(self._record.add_pieces, pieces))

    def record_end_of_stream(self) -> None:
        """Record the pieces so far as the reply: the stream ended, was closed or was dropped."""
        if self._streamed:
            self._end(partial(self._record.add_streamed_reply, self._pieces))
        else:
            self.record_unread_reply()

    def _end(self, record: Callable[[float, float], object]) -> None:
        """Queue the first end of the call, with its time and latency; later ones are ignored."""
        if self._ended:
            return
        self._ended = True
        came_back = time.perf_counter()
        outputs = self._outputs
        try:
            task = partial(record, time.time(), came_back - self._sent_at)
            outputs.observations.put("observing a reply", task, required=True)
            outputs.record_hook("observe_reply", time.perf_counter() - came_back)
        except Exception as error:  # noqa: BLE001  # written out: this is what the agent waits for
            boundary.log_failure("observing a reply", error)
