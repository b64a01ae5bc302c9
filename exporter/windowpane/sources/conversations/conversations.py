"""Assigns each call to its conversation.

A conversation is recognized, in this order, by
1. its messages: this list starts with the list of the last call, whatever became of the reply; or with its last
   messages and the reply, where the agent rewrites its system prompt or drops the oldest messages;
2. ids that a model or provider generated in it: stored responses, tool calls;
3. texts that a model generated in it, where the call also shares a message with the last one: agents that cut or
   rewrite their history send some of it again.
Texts alone never join conversations that share nothing else. A call without any of this opens a conversation,
with two exceptions: it replaces everything after the same first message, after some turns; or it is the summary
of the conversation of a named session (`compactions`).

Not thread-safe: one thread, the worker that reads captured calls, owns the conversations of a process.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

from windowpane.models.wire.calls import ApiCall, Shape
from windowpane.models.wire.messages import BlockSpec, Key, copy_structure
from windowpane.sources.conversations.compactions import summarizes
from windowpane.sources.conversations.conversation_keys import (
    MessageBlocks,
    generated_keys,
    is_similar,
    is_text,
    is_unique,
    opening,
    system_prompt,
)
from windowpane.sources.conversations.observer import WindowObserver

CAPACITY: Final = 1_024
"""Conversations followed at once; beyond it the one idle for longest is removed."""
MAXIMUM_MESSAGES: Final = 100_000
"""Messages held by all conversations together; beyond it the one idle for longest is removed."""
CHECKED_PER_CALL: Final = 8
"""Conversations checked for idleness with each call."""
IDLE_SECONDS: Final = 3_600.0
"""A conversation without a call for so long has ended."""
MAXIMUM_KEYS: Final = 64
"""Generated pieces indexed per conversation, the latest."""
CONVERSATIONS_PER_KEY: Final = 8
COMPACTION_TURNS: Final = 3
"""Turns after which a list without generated content can be the same conversation, compacted."""
LevelBySettings = Callable[[str, int | None], int | None]
"""Returns the used tokens at which an agent compacts by its settings, given the size of its window."""
WindowBySettings = Callable[[str, str], int | None]
"""Returns the size of the window in which an agent runs a model by its settings."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The caller and session of the calls made within `session(...)`, or by one client outside of it.

    One object is one use of a named session; another with the same name is another use.
    """

    agent: str
    session_id: str | None = None
    """None where the messages decide which conversation a call belongs to."""
    limit_tokens: int | None = None
    parent_session_id: str | None = None
    title: str = ""
    """Given by the user, for people; likewise the label."""
    label: str = ""
    project: str = ""
    """The project that the session belongs to; empty for the configured one."""
    source: str = "live"
    """Origin of the calls: `live` in the agent's process."""
    level_by_settings: LevelBySettings | None = field(default=None, compare=False)
    """For callers on this machine the level at which they compact by their settings; None for any others."""
    window_by_settings: WindowBySettings | None = field(default=None, compare=False)
    """Likewise the size of their window."""
    run: str = field(default="", compare=False)
    """One run of an agent of a framework that names its agents, which may open a session."""
    parent_run: str = field(default="", compare=False)
    """The run that started it or handed over: a session that it opens is below the session of this one."""

    def contains(self, other: Scope) -> bool:
        """Return whether calls of *other* can belong to conversations of this scope."""
        return self is other if self.session_id is not None else self == other


@dataclass(slots=True, eq=False)
class Conversation:
    """One conversation and its observer."""

    observer: WindowObserver
    scope: Scope
    shape: Shape
    start: object = None
    """The start of its messages, by which it is indexed."""
    system: object = None
    last_at: float = 0.0
    keys: OrderedDict[object, None] = field(default_factory=OrderedDict)
    """Generated pieces by which it is indexed, the latest last."""
    reply_keys: frozenset[object] = frozenset()
    """Those of its last reply."""
    messages: int = 0
    """Messages of its last call, which it holds."""
    session_id: str = field(init=False)
    """The id of its session."""
    busy: bool = False
    """A call is under way."""
    streaming: bool = False
    """That call is a stream, which an agent may drop without closing it."""

    def __post_init__(self) -> None:
        """Take the id from the tracker, whose session stays the same."""
        self.session_id = self.observer.tracker.info.session_id

    @property
    def in_use(self) -> bool:
        """Return whether a call is under way that another one must not interrupt."""
        return self.busy and not self.streaming


