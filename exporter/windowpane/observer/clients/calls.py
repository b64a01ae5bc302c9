"""The calls of an observed client: each is reported to the observer of its conversation.

The agent's calls pass through unchanged; a failure of ours is logged and goes no further.
"""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from windowpane.core.limits import WindowLimits
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.models.catalog import packaged_catalog
from windowpane.models.replies import Reply, read_reply
from windowpane.observer.conversations import Conversation, Conversations, Scope
from windowpane.observer.diff import ModelView
from windowpane.observer.messages import Call, Shape, call_of, field_of
from windowpane.observer.observer import WindowObserver
from windowpane.observer.streams import ReplyAssembler, assembler_for
from windowpane.runtime.current import RunningOutputs, running_outputs

if TYPE_CHECKING:
    from collections.abc import Callable

    from windowpane.core.events import Event, Usage

REMEMBERED_MODELS: Final = 64
boundary: Final = ErrorBoundary(logging.getLogger("windowpane"))
current_scope: Final[ContextVar[Scope | None]] = ContextVar("windowpane_session", default=None)


class WatchedClient:
    """Tells the conversations of this process about one client's calls; never raises."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def begin(self, shape: Shape, body: object) -> WatchedCall | None:
        """A call is about to be sent; None where it cannot be observed."""
        running = running_outputs()
        if running is None:
            return None
        watched = None
        with _timed(running, "observe_call"), boundary.contain("observing a call"):
            call = call_of(shape, body) if isinstance(body, Mapping) else None
            if call is not None:
                watched = WatchedCall(call, current_scope.get() or self._scope, running)
        return watched


class WatchedCall:
    """One call on its way: told of its reply, its pieces or its failure. Never raises but when it is made."""

    def __init__(self, call: Call, scope: Scope, running: RunningOutputs) -> None:
        self._shape = call.shape
        self._running = running
        self._conversations = registry.of(running)
        self._pieces: ReplyAssembler | None = None
        self._over = False
        self._conversation, common = self._conversations.find(call, scope, now=time.time())
        self._observer = self._conversation.observer
        try:
            with self._conversation.lock:
                self._observer.called(call, time.time(), common=common)
        except BaseException:
            self._conversations.release(self._conversation)
            raise
        self._sent_at = time.perf_counter()

    def replied(self, reply: object) -> None:
        """The reply came back whole."""
        response_id = field_of(reply, "id")
        self._end("observing a reply", lambda: self._take(read_reply(reply), response_id))

    def unread(self) -> None:
        """The call came back, and its reply cannot be seen from here."""
        self._end("observing a reply", lambda: self._take(Reply(), None))

    def failed(self, error: BaseException) -> None:
        """The call raised."""
        self._end("observing a failed call", lambda: self._fail(error))

    def piece(self, piece: object) -> None:
        """A piece of a streamed reply passed."""
        with boundary.contain("observing a stream"):
            if self._pieces is None:
                self._pieces = assembler_for(self._shape)
            self._pieces.take(piece)

    def finished(self) -> None:
        """The stream ended, was closed or was dropped: what has come is the reply."""
        pieces = self._pieces
        if pieces is None:
            self.unread()
        else:
            self._end("observing a streamed reply", lambda: self._take(pieces.reply(), pieces.response_id))

    def _end(self, what: str, tell: Callable[[], None]) -> None:
        """The call is over; only the first to say so is heard."""
        if self._over:
            return
        self._over = True
        with _timed(self._running, "observe_reply"), boundary.contain(what):
            try:
                tell()
            finally:
                self._conversations.release(self._conversation)

    def _take(self, reply: Reply, response_id: object) -> None:
        if reply.latency_seconds is None:
            reply = replace(reply, latency_seconds=time.perf_counter() - self._sent_at)
        with self._conversation.lock:
            self._observer.replied(reply, time.time())
        known = response_id if isinstance(response_id, str) else None
        self._conversations.answered(self._conversation, reply, known)

    def _fail(self, error: BaseException) -> None:
        with self._conversation.lock:
            self._observer.failed(error, time.time())


class _Registry:
    """The conversations of the outputs that run now; a forked child and outputs started anew begin with none."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin with none."""
        self._running: RunningOutputs | None = None
        self._conversations = Conversations(_open)

    def of(self, running: RunningOutputs) -> Conversations:
        """The conversations that report to *running*."""
        if self._running is not running:
            self._conversations, self._running = Conversations(_open), running
        return self._conversations

    def leave(self, scope: Scope) -> list[Conversation]:
        """Forget the conversations of a scope, and return them to be ended."""
        return self._conversations.leave(scope)


def _open(call: Call, scope: Scope, parent: Conversation | None) -> Conversation:
    """The conversation that *call* opens, with a tracker of its own."""
    running = running_outputs()
    assert running is not None, "calls are observed only while the outputs run"
    session_id, parent_id = scope.session_id or secrets.token_hex(16), scope.parent_session_id
    if parent is not None:
        session_id, parent_id = f"{parent.session_id}/{secrets.token_hex(4)}", parent.session_id

    def view(model: str) -> ModelView:
        found = _view(model)
        given = scope.limit_tokens or running.config.max_context_tokens
        if given is None:
            return found
        limits = WindowLimits.of(given, "given", thresholds=running.config.thresholds())
        return replace(found, limits=limits)

    tracker = SessionTracker(
        SessionInfo(
            session_id, scope.agent, call.model, "live", f"{session_id}/{secrets.token_hex(6)}", parent_id
        ),
        emit=_emit,
        digest=running.digest,
        limits=view(call.model).limits,
        settings=running.config.tracker_settings(),
        clock=time.time,
        next_limit=lambda above: packaged_catalog().next_limit(tracker.info.model, above),
    )
    tracker.start()
    return Conversation(WindowObserver(tracker, view, digest=running.digest), scope, call.shape)


@lru_cache(maxsize=REMEMBERED_MODELS)
def _view(model: str) -> ModelView:
    """What the packaged vocabularies and catalog know of a model."""
    from windowpane.models.tokens import counter_for, image_tokens

    known = packaged_catalog().lookup(model)
    limit = None if known is None else known.limit_tokens

    def cost_of(usage: Usage) -> float | None:
        return packaged_catalog().cost_dollars(model, usage, time.time())

    return ModelView(
        counter_for(model),
        None if limit is None else WindowLimits.of(limit, "catalogue"),
        image_tokens(model),
        cost_of,
    )


def _emit(batch: list[Event]) -> None:
    """Hand events to the outputs that run now."""
    running = running_outputs()
    if running is not None:
        running.emit(batch)


@contextmanager
def _timed(running: RunningOutputs, hook: str) -> Iterator[None]:
    """Report how long the agent was kept waiting."""
    begun = time.perf_counter()
    try:
        yield
    finally:
        running.record_hook(hook, time.perf_counter() - begun)


registry: Final = _Registry()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=registry.forget)
