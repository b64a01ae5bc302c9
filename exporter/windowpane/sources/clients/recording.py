"""The record of captured calls, on the worker of the queue: one thread owns all conversations of a process.

Tasks run in the order in which the agents' threads put them, so the state needs no lock.
"""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from windowpane.core.agents import AgentProgram, EarlierSessions
from windowpane.core.limits import WindowLimits
from windowpane.core.names import SessionDescriptions, without_wrappers
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.core.vocabulary import LimitSource
from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.fidelity.rule_survival import RuleFollower
from windowpane.models.catalog import packaged_catalog
from windowpane.models.wire.calls import ApiCall, Shape, message_blocks
from windowpane.models.wire.replies import FailedReplyError, Reply
from windowpane.sources.clients.model_profiles import packaged_profile
from windowpane.sources.conversations.compactions import opening_summary
from windowpane.sources.conversations.conversations import Conversation, Conversations, Scope
from windowpane.sources.conversations.diff import ModelProfile
from windowpane.sources.conversations.observer import WindowObserver
from windowpane.sources.transcripts.compaction import recorded_compaction
from windowpane.sources.transcripts.records import Compacted

if TYPE_CHECKING:
    from windowpane.outputs.runtime.current import RunningOutputs

R = TypeVar("R")

MAXIMUM_RUNS: Final = 10_000
"""Runs of agents whose sessions are remembered."""

_boundary: Final = ErrorBoundary(logging.getLogger("windowpane"))


class PassedCall(Protocol):
    """A call to record: references to an agent's arguments, or the bytes of a request."""

    @property
    def shape(self) -> Shape:
        """The form of its messages."""
        ...

    def read(self) -> ApiCall:
        """Return the call."""
        ...

    def release(self) -> None:
        """Drop the references."""
        ...


class CallRecord:
    """One captured call. Each method is one task of the queue; one that follows a failed `start` does nothing."""

    __slots__ = ("_call", "_conversation", "_outputs", "_scope", "call_seconds", "reply_seconds")

    def __init__(self, call: PassedCall, scope: Scope, outputs: RunningOutputs) -> None:
        self._call = call
        self._scope = scope
        self._outputs = outputs
        self._conversation: Conversation | None = None
        self.call_seconds: float | None = None
        """Time that the agent waited for the call to be captured, in this process."""
        self.reply_seconds: float | None = None
        """Time that the agent waited for its end to be captured."""

    def start(self, at: float) -> None:
        """Record the call in its conversation."""
        conversations = live_conversations.of(self._outputs)
        call = self._call.read()
        conversation, common, content = conversations.find(call, self._scope, now=at)
        try:
            conversation.observer.record_call(call, at, common=common, content=content)
            if common is None:
                _record_earlier_compaction(self._outputs, conversation, call, at)
        except BaseException:
            conversations.release(conversation)
            raise
        finally:
            self._call.release()
        self._conversation = conversation
        live_conversations.set_session_of(self._scope.run, conversation.session_id)

    def add_reply(self, reply: R, read: Callable[[R, Shape], Reply], at: float, latency_seconds: float) -> None:
        """Record a reply that *read* converts; without content or usage where it cannot."""
        try:
            converted = read(reply, self._call.shape)
        except FailedReplyError as error:
            self.add_failure(error, at, latency_seconds)
            return
        except Exception as error:  # noqa: BLE001  # the turn ends whatever the reply looks like
            _warn_unread(self._call.shape, error)
            converted = Reply()
        if converted.latency_seconds is None:
            converted = replace(converted, latency_seconds=latency_seconds)
        self._finish(lambda conversation: self._add(conversation, converted, at))

    def add_failure(self, error: BaseException, at: float, _latency_seconds: float) -> None:
        """Record that the call raised *error*."""
        self._finish(lambda conversation: conversation.observer.record_failure(error, at))

    def _finish(self, record: Callable[[Conversation], object]) -> None:
        for hook, seconds in (("observe_call", self.call_seconds), ("observe_reply", self.reply_seconds)):
            if seconds is not None:
                self._outputs.record_hook(hook, seconds)
        conversation = self._conversation
        if conversation is None:
            return
        try:
            record(conversation)
        finally:
            conversation.busy = False

    def _add(self, conversation: Conversation, reply: Reply, at: float) -> None:
        content = conversation.observer.record_reply(reply, at)
        live_conversations.of(self._outputs).index_reply(conversation, content, reply.response_id)


def _warn_unread(shape: Shape, error: Exception) -> None:
    """Log once per kind of error that a reply was not read, and what the user can do."""
    _boundary.warn_once(
        f"unread {shape} {type(error).__name__} {str(error)[:20]}",
        "a reply (%s) could not be read: %s: %s. Its turn has no usage and its size is estimated. See "
        'docs/observing.md, "Replies that cannot be read"',
        shape,
        type(error).__name__,
        error,
    )


