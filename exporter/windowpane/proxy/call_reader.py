"""The calls that passed through the proxy, read and recorded in their conversations."""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import httpx2

from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.models.replies import Reply
from windowpane.observer.clients.recording import CallRecord
from windowpane.observer.conversations import Scope
from windowpane.observer.messages import ApiCall, Shape
from windowpane.proxy.call_messages import EndedCall, FailedCall, SentCall
from windowpane.sources.exchanges.bodies import read_call, read_response

if TYPE_CHECKING:
    from windowpane.runtime.current import RunningOutputs

MAXIMUM_ERROR_BYTES: Final = 64 << 10
MAXIMUM_OPEN_CALLS: Final = 10_000
"""Calls without an end; beyond it the oldest is dropped, whose end did not come."""
_FIRST_FAILURE: Final = 400
"""Status codes from here on are failures."""

boundary: Final = ErrorBoundary(logging.getLogger("windowpane"))


class UpstreamError(Exception):
    """The provider answered with an error, or not at all; the message is its status and text."""


class SentBody:
    """A call as the bytes of its request."""

    def __init__(self, message: SentCall) -> None:
        self._message: SentCall | None = message
        self.api: Final = message.api
        self.shape: Shape = message.api
        self.is_read = False
        """The body was a call."""

    def read(self) -> ApiCall:
        """Return the call. Raises `ValueError` or `TypeError` for a body that is not one."""
        assert self._message is not None
        request = json.loads(decoded(self._message.encodings, self._message.body))
        if not isinstance(request, dict):
            raise TypeError(f"expected a JSON object as the request, got {type(request).__name__}")
        call = read_call(self.api, request, uri=self._message.uri)
        self.is_read = True
        return call

    def release(self) -> None:
        """Drop the bytes."""
        self._message = None


class CallReader:
    """Reads the messages of passing calls in their order, on one thread. An unreadable call is logged."""

    def __init__(self, outputs: RunningOutputs, scope: Scope) -> None:
        self._outputs = outputs
        self._scope = scope
        self._open: OrderedDict[int, tuple[SentBody, CallRecord]] = OrderedDict()

    def read(self, message: SentCall | EndedCall | FailedCall) -> None:
        """Record what a message states."""
        if isinstance(message, SentCall):
            with boundary.contain("observing a call"):
                self._start(message)
            return
        body, record = self._open.pop(message.number, (None, None))
        if body is None or record is None:  # a process that ended since read its start
            return
        with boundary.contain("observing a reply"):
            if isinstance(message, FailedCall):
                record.add_failure(UpstreamError(message.error), message.at, message.seconds)
            elif message.status >= _FIRST_FAILURE:
                error = UpstreamError(f"{message.status} {_error_text(message)}")
                record.add_failure(error, message.at, message.seconds)
            else:
                record.add_reply(message, partial(_read_reply, body), message.at, message.seconds)

    def _start(self, message: SentCall) -> None:
        scope = self._scope
        if message.program is not None:
            scope = Scope(message.program, limit_tokens=scope.limit_tokens)
        body = SentBody(message)
        record = CallRecord(body, scope, self._outputs)
        self._open[message.number] = body, record
        if len(self._open) > MAXIMUM_OPEN_CALLS:
            self._open.popitem(last=False)
        record.start(message.at)


def decoded(encodings: Sequence[bytes], pieces: Sequence[bytes]) -> bytes:
    """Return the content of a body, by the values of its `Content-Encoding`."""
    content = b"".join(pieces)
    if not encodings:
        return content
    headers = [(b"content-encoding", value) for value in encodings]
    return httpx2.Response(200, headers=headers, content=content).content


def _read_reply(body: SentBody, message: EndedCall, _shape: Shape) -> Reply:
    if not body.is_read or not message.body:
        return Reply()
    return read_response(body.api, decoded(message.encodings, message.body).decode("utf-8", "replace"))


def _error_text(message: EndedCall) -> str:
    if sum(map(len, message.body)) > MAXIMUM_ERROR_BYTES:
        return "error"
    try:
        return decoded(message.encodings, message.body).decode("utf-8", "replace")
    except httpx2.DecodingError:
        return "error"
