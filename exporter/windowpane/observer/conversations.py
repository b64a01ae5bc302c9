"""Assigns each call to its conversation, by the content of the call.

The content that a model wrote identifies its conversation: a call that sends back a tool call id or a text
generated in a conversation continues it, however much of the rest the agent has cut or rewritten. A call without
generated content opens a conversation, with two exceptions: it repeats a call that never came back, or it comes
from an agent that worked for a while and then replaced everything after the same first message. Within a named
session the name settles most of this.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

from windowpane.models.replies import Reply
from windowpane.observer.messages import (
    ApiCall,
    Key,
    Shape,
    copy_structure,
    field_of,
    message_blocks,
    reply_blocks,
)
from windowpane.observer.observer import WindowObserver

CAPACITY: Final = 256
"""Conversations followed at once; beyond it the one idle for longest is removed."""
CHECKED_PER_CALL: Final = 8
"""Conversations checked for idleness with each call."""
IDLE_SECONDS: Final = 3_600.0
"""A conversation without a call for so long has ended."""
MAXIMUM_KEYS: Final = 64
"""Generated pieces indexed per conversation, the latest."""
SEARCHED_MESSAGES: Final = 64
"""Messages, from the last, that are searched for generated pieces."""
UNIQUE_ID_CHARACTERS: Final = 20
"""A tool call id of at least this length is unique; shorter ones are counted up in every conversation."""
UNIQUE_TEXT_CHARACTERS: Final = 80
"""A reply of at least this length is unique enough."""
CONVERSATIONS_PER_KEY: Final = 8
COMPACTION_TURNS: Final = 3
"""Turns after which a list without generated content can be the same conversation, compacted."""


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


@dataclass(slots=True, eq=False)
class Conversation:
    """One conversation, its observer, and the lock that serializes the observer."""

    observer: WindowObserver
    scope: Scope
    shape: Shape
    first: object = None
    """The first message after the system prompt."""
    system: object = None
    last_at: float = 0.0
    keys: OrderedDict[object, None] = field(default_factory=OrderedDict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    """Guards the observer."""
    busy: bool = False
    """A call is under way."""
    streaming: bool = False
    """That call is a stream, which an agent may drop without closing it."""

    @property
    def in_use(self) -> bool:
        """Return whether a call is under way that another one must not interrupt."""
        return self.busy and not self.streaming

    @property
    def session_id(self) -> str:
        """The id of its session."""
        return self.observer.tracker.info.session_id


class ConversationMatch(NamedTuple):
    """The conversation of a call."""

    conversation: Conversation
    common: int | None
    """Leading messages that the call shares with the one before; None for a new conversation."""


OpenConversation = Callable[[ApiCall, Scope, Conversation | None], Conversation]
"""Makes the conversation that a call opens; the last argument is the one it branched off, if any."""


class Conversations:
    """The conversations of a process. Thread-safe: one lock guards the index, and one each conversation."""

    def __init__(self, open_conversation: OpenConversation, *, capacity: int = CAPACITY) -> None:
        self._open = open_conversation
        self._capacity = capacity
        self._lock = threading.Lock()
        self._by_session: OrderedDict[str, Conversation] = OrderedDict()
        """The one idle for longest first."""
        self._by_key: dict[object, list[Conversation]] = {}

    def __len__(self) -> int:
        return len(self._by_session)

    def find(self, call: ApiCall, scope: Scope, *, now: float) -> ConversationMatch:
        """Return the conversation of *call*, a new one where none matches; it is busy until it is released."""
        with self._lock:
            self._end_idle(now)
            match = self._match(call, scope) if scope.session_id is None else self._match_in_session(call, scope)
            conversation = match.conversation
            conversation.last_at = now
            conversation.first = copy_structure(first_message(call))
            conversation.system = copy_structure(system_prompt(call))
            conversation.busy, conversation.streaming = True, call.streams
            self._by_session[conversation.session_id] = conversation
            self._by_session.move_to_end(conversation.session_id)
            if call.continues is not None:
                self._index(conversation, call.continues)
            return match

    def release(self, conversation: Conversation) -> None:
        """Mark the conversation's call as ended."""
        with self._lock:
            conversation.busy = False

    def index_reply(self, conversation: Conversation, reply: Reply) -> None:
        """Index the generated content of *reply*, by which later calls match its conversation."""
        with self._lock:
            conversation.busy = False
            for spec in reply_blocks(reply):
                self._index(conversation, spec.key)
            if reply.response_id:
                self._index(conversation, reply.response_id)
            while len(conversation.keys) > MAXIMUM_KEYS:
                self._drop_key(conversation, conversation.keys.popitem(last=False)[0])

    def close(self, scope: Scope) -> list[Conversation]:
        """Remove the conversations of *scope* and return them, for the caller to end."""
        with self._lock:
            closed = [conversation for conversation in self._by_session.values() if conversation.scope is scope]
            for conversation in closed:
                self._remove(conversation)
            return closed

    # -- inside -----------------------------------------------------------------------------------------------

    def _match_in_session(self, call: ApiCall, scope: Scope) -> ConversationMatch:
        """Match within a named session: its conversation, or a side conversation under another system prompt."""
        own = [conversation for conversation in self._by_session.values() if conversation.scope is scope]
        match = self._match_generated(call, own)
        if match is not None:
            return match
        system = system_prompt(call)
        for conversation in own:
            if conversation.shape == call.shape and conversation.system == system and not conversation.in_use:
                return ConversationMatch(conversation, conversation.observer.common_messages(call))
        return ConversationMatch(self._open(call, scope, own[0] if own else None), None)

    def _match(self, call: ApiCall, scope: Scope) -> ConversationMatch:
        """Match by generated content, then by messages that were never answered or were replaced."""
        candidates = [
            conversation
            for conversation in reversed(self._by_session.values())
            if conversation.shape == call.shape and conversation.scope == scope
        ]
        match = self._match_generated(call, candidates)
        if match is not None:
            return match
        first = first_message(call)
        for conversation in candidates:
            if conversation.in_use or conversation.first != first:
                continue
            observer = conversation.observer
            common = observer.common_messages(call)
            whole = common == observer.sent_count > 0
            if whole and not observer.answered:
                return ConversationMatch(conversation, common)
            if not whole and 0 < common < len(call.messages) and observer.tracker.turn >= COMPACTION_TURNS:
                return ConversationMatch(conversation, common)
        return ConversationMatch(self._open(call, scope, None), None)

    def _match_generated(self, call: ApiCall, candidates: list[Conversation]) -> ConversationMatch | None:
        """Return the candidate whose generated content *call* sends back, with the longest common prefix."""
        common: dict[Conversation, int] = {}
        for key in generated_keys(call):
            for conversation in self._by_key.get(key, ()):
                if conversation in common or conversation not in candidates:
                    continue
                count = conversation.observer.common_messages(call)
                if is_unique(key) or count == conversation.observer.sent_count:
                    common[conversation] = count
            if any(count == conversation.observer.sent_count for conversation, count in common.items()):
                break
        if not common:
            return None
        best = max(common, key=common.__getitem__)
        if best.in_use:  # two calls continue the same messages at once
            return ConversationMatch(self._open(call, best.scope, best), None)
        return ConversationMatch(best, common[best])

    def _end_idle(self, now: float) -> None:
        """End conversations that are idle or over capacity; never one with a call under way."""
        for oldest in list(islice(self._by_session.values(), CHECKED_PER_CALL)):
            if len(self._by_session) < self._capacity and now - oldest.last_at < IDLE_SECONDS:
                return
            if oldest.in_use:
                continue
            self._remove(oldest)
            with oldest.lock:
                oldest.observer.end("idle")

    def _remove(self, conversation: Conversation) -> None:
        self._by_session.pop(conversation.session_id, None)
        for key in conversation.keys:
            self._drop_key(conversation, key)

    def _index(self, conversation: Conversation, key: object) -> None:
        conversation.keys[key] = None
        indexed = self._by_key.setdefault(key, [])
        if conversation not in indexed:
            indexed.append(conversation)
            del indexed[:-CONVERSATIONS_PER_KEY]

    def _drop_key(self, conversation: Conversation, key: object) -> None:
        indexed = self._by_key.get(key, [])
        if conversation in indexed:
            indexed.remove(conversation)
            if not indexed:
                del self._by_key[key]


