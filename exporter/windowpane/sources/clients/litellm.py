"""Watches LiteLLM by its callback: its calls do not pass a client of a provider, or one that it makes itself.

LiteLLM reports the end of a call on another thread, and may do so after the agent has started the next one. A
call is therefore recorded, with the time of its start, when its end is reported: first its messages, as they were
when it started, then its reply.
"""

from __future__ import annotations

import sys
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from types import ModuleType
from typing import Any, Final

from windowpane.models.wire.calls import Shape, read_whole
from windowpane.models.wire.messages import copy_structure, field_of
from windowpane.models.wire.replies import Reply
from windowpane.sources.clients.calls import WatchedCall, WatchedClient, boundary, current_scope, reported_call
from windowpane.sources.clients.methods import Restore
from windowpane.sources.conversations.conversations import Scope

BASE_MODULE: Final = "litellm"
MAXIMUM_CALLS: Final = 10_000
"""Calls under way; beyond it the oldest is dropped, whose end was never reported."""
_SHAPES: Final[Mapping[str, tuple[Shape, str]]] = {
    "completion": ("chat", "messages"),
    "acompletion": ("chat", "messages"),
    "responses": ("responses", "input"),
    "aresponses": ("responses", "input"),
    "anthropic_messages": ("anthropic", "messages"),
}
"""Kinds of calls to their shape and the field of their messages."""


def watch_litellm(module: object, watched: WatchedClient) -> bool:
    """Watch all calls and return True if *module* is `litellm` or a router of it; nothing is imported."""
    litellm = sys.modules.get(BASE_MODULE)
    if litellm is None:
        return False
    if module is not litellm and type(module).__module__ != "litellm.router":
        return False
    watch_all_litellm(litellm, watched)
    return True


def watch_all_litellm(litellm: ModuleType, watched: WatchedClient) -> list[Restore]:
    """Add a callback to LiteLLM, unless it has one of ours."""
    if any(isinstance(callback, CallbackMethods) for callback in litellm.callbacks):
        return []
    callback = make_callback(watched)
    litellm.callbacks.append(callback)

    def restore() -> None:
        for name in ("callbacks", "input_callback", "success_callback", "failure_callback",
                     "_async_input_callback", "_async_success_callback", "_async_failure_callback"):  # fmt: skip
            registered = getattr(litellm, name, [])
            if callback in registered:
                registered.remove(callback)

    return [restore]


def make_callback(watched: WatchedClient) -> Any:
    """Return a callback for `litellm.callbacks` or the configuration of LiteLLM's proxy."""
    from litellm.integrations.custom_logger import CustomLogger

    kind = type("WindowpaneCallback", (CallbackMethods, CustomLogger), {})
    return kind(watched)


class StartedCall:
    """A call that LiteLLM has started, with copies of its messages."""

    def __init__(self, shape: Shape, body: dict[str, Any], field: str, at: float, scope: Scope | None) -> None:
        self.shape: Shape = shape
        self.body = body
        self.at = at
        self.scope = scope
        self._field = field
        self.is_awaited = True
        """It has not ended, and no client has sent it."""

    def is_sent_as(self, shape: Shape, body: object) -> bool:
        """Return whether a request of a client is this call, which is sent once."""
        if not self.is_awaited or shape != self.shape or not isinstance(body, dict):
            return False
        is_this = bool(body.get(self._field) == self.body[self._field])
        self.is_awaited = not is_this
        return is_this


class CallbackMethods:
    """The methods of a callback that LiteLLM calls; none raises."""

    def __init__(self, watched: WatchedClient) -> None:
        super().__init__()
        self._watched = watched
        self._calls: OrderedDict[str, StartedCall] = OrderedDict()

    def log_pre_api_call(self, model: str, messages: object, kwargs: Mapping[str, Any]) -> None:
        """Capture a call that LiteLLM is about to send, on the agent's thread."""
        with boundary.contain("observing a call"):
            kind = _SHAPES.get(str(kwargs.get("call_type")))
            if kind is None:
                return
            shape, field = kind
            options = kwargs.get("optional_params") or {}
            body = {
                **options,
                field: messages,
                "model": model,
                "tools": kwargs.get("tools") or options.get("tools"),
            }
            call = StartedCall(shape, copy_structure(body), field, time.time(), current_scope.get())
            reported_call.set(call)
            self._calls[str(kwargs.get("litellm_call_id"))] = call
            while len(self._calls) > MAXIMUM_CALLS:
                self._calls.popitem(last=False)

    def log_success_event(
        self, kwargs: Mapping[str, Any], response_obj: object, start_time: datetime, end_time: datetime
    ) -> None:
        """Record a call with its reply; one with a streamed reply when the stream has ended."""
        with boundary.contain("observing a reply"):
            started = self._start(kwargs)
            if started is not None:
                seconds = (end_time - start_time).total_seconds()
                started.record_reply(response_obj, lambda reply, shape: _read(reply, shape, seconds))

    def log_failure_event(
        self,
        kwargs: Mapping[str, Any],
        response_obj: object,  # noqa: ARG002  # LiteLLM passes these by their names
        start_time: datetime,  # noqa: ARG002
        end_time: datetime,  # noqa: ARG002
    ) -> None:
        """Record a call with the error that it raised."""
        with boundary.contain("observing a reply"):
            started, error = self._start(kwargs), kwargs.get("exception")
            if started is not None:
                started.record_failure(error if isinstance(error, BaseException) else RuntimeError(str(error)))

    async def async_log_success_event(
        self, kwargs: Mapping[str, Any], response_obj: object, start_time: datetime, end_time: datetime
    ) -> None:
        """Record a call with its reply."""
        self.log_success_event(kwargs, response_obj, start_time, end_time)

    async def async_log_failure_event(
        self, kwargs: Mapping[str, Any], response_obj: object, start_time: datetime, end_time: datetime
    ) -> None:
        """Record a call with the error that it raised."""
        self.log_failure_event(kwargs, response_obj, start_time, end_time)

    def _start(self, kwargs: Mapping[str, Any]) -> WatchedCall | None:
        """Start the record of a call that has ended; the second of two reports of its end is ignored."""
        call = self._calls.pop(str(kwargs.get("litellm_call_id")), None)
        if call is None:
            return None
        call.is_awaited = False
        return self._watched.start(call.shape, call.body, at=call.at, scope=call.scope)


def _read(reply: object, shape: Shape, seconds: float) -> Reply:
    """Return a reply, which has the form of OpenAI's also where the call had Anthropic's."""
    if shape == "anthropic" and isinstance(field_of(reply, "choices"), list):
        shape = "chat"
    return replace(read_whole(reply, shape), latency_seconds=seconds)
