"""The calls of a watched client, on the agent's thread: references are taken and queued, nothing more.

A captured call is a shallow copy of its arguments and message list.
The call, its reply and its failure are tasks of one queue, whose worker reads, compares, counts and
hashes them in order (`recording.CallRecord`). The agent's calls pass through unchanged; an internal failure is
logged and never reaches the agent.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.models.wire.calls import MESSAGES_FIELD, ApiCall, Shape, parse_call, read_whole, sent_messages
from windowpane.models.wire.messages import copy_structure
from windowpane.models.wire.replies import Reply
from windowpane.outputs.runtime.current import running_outputs
from windowpane.sources.clients.recording import CallRecord
from windowpane.sources.conversations.conversations import Scope

if TYPE_CHECKING:
    from windowpane.outputs.runtime.current import RunningOutputs

SENDS_OWN_MESSAGES: Final[frozenset[Shape]] = frozenset({"anthropic", "converse"})
"""Shapes whose client sends the agent's own dictionaries. The client of the others sends copies of them."""
JSON_CHARACTERS_PER_MESSAGE: Final = 500


class CapturedCall:
    """References to a call's arguments, taken on the agent's thread; what they refer to is not read there."""

    __slots__ = ("_body", "_read", "message_count", "shape")

    def __init__(self, shape: Shape, body: dict[str, Any]) -> None:
        self.shape: Shape = shape
        messages = body.get(MESSAGES_FIELD[shape]) or ()
        self.message_count = 1 if isinstance(messages, str) else len(messages)
        """The number of its messages."""
        self._body = body
        self._read = False

    def before_return(self) -> None:
        """Copy the messages if the agent is about to get them back unread, and could edit them in place."""
        if not self._read and self.shape in SENDS_OWN_MESSAGES:
            self._body = copy_structure(self._body)

    def read(self) -> ApiCall:
        """Return the call, which shares the agent's messages until `release`."""
        return parse_call(self.shape, self._body)

    def release(self) -> None:
        """Drop the references: what is needed of them was copied."""
        self._read = True
        self._body = {MESSAGES_FIELD[self.shape]: ()}


class CapturedJson(CapturedCall):
    """A call whose body was sent as JSON: the agent cannot edit it, and it is parsed where it is read."""

    __slots__ = ("_json", "_model")

    def __init__(self, shape: Shape, body: str | bytes, model: str) -> None:
        super().__init__(shape, {})
        self.message_count = len(body) // JSON_CHARACTERS_PER_MESSAGE
        self._json: str | bytes | None = body
        self._model = model

    def before_return(self) -> None:
        """Copy nothing."""

    def read(self) -> ApiCall:
        """Return the call."""
        return parse_call(self.shape, {"model": self._model, **json.loads(self._json or "{}")})

    def release(self) -> None:
        """Drop the body."""
        self._json = None


def capture_call(shape: Shape, body: Mapping[str, Any]) -> CapturedCall | None:
    """Return references to the call that *body* requests; None where reading its messages would consume them."""
    field = MESSAGES_FIELD[shape]
    messages = sent_messages(shape, body)
    if not isinstance(messages, list | tuple | str):
        return None
    captured = dict(body)
    if not isinstance(messages, str):
        captured[field] = list(messages)
    return CapturedCall(shape, captured)


R = TypeVar("R")

boundary: Final = ErrorBoundary(logging.getLogger("windowpane"))
current_scope: Final[ContextVar[Scope | None]] = ContextVar("windowpane_session", default=None)


class ReportedCall(Protocol):
    """A call that a library reports itself before it sends it by a client, which may be watched too."""

    def is_sent_as(self, shape: Shape, body: object) -> bool:
        """Return whether a request is this call; then it is recorded already."""
        ...


reported_call: Final[ContextVar[ReportedCall | None]] = ContextVar("windowpane_reported_call", default=None)


class WatchedClient:
    """Starts a record of each call of one client; never raises."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._closed = False

    def close(self) -> None:
        """Start no more records: methods that could not be given back pass their calls on."""
        self._closed = True

    def start(
        self, shape: Shape, body: object, *, model: str = "", at: float | None = None, scope: Scope | None = None
    ) -> WatchedCall | None:
        """Capture a call that is about to be sent; returns None where it cannot be observed.

        The body is a dictionary, or the JSON of one, to which *model* is added. *at* and *scope* are those of a
        call that was sent before and is reported only now.
        """
        outputs = running_outputs()
        if outputs is None or self._closed:
            return None
        started = time.perf_counter()
        watched = None
        try:
            reported = reported_call.get()
            if at is None and reported is not None and reported.is_sent_as(shape, body):
                return None
            scope = scope or self._current_scope()
            call = CapturedJson(shape, body, model) if isinstance(body, str | bytes) else _captured(shape, body)
            if call is not None:
                record = CallRecord(call, scope, outputs)
                task = partial(record.start, time.time() if at is None else at)
                if outputs.observations.put("observing a call", task, weight=1 + call.message_count):
                    watched = WatchedCall(call, record, outputs)
                    record.call_seconds = watched.sent_at - started
        except Exception as error:  # noqa: BLE001  # written out: this is what the agent waits for
            boundary.log_failure("observing a call", error)
        return watched

    def _current_scope(self) -> Scope:
        """Return the scope of a call that is made now; the size of the window is stated with the client."""
        scope = current_scope.get()
        if scope is None:
            return self.scope
        if scope.run and scope.limit_tokens is None:
            return replace(scope, limit_tokens=self.scope.limit_tokens)
        return scope


def _captured(shape: Shape, body: object) -> CapturedCall | None:
    return capture_call(shape, body) if isinstance(body, dict) else None


class WatchedCall:
    """One call under way. Its methods take references on the agent's thread and never raise."""

    __slots__ = ("_call", "_ended", "_outputs", "_record", "sent_at")

    def __init__(self, call: CapturedCall | CapturedJson, record: CallRecord, outputs: RunningOutputs) -> None:
        self._call = call
        self._record = record
        self._outputs = outputs
        self._ended = False
        self.sent_at = time.perf_counter()

    def record_reply(self, reply: R, read: Callable[[R, Shape], Reply] = read_whole) -> None:
        """Record a reply that came back; the worker converts it by *read*."""
        self._end(partial(self._record.add_reply, reply, read))

    def record_unread_reply(self) -> None:
        """Record that the call came back with a reply that cannot be read from here."""
        self.record_reply(Reply())

    def record_failure(self, error: BaseException) -> None:
        """Record that the call raised *error*."""
        self._end(partial(self._record.add_failure, error))

    def before_return(self) -> None:
        """Copy what the agent could edit before it is read; called when the agent gets a reply to read."""
        with boundary.contain("observing a call"):
            self._call.before_return()

    def _end(self, record: Callable[[float, float], object]) -> None:
        """Queue the first end of the call, with its time and latency; later ones are ignored."""
        if self._ended:
            return
        self._ended = True
        came_back = time.perf_counter()
        try:
            self._call.before_return()
            task = partial(record, time.time(), came_back - self.sent_at)
            self._record.reply_seconds = time.perf_counter() - came_back
            self._outputs.observations.put("observing a reply", task, required=True)
        except Exception as error:  # noqa: BLE001  # written out: this is what the agent waits for
            boundary.log_failure("observing a reply", error)
