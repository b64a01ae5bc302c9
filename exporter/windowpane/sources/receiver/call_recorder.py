"""Assembled calls recorded in sessions, with the observer's comparison of message lists.

A call belongs to
1. the conversation that it names, the agents in it that are not the first to child sessions;
2. without a name, the conversation whose messages it continues, as with an observed client;
3. without messages either, the session of its trace.

A session has the id that the import of a dump gives it.

A call that started before the last one of its session was recorded has come too late: it becomes a separate
session below it, so that its usage counts and the window of the session stays true.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar
from weakref import WeakValueDictionary

from windowpane.core.agents import AgentProgram
from windowpane.core.events import Event
from windowpane.core.limits import WindowLimits
from windowpane.core.protocols import Clock, Digester
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.fidelity.rule_survival import RuleFollower
from windowpane.models.catalog import packaged_catalog
from windowpane.models.wire.calls import ApiCall
from windowpane.models.wire.replies import Reply
from windowpane.sources.clients.model_profiles import packaged_profile
from windowpane.sources.conversations.conversations import Conversation, Conversations, Scope
from windowpane.sources.conversations.diff import ModelProfile
from windowpane.sources.conversations.observer import WindowObserver
from windowpane.sources.telemetry.compactions import InferredCompactions
from windowpane.sources.telemetry.reported_call import Assembled, AssembledCall, AssembledCompaction
from windowpane.sources.telemetry.session_keys import SessionKeys
from windowpane.sources.transcripts.compaction import recorded_compaction
from windowpane.sources.transcripts.playback import session_id_of
from windowpane.sources.transcripts.records import Compacted

if TYPE_CHECKING:
    from windowpane.config.schema import Config

V = TypeVar("V")

SOURCE: Final = "otlp"
"""The source of the events."""
UNNAMED_AGENT: Final = "otlp"
REMEMBERED: Final = 20_000
"""Sessions, conversations and agents' spans that are remembered."""
LATE_SECONDS: Final = 0.001
"""Calls that start within it of each other have no order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderSettings:
    """Dependencies of the recorder."""

    emit: Callable[[list[Event]], None]
    digest: Digester
    config: Config
    stream: str
    """Part of the ids of streams: the same for every reading of a dump, another in every receiving process."""
    clock: Clock | None = None
    """The time of what happens without a report, such as the end of an idle session."""
    recorded_elsewhere: Callable[[str], bool] = lambda _: False
    """Returns whether a session is recorded from another source, such as its transcript."""


class CallRecorder:
    """Records calls in the order in which they are passed. One thread owns it."""

    def __init__(self, settings: RecorderSettings) -> None:
        self._settings = settings
        self._conversations = Conversations(self._open)
        self._observers: WeakValueDictionary[str, WindowObserver] = WeakValueDictionary()
        """Those of the open sessions, by session id."""
        self._scopes: _Remembered[Scope] = _Remembered()
        """By session id, so that the calls of one session have one scope."""
        self._keys = SessionKeys()
        self._compactions = InferredCompactions()
        self._sessions: _Remembered[str] = _Remembered()
        """The latest session of each agent's span."""
        self._latest: _Remembered[float] = _Remembered()
        """The start of the latest call of each session."""
        self._openings: _Remembered[int] = _Remembered()
        """Times each session was opened: one that was idle continues in another stream."""
        self._opening: AssembledCall | None = None
        """The call that is being recorded, which may open a session."""
        self.skipped = 0
        """Calls of sessions that are recorded from another source."""

    def record(self, assembled: Assembled) -> None:
        """Record one call or compaction."""
        if isinstance(assembled, AssembledCompaction):
            self._record_compaction(assembled)
            return
        conversation_id = assembled.call.conversation
        if conversation_id and self._settings.recorded_elsewhere(conversation_id):
            self.skipped += 1
            return
        compaction = self._compactions.before(assembled)
        if compaction is not None:
            self._record_compaction(compaction)
        scope = self._scope(assembled)
        self._opening = assembled
        call = assembled.api_call(otherwise_continues=f"{SOURCE} {scope.session_id}")
        conversation, common, content = self._conversations.find(call, scope, now=assembled.started_at)
        try:
            latest = self._latest.get(conversation.session_id)
            if latest is not None and assembled.started_at < latest - LATE_SECONDS:
                self._record_late(assembled, conversation)
            else:
                self._state_window(assembled, conversation.observer.tracker)
                conversation.observer.record_call(call, assembled.started_at, common=common, content=content)
                self._record_end(assembled, conversation)
        finally:
            self._conversations.release(conversation)

    def flush(self) -> None:
        """Hand over the events that the open sessions hold."""
        for observer in list(self._observers.values()):
            observer.tracker.flush()

    # -- inside -----------------------------------------------------------------------------------------------

    def _record_end(self, assembled: AssembledCall, conversation: Conversation) -> None:
        """Record the reply of a call, or its failure."""
        self._latest[conversation.session_id] = assembled.started_at
        if assembled.enclosing_agent:
            self._sessions[assembled.enclosing_agent] = conversation.session_id
        reply = _priced(assembled)
        if reply is None:
            conversation.observer.record_failure(assembled.call.error, assembled.ended_at)
            return
        content = conversation.observer.record_reply(reply, assembled.ended_at)
        self._conversations.index_reply(conversation, content, reply.response_id)

    def _state_window(self, assembled: AssembledCall, tracker: SessionTracker) -> None:
        """Use the size of the window that a call states, where the user gave none."""
        size = assembled.call.window_tokens
        if size and self._settings.config.max_context_tokens is None:
            limits = WindowLimits.of(size, "provider", thresholds=self._settings.config.thresholds())
            if tracker.limits is None or tracker.limits.limit_tokens != size:
                tracker.set_limits(limits, assembled.started_at)

    def _record_late(self, assembled: AssembledCall, conversation: Conversation) -> None:
        """Record a call in a separate session below the one that it came too late for."""
        own = f"{conversation.session_id}/{assembled.span_id or f'{assembled.started_at:.6f}'}"
        scope = Scope(conversation.scope.agent, own, None, conversation.session_id)
        call = ApiCall("chat", assembled.call.model, ())
        observer = self._open(call, scope, None).observer
        observer.record_call(call, assembled.started_at)
        observer.record_reply(replace(_priced(assembled) or Reply(), parts=()), assembled.ended_at)
        observer.end("late", assembled.ended_at)

    def _record_compaction(self, assembled: AssembledCompaction) -> None:
        """Record a compaction in the session that it names, where only the usage of its calls is known."""
        observer = self._observers.get(session_id_of(SOURCE, assembled.conversation))
        stated = assembled.compaction
        if observer is None or not stated.succeeded or observer.sent_count:
            return
        tracker = observer.tracker
        record = Compacted(
            stated.trigger, stated.tokens_before, stated.tokens_after, duration_seconds=stated.duration_seconds
        )
        counter = packaged_profile(tracker.info.model).counter
        compaction = recorded_compaction(record, tracker, retained=frozenset(), counter=counter)
        tracker.compress(
            compaction.event,
            compaction.results,
            assembled.started_at,
            window_tokens=stated.tokens_after,
            window_tokens_before=stated.tokens_before,
        )
        tracker.flush()

    def _scope(self, assembled: AssembledCall) -> Scope:
        """Return the scope of a call; one object for each named session."""
        key, parent_key = self._keys.of(assembled)
        agent = assembled.call.agent or assembled.service or UNNAMED_AGENT
        if not key:
            return Scope(agent, None, None, self._sessions.get(assembled.outer_agent))
        session_id = session_id_of(SOURCE, key)
        scope = self._scopes.get(session_id)
        if scope is None:
            parent_id = None if parent_key is None else session_id_of(SOURCE, parent_key)
            scope = self._scopes[session_id] = Scope(agent, session_id, None, parent_id)
        return scope

    def _open(self, call: ApiCall, scope: Scope, parent: Conversation | None) -> Conversation:
        """Return a new conversation with its session."""
        settings, opening = self._settings, self._opening
        assert opening is not None, "a session is opened by a call"
        session_id, parent_id = self._identity(opening, scope, parent)
        config = settings.config
        limit = config.max_context_tokens
        given = None if limit is None else WindowLimits.of(limit, "given", thresholds=config.thresholds())

        agent = opening.agent or UNNAMED_AGENT

        def profile(model: str) -> ModelProfile:
            packaged = packaged_profile(model, agent)
            return packaged if given is None else replace(packaged, limits=given)

        openings = self._openings[session_id] = self._openings.get(session_id, 0) + 1
        stream = f"{session_id}/{settings.stream}" + (f"/{openings}" if openings > 1 else "")
        tracker = SessionTracker(
            SessionInfo(session_id, agent, call.model, SOURCE, stream, parent_id),
            emit=settings.emit,
            digest=settings.digest,
            limits=profile(call.model).limits,
            settings=config.tracker_settings(),
            clock=settings.clock,
            next_limit=lambda above: packaged_catalog().next_limit(tracker.info.model, above),
            smaller_limit=lambda used: packaged_catalog().smaller_limit(tracker.info.model, used),
            program=AgentProgram(agent, compaction_tokens=opening.call.compaction_tokens),
        )
        RuleFollower(tracker, digest=settings.digest)
        tracker.start(opening.started_at)
        observer = self._observers[session_id] = WindowObserver(tracker, profile, digest=settings.digest)
        return Conversation(observer, scope, call.shape)

    def _identity(
        self, opening: AssembledCall, scope: Scope, parent: Conversation | None
    ) -> tuple[str, str | None]:
        """Return the ids of a new session and of its parent: the same for every reading of the same reports."""
        own = opening.span_id or f"{opening.started_at:.6f}"
        if parent is not None:
            return f"{parent.session_id}/{own}", parent.session_id
        if scope.session_id is not None:
            return scope.session_id, scope.parent_session_id
        session_id = session_id_of(SOURCE, opening.trace_id or own)
        return f"{session_id}/{own}" if session_id in self._latest else session_id, scope.parent_session_id


class _Remembered(OrderedDict[str, V]):
    """A dictionary that forgets the entry that was set longest ago."""

    def __setitem__(self, key: str, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > REMEMBERED:
            self.popitem(last=False)


def _priced(assembled: AssembledCall) -> Reply | None:
    """Return the reply with its cost, by the catalog where no report states it; None for a failed call."""
    reply = assembled.reply()
    if reply is None or reply.cost_dollars is not None or reply.usage is None:
        return reply
    cost = packaged_catalog().cost_dollars(reply.model, reply.usage, assembled.ended_at)
    return replace(reply, cost_dollars=cost)
