"""The calls of a watched client: each is recorded by the observer of its conversation.

The agent's calls pass through unchanged; an internal failure is logged and never reaches the agent.
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
from windowpane.observer.diff import ModelProfile
from windowpane.observer.messages import ApiCall, Shape, field_of, parse_call
from windowpane.observer.observer import WindowObserver
from windowpane.observer.streams import ReplyAssembler, assembler_for
from windowpane.runtime.current import RunningOutputs, running_outputs

if TYPE_CHECKING:
    from collections.abc import Callable

    from windowpane.core.events import Event, Usage

CACHED_MODELS: Final = 64
boundary: Final = ErrorBoundary(logging.getLogger("windowpane"))
current_scope: Final[ContextVar[Scope | None]] = ContextVar("windowpane_session", default=None)


class WatchedClient:
    """Starts a record of each call of one client; never raises."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def start(self, shape: Shape, body: object) -> WatchedCall | None:
        """Record that a call is about to be sent; returns None where it cannot be observed."""
        outputs = running_outputs()
        if outputs is None:
            return None
        watched = None
        with _timed(outputs, "observe_call"), boundary.contain("observing a call"):
            call = parse_call(shape, body) if isinstance(body, Mapping) else None
            if call is not None:
                watched = WatchedCall(call, current_scope.get() or self._scope, outputs)
        return watched


class WatchedCall:
    """One call under way, which records its reply, its pieces or its failure. Only its construction can raise."""

    def __init__(self, call: ApiCall, scope: Scope, outputs: RunningOutputs) -> None:
        self._shape = call.shape
        self._outputs = outputs
        self._conversations = live_conversations.of(outputs)
        self._assembler: ReplyAssembler | None = None
        self._ended = False
        self._conversation, common = self._conversations.find(call, scope, now=time.time())
        self._observer = self._conversation.observer
        try:
            with self._conversation.lock:
                self._observer.record_call(call, time.time(), common=common)
        except BaseException:
            self._conversations.release(self._conversation)
            raise
        self._sent_at = time.perf_counter()

    def record_reply(self, reply: object) -> None:
        """Record a reply that came back whole."""
        self._end("observing a reply", lambda: self._add(read_reply(reply), field_of(reply, "id")))

    def record_unread_reply(self) -> None:
        """Record that the call came back with a reply that cannot be read from here."""
        self._end("observing a reply", lambda: self._add(Reply(), None))

    def record_failure(self, error: BaseException) -> None:
        """Record that the call raised *error*."""
        self._end("observing a failed call", lambda: self._add_failure(error))

    def record_piece(self, piece: object) -> None:
        """Record one piece of a streamed reply."""
        with boundary.contain("observing a stream"):
            if self._assembler is None:
                self._assembler = assembler_for(self._shape)
            self._assembler.add(piece)

    def record_end_of_stream(self) -> None:
        """Record the pieces so far as the reply: the stream ended, was closed or was dropped."""
        if (reply := self._assembler) is None:
            self.record_unread_reply()
        else:
            self._end("observing a streamed reply", lambda: self._add(reply.reply(), reply.response_id))

    def _end(self, operation: str, record: Callable[[], None]) -> None:
        """Run *record* for the first end of the call; later ones are ignored."""
        if self._ended:
            return
        self._ended = True
        with _timed(self._outputs, "observe_reply"), boundary.contain(operation):
            try:
                record()
            finally:
                self._conversations.release(self._conversation)

    def _add(self, reply: Reply, response_id: object) -> None:
        if reply.latency_seconds is None:
            reply = replace(reply, latency_seconds=time.perf_counter() - self._sent_at)
        with self._conversation.lock:
            self._observer.record_reply(reply, time.time())
        self._conversations.index_reply(
            self._conversation, reply, response_id if isinstance(response_id, str) else None
        )

    def _add_failure(self, error: BaseException) -> None:
        with self._conversation.lock:
            self._observer.record_failure(error, time.time())


class LiveConversations:
    """The conversations of the running outputs; a forked child and new outputs start with none."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Discard all conversations without ending them."""
        self._outputs: RunningOutputs | None = None
        self._conversations = Conversations(open_conversation)

    def of(self, outputs: RunningOutputs) -> Conversations:
        """Return the conversations that report to *outputs*."""
        if self._outputs is not outputs:
            self._conversations, self._outputs = Conversations(open_conversation), outputs
        return self._conversations

    def close(self, scope: Scope) -> list[Conversation]:
        """Remove the conversations of *scope* and return them, for the caller to end."""
        return self._conversations.close(scope)


def open_conversation(call: ApiCall, scope: Scope, parent: Conversation | None) -> Conversation:
    """Return the conversation that *call* opens, with a tracker that reports to the running outputs."""
    outputs = running_outputs()
    assert outputs is not None, "calls are observed only while the outputs run"
    session_id, parent_id = scope.session_id or secrets.token_hex(16), scope.parent_session_id
    if parent is not None:
        session_id, parent_id = f"{parent.session_id}/{secrets.token_hex(4)}", parent.session_id

    def profile(model: str) -> ModelProfile:
        packaged = _packaged_profile(model)
        limit = scope.limit_tokens or outputs.config.max_context_tokens
        if limit is None:
            return packaged
        return replace(packaged, limits=WindowLimits.of(limit, "given", thresholds=outputs.config.thresholds()))

    tracker = SessionTracker(
        SessionInfo(
            session_id, scope.agent, call.model, "live", f"{session_id}/{secrets.token_hex(6)}", parent_id
        ),
        emit=_emit,
        digest=outputs.digest,
        limits=profile(call.model).limits,
        settings=outputs.config.tracker_settings(),
        clock=time.time,
        next_limit=lambda above: packaged_catalog().next_limit(tracker.info.model, above),
    )
    tracker.start()
    return Conversation(WindowObserver(tracker, profile, digest=outputs.digest), scope, call.shape)


@lru_cache(maxsize=CACHED_MODELS)
def _packaged_profile(model: str) -> ModelProfile:
    """Return a model's profile by the packaged vocabularies and catalog."""
    from windowpane.models.tokens import counter_for, image_tokens

    entry = packaged_catalog().lookup(model)
    limit = None if entry is None else entry.limit_tokens

    def cost_of(usage: Usage) -> float | None:
        return packaged_catalog().cost_dollars(model, usage, time.time())

    return ModelProfile(
        counter_for(model),
        None if limit is None else WindowLimits.of(limit, "catalogue"),
        image_tokens(model),
        cost_of,
    )


def _emit(batch: list[Event]) -> None:
    outputs = running_outputs()
    if outputs is not None:
        outputs.emit(batch)


@contextmanager
def _timed(outputs: RunningOutputs, hook: str) -> Iterator[None]:
    """Record how long the agent waited for *hook*."""
    started = time.perf_counter()
    try:
        yield
    finally:
        outputs.record_hook(hook, time.perf_counter() - started)


live_conversations: Final = LiveConversations()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=live_conversations.clear)