class ConversationMatch(NamedTuple):
    """The conversation of a call."""

    conversation: Conversation
    common: int | None
    """Leading messages that the call shares with the one before; None for a new conversation."""
    content: list[list[BlockSpec]] | None
    """The content of the messages after these."""


class _Match(NamedTuple):
    conversation: Conversation
    common: int | None = None


ANSWERED: Final = 3
"""The list starts with that of the last call, and its reply comes back or there was none."""
GENERATED_ID: Final = 3
"""An id that was generated in the conversation; a longer list in common decides between the two."""
CONTINUED: Final = 2
"""The list starts with that of the last call or the end of it, below another system prompt or the same."""
SHARED: Final = 1
"""A text that was generated in the conversation, and a message in common."""
REPLACED: Final = 0
"""The first message in common with a conversation of some turns."""


class _Evidence(NamedTuple):
    """The reason to assign a call to a conversation; the greatest decides."""

    rank: int
    common: int
    """Leading messages that the call shares with the conversation's last one."""
    came_back: bool
    """The conversation's last reply comes back."""
    conversation: Conversation
    has_all_sent: bool
    """The call starts with all messages of the conversation's last one."""


OpenConversation = Callable[[ApiCall, Scope, Conversation | None], Conversation]
"""Makes the conversation that a call opens; the last argument is the one it branched off, if any."""