class LiveConversations:
    """The conversations of the running outputs; a forked child and new outputs start with none."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Discard all conversations without ending them."""
        self._outputs: RunningOutputs | None = None
        self._conversations = Conversations(_never)
        self._sessions_of_runs: OrderedDict[str, str] = OrderedDict()

    def set_session_of(self, run: str, session_id: str) -> None:
        """Record which session the calls of an agent's run are in."""
        if run:
            self._sessions_of_runs[run] = session_id
            self._sessions_of_runs.move_to_end(run)
            if len(self._sessions_of_runs) > MAXIMUM_RUNS:
                self._sessions_of_runs.popitem(last=False)

    def session_of(self, run: str) -> str | None:
        """Return the session of an agent's run."""
        return self._sessions_of_runs.get(run)

    def of(self, outputs: RunningOutputs) -> Conversations:
        """Return the conversations that report to *outputs*."""
        if self._outputs is not outputs:
            self._outputs = outputs
            self._conversations = Conversations(partial(open_conversation, outputs))
        return self._conversations

    def end(self, scope: Scope, outputs: RunningOutputs, reason: str, at: float) -> None:
        """End the conversations of *scope*."""
        for conversation in self.of(outputs).close(scope):
            conversation.observer.end(reason, at)


def open_conversation(
    outputs: RunningOutputs, call: ApiCall, scope: Scope, parent: Conversation | None
) -> Conversation:
    """Return the conversation that *call* opens, with a tracker that reports to *outputs*."""
    session_id = scope.session_id or secrets.token_hex(16)
    parent_id = scope.parent_session_id or live_conversations.session_of(scope.parent_run)
    if parent is not None:
        session_id, parent_id = f"{parent.session_id}/{secrets.token_hex(4)}", parent.session_id

    def profile(model: str) -> ModelProfile:
        packaged = packaged_profile(model, scope.agent)
        source: LimitSource = "given"
        limit = scope.limit_tokens or outputs.config.max_context_tokens
        if limit is None and scope.window_by_settings is not None:
            limit, source = scope.window_by_settings(scope.agent, model), "settings"
        if limit is None:
            return packaged
        return replace(packaged, limits=WindowLimits.of(limit, source, thresholds=outputs.config.thresholds()))

    project = scope.project or outputs.config.project
    earlier = outputs.earlier_compaction_tokens(scope.agent, call.model, project=project)
    tracker = SessionTracker(
        SessionInfo(
            session_id, scope.agent, call.model, scope.source, f"{session_id}/{secrets.token_hex(6)}", parent_id
        ),
        emit=outputs.emit,
        digest=outputs.digest,
        limits=profile(call.model).limits,
        settings=outputs.config.tracker_settings(),
        clock=time.time,
        next_limit=lambda above: packaged_catalog().next_limit(tracker.info.model, above),
        smaller_limit=lambda used: packaged_catalog().smaller_limit(tracker.info.model, used),
        program=AgentProgram(
            scope.agent,
            compaction_tokens=_level_by_settings(scope, profile(call.model).limits),
            earlier=EarlierSessions(earlier),
        ),
    )
    RuleFollower(tracker, digest=outputs.digest)
    tracker.start()
    names = SessionDescriptions()
    described = names.state(project=project)
    if described is not None:
        tracker.record(described)
    if parent is None:
        _describe(tracker, names, call, scope, captures=outputs.config.store.capture)
    return Conversation(WindowObserver(tracker, profile, digest=outputs.digest), scope, call.shape)


def _record_earlier_compaction(
    outputs: RunningOutputs, conversation: Conversation, call: ApiCall, at: float
) -> None:
    """Record the compaction of a session since its last run, whose window the store has.

    Its first *call* of this run then starts with a summary that was not in that window.
    """
    summary = opening_summary(call)
    if summary is None or conversation.session_id != conversation.scope.session_id:
        return
    stored = outputs.stored_window(conversation.session_id)
    if stored is None or outputs.digest(summary) in stored.digests:
        return
    tracker = conversation.observer.tracker
    after = tracker.gauge.account.used(tracker.window.tokens)
    compaction = recorded_compaction(
        Compacted("unknown", stored.used_tokens, after),
        tracker,
        retained=frozenset(block.id for block in tracker.window),
        counter=packaged_profile(call.model).counter,
    )
    tracker.compress(compaction.event, at=at, window_tokens=after, window_tokens_before=stored.used_tokens)


def _level_by_settings(scope: Scope, limits: WindowLimits | None) -> int | None:
    if scope.level_by_settings is None:
        return None
    return scope.level_by_settings(scope.agent, None if limits is None else limits.limit_tokens)


def _describe(
    tracker: SessionTracker, names: SessionDescriptions, call: ApiCall, scope: Scope, *, captures: bool
) -> None:
    """Record the names that the user gave; the first message is a title only where texts are stored."""
    described = names.state(title=scope.title, title_source="user", label=scope.label)
    if described is not None:
        tracker.record(described)
    if captures and not names.has_title:
        specs = (spec for message in call.messages for spec in message_blocks(call.shape, message))
        first = next((spec.text for spec in specs if spec.content_type == "user_message" and spec.text), "")
        derived = names.state(title=without_wrappers(first), title_source="first_message")
        if derived is not None:
            tracker.record(derived)


def _never(*_: object) -> Conversation:
    raise RuntimeError("no outputs run")


live_conversations: Final = LiveConversations()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=live_conversations.clear)