def is_unique(key: object) -> bool:
    """Return whether a generated piece is long enough to identify its conversation alone."""
    if not isinstance(key, Key):
        return True
    least = UNIQUE_ID_CHARACTERS if key.content_type == "tool_call" else UNIQUE_TEXT_CHARACTERS
    return len(key.name) >= least


def generated_keys(call: ApiCall) -> Iterator[object]:
    """Yield the keys of content in *call* that its conversation may have generated, latest first."""
    if call.continues is not None:
        yield call.continues
    for message in islice(reversed(call.messages), SEARCHED_MESSAGES):
        kind = field_of(message, "type")
        if field_of(message, "role") == "assistant" or (kind is not None and str(kind).endswith("_call")):
            for spec in message_blocks(call.shape, message):
                yield spec.key
        elif field_of(message, "tool_call_id") or str(kind).endswith("_output"):
            call_id = field_of(message, "tool_call_id") or field_of(message, "call_id")
            yield Key("tool_call", str(call_id))


def first_message(call: ApiCall) -> object:
    """Return the first message after the system prompt."""
    return next((message for message in call.messages if not _is_system(message)), None)


def system_prompt(call: ApiCall) -> object:
    """Return the system prompt, sent beside the messages or as the first of them."""
    if call.system is not None:
        return call.system
    first = call.messages[0] if call.messages else None
    return field_of(first, "content") if _is_system(first) else None


def _is_system(message: object) -> bool:
    return field_of(message, "role") in ("system", "developer")