class Conversations:
    """The conversations of a process."""

    def __init__(self, open_conversation: OpenConversation, *, capacity: int = CAPACITY) -> None:
        self._open = open_conversation
        self._capacity = capacity
        self._messages = 0
        """Messages held by all conversations."""
        self._by_session: OrderedDict[str, Conversation] = OrderedDict()
        """The one idle for longest first."""
        self._by_start: dict[object, OrderedDict[str, Conversation]] = {}
        """Conversations by `start`, the one idle for longest first."""
        self._by_key: dict[object, list[Conversation]] = {}

    def __len__(self) -> int:
        return len(self._by_session)

    def find(self, call: ApiCall, scope: Scope, *, now: float) -> ConversationMatch:
        """Return the conversation of *call*, a new one where none matches; it is busy until it is released."""
        self._end_idle(now)
        blocks = MessageBlocks(call)
        start = None if call.continues is not None else blocks.start()
        match = self._match(call, scope, start, blocks) or _Match(self._open(call, scope, self._parent(scope)))
        conversation = match.conversation
        conversation.last_at = now
        content = None if match.common is None else blocks.between(match.common, len(call.messages))
        conversation.system = copy_structure(system_prompt(call))
        conversation.busy, conversation.streaming = True, call.streams
        self._hold(conversation, len(call.messages))
        self._by_session[conversation.session_id] = conversation
        self._by_session.move_to_end(conversation.session_id)
        if call.continues is None:
            self._index_start(conversation, start)
        else:
            self._index(conversation, call.continues)
        return ConversationMatch(conversation, match.common, content)

    def release(self, conversation: Conversation) -> None:
        """Mark the conversation's call as ended."""
        conversation.busy = False

    def index_reply(self, conversation: Conversation, content: Iterable[BlockSpec], response_id: str) -> None:
        """Index the generated *content* of a reply, by which later calls match its conversation."""
        conversation.busy = False
        keys = [spec.key for spec in content]
        conversation.reply_keys = frozenset(keys)
        for key in (*keys, response_id):
            if key:
                self._index(conversation, key)
        while len(conversation.keys) > MAXIMUM_KEYS:
            self._drop_key(conversation, conversation.keys.popitem(last=False)[0])

    def close(self, scope: Scope) -> list[Conversation]:
        """Remove the conversations of *scope* and return them, for the caller to end."""
        closed = [conversation for conversation in self._by_session.values() if conversation.scope is scope]
        for conversation in closed:
            self._remove(conversation)
        return closed

    # -- matching ---------------------------------------------------------------------------------------------

    def _match(self, call: ApiCall, scope: Scope, start: object, blocks: MessageBlocks) -> _Match | None:
        if call.continues is not None:
            return self._match_stored(call, scope)
        evidence = self._evidence(call, scope, start, blocks)
        if evidence is not None:
            return self._claim(call, evidence)
        if scope.session_id is not None:
            return self._match_summary(call, scope)
        return None

    def _claim(self, call: ApiCall, evidence: _Evidence) -> _Match | None:
        """Return the conversation that *evidence* names, or a branch of it while another call is under way."""
        conversation = evidence.conversation
        repeated = evidence.has_all_sent and evidence.common == len(call.messages)
        if not conversation.in_use and not (repeated and conversation.busy):
            return _Match(conversation, evidence.common)
        if repeated and conversation.observer.tracker.turn == 1:  # another run of the same task
            return None
        return _Match(self._open(call, conversation.scope, conversation))

    def _match_summary(self, call: ApiCall, scope: Scope) -> _Match | None:
        """Match a call of a named session that replaces everything that its conversation sent.

        The summary may have been generated in the session itself, or by a call beside it.
        """
        own = [one for one in self._by_session.values() if one.scope is scope]
        beside = [one for one in self._by_session.values() if one.scope.parent_session_id == scope.session_id]
        texts = (key for one in (*own, *beside) for key in one.keys if is_text(key) and is_unique(key))
        generated = [key.name for key in texts if isinstance(key, Key)]
        for conversation in own:
            same = conversation.shape == call.shape and conversation.system == system_prompt(call)
            if not same or conversation.in_use:
                continue
            if call.is_compacted or summarizes(call, conversation.observer, generated):
                return _Match(conversation, conversation.observer.common_messages(call))
        return None

    def _match_stored(self, call: ApiCall, scope: Scope) -> _Match | None:
        """Match a call that continues messages which the provider stores."""
        for conversation in reversed(self._by_key.get(call.continues, ())):
            if not scope.contains(conversation.scope):
                continue
            if conversation.in_use:
                return _Match(self._open(call, conversation.scope, conversation))
            return _Match(conversation, 0)
        return None

    def _evidence(self, call: ApiCall, scope: Scope, start: object, blocks: MessageBlocks) -> _Evidence | None:
        """Return the best reason to assign *call* to an existing conversation."""
        continued = self._continued(call, scope, start, blocks)
        if continued is not None:
            return continued
        generated = set(generated_keys(call)) if self._by_key else set()
        best: _Evidence | None = None
        for conversation in self._candidates(call, scope, start, generated):
            evidence = self._weigh(call, conversation, generated, blocks)
            if evidence is not None and (best is None or evidence[:3] > best[:3]):
                best = evidence
        return best

    def _continued(self, call: ApiCall, scope: Scope, start: object, blocks: MessageBlocks) -> _Evidence | None:
        """Return the conversation that *call* continues with the reply to its last call, the usual case."""
        longest: _Evidence | None = None
        for conversation in reversed(self._by_start.get(start, {}).values()):
            if not scope.contains(conversation.scope):
                continue
            common = conversation.observer.common_messages(call)
            if longest is not None and common < longest.common:
                continue
            has_all_sent = common == conversation.observer.sent_count
            came_back = has_all_sent and blocks.hold_any(conversation.reply_keys, after=common)
            if longest is None or (common, came_back) > (longest.common, longest.came_back):
                longest = _Evidence(ANSWERED, common, came_back, conversation, has_all_sent)
        return longest if longest is not None and longest.came_back else None

    def _candidates(
        self, call: ApiCall, scope: Scope, start: object, generated: set[object]
    ) -> Iterable[Conversation]:
        """Return the conversations that share the start or generated content with *call*, latest first."""
        candidates: dict[Conversation, None] = {}
        for conversation in reversed(self._by_start.get(start, {}).values()):
            candidates[conversation] = None
        for key in generated:
            for conversation in reversed(self._by_key.get(key, ())):
                candidates[conversation] = None
        return [
            conversation
            for conversation in candidates
            if conversation.shape == call.shape and scope.contains(conversation.scope)
        ]

    def _weigh(
        self, call: ApiCall, conversation: Conversation, generated: set[object], blocks: MessageBlocks
    ) -> _Evidence | None:
        """Return the reason to assign *call* to *conversation*, if there is one."""
        common = conversation.observer.common_messages(call)
        came_back = not conversation.observer.answered or bool(conversation.reply_keys & generated)
        rank = self._rank(call, conversation, common, blocks, came_back=came_back, generated=generated)
        has_all_sent = common == conversation.observer.sent_count
        return None if rank is None else _Evidence(rank, common, came_back, conversation, has_all_sent)

    def _rank(
        self,
        call: ApiCall,
        conversation: Conversation,
        common: int,
        blocks: MessageBlocks,
        *,
        came_back: bool,
        generated: set[object],
    ) -> int | None:
        observer, in_session = conversation.observer, conversation.scope.session_id is not None
        if common == observer.sent_count > 0:
            repeated = len(call.messages) == common and observer.answered
            if repeated and observer.tracker.turn == 1 and not in_session:  # another run of the same task
                return None
            return ANSWERED if came_back else CONTINUED
        if observer.grew_into(call, common) or _repeats_end(call, conversation, blocks):
            return ANSWERED if came_back else CONTINUED
        unique = [key for key in conversation.keys.keys() & generated if is_unique(key)]
        if not all(is_text(key) for key in unique):
            return GENERATED_ID
        if (unique or in_session) and (common >= opening(call) or observer.last_sent_in(call)):
            return SHARED
        replaced = opening(call) <= common < len(call.messages) and observer.tracker.turn >= COMPACTION_TURNS
        return REPLACED if replaced and not conversation.in_use else None

    # -- inside -----------------------------------------------------------------------------------------------

    def _parent(self, scope: Scope) -> Conversation | None:
        """Return the conversation of a named session that further ones are children of."""
        if scope.session_id is None:
            return None
        return self._by_session.get(scope.session_id) or next(
            (one for one in self._by_session.values() if one.scope is scope), None
        )

    def _end_idle(self, now: float) -> None:
        """End conversations that are idle or over capacity; never one with a call under way."""
        for oldest in list(islice(self._by_session.values(), CHECKED_PER_CALL)):
            full = len(self._by_session) >= self._capacity or self._messages > MAXIMUM_MESSAGES
            if not full and now - oldest.last_at < IDLE_SECONDS:
                return
            if oldest.in_use:
                continue
            self._remove(oldest)
            oldest.observer.end("idle")

    def _remove(self, conversation: Conversation) -> None:
        self._by_session.pop(conversation.session_id, None)
        self._hold(conversation, 0)
        self._drop_start(conversation)
        for key in conversation.keys:
            self._drop_key(conversation, key)

    def _hold(self, conversation: Conversation, messages: int) -> None:
        self._messages += messages - conversation.messages
        conversation.messages = messages

    def _index_start(self, conversation: Conversation, start: object) -> None:
        if start != conversation.start:
            self._drop_start(conversation)
            conversation.start = start
        indexed = self._by_start.setdefault(start, OrderedDict())
        indexed[conversation.session_id] = conversation
        indexed.move_to_end(conversation.session_id)

    def _drop_start(self, conversation: Conversation) -> None:
        indexed = self._by_start.get(conversation.start)
        if indexed is not None:
            indexed.pop(conversation.session_id, None)
            if not indexed:
                del self._by_start[conversation.start]

    def _index(self, conversation: Conversation, key: object) -> None:
        conversation.keys[key] = None
        conversation.keys.move_to_end(key)
        indexed = self._by_key.setdefault(key, [])
        if conversation in indexed:
            indexed.remove(conversation)
        indexed.append(conversation)
        del indexed[:-CONVERSATIONS_PER_KEY]

    def _drop_key(self, conversation: Conversation, key: object) -> None:
        indexed = self._by_key.get(key, [])
        if conversation in indexed:
            indexed.remove(conversation)
            if not indexed:
                del self._by_key[key]


def _repeats_end(call: ApiCall, conversation: Conversation, blocks: MessageBlocks) -> bool:
    """Return whether *call* holds the last messages of the conversation and its reply below a similar prompt."""
    repeated = conversation.observer.repeated_messages(call)
    if not repeated or not blocks.hold_any(conversation.reply_keys, after=repeated.stop):
        return False
    return is_similar(conversation.system, system_prompt(call))
