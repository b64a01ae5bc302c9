"""Which conversation a call belongs to, told by what it sends.

What a model wrote marks its conversation: a call that sends back a tool call id or a text generated here goes on
with the conversation it was generated in, however much of the rest the agent has cut or rewritten. A call that
sends back nothing generated opens a conversation, unless it repeats a call that never came back, or an agent that
has been at work for a while goes on from the same first message after replacing all the rest. A named session
settles most of this by its name.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

from windowpane.models.replies import Reply
from windowpane.observer.messages import Call, Key, Shape, copied, field_of, specs_of, specs_of_reply
from windowpane.observer.observer import WindowObserver

CAPACITY: Final = 256
"""Conversations followed at once; the longest silent are forgotten first."""
FORGOTTEN_AT_ONCE: Final = 8
"""Conversations looked at for being over, with each call."""
IDLE_SECONDS: Final = 3_600.0
"""A conversation silent for so long is over."""
REMEMBERED_KEYS: Final = 64
"""Generated pieces by which a conversation is known again."""
LOOKED_BACK: Final = 64
"""Messages from the end that are searched for generated pieces."""
TELLING_ID_CHARACTERS: Final = 20
"""A tool call id of at least this length is unique; shorter ones are counted up in every conversation."""
TELLING_TEXT_CHARACTERS: Final = 80
"""A reply of at least this length is unique enough."""
CONVERSATIONS_A_KEY: Final = 8
REPLACED_TURNS: Final = 3
"""Turns after which a list with nothing generated in it can be the same conversation, compacted."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What the agent's owner says of the calls made within: who makes them, and in which session.

    One object is one use of a named session; another with the same name is another use.
    """

    agent: str
    session_id: str | None = None
    """None lets the messages tell conversations apart."""
    limit_tokens: int | None = None
    parent_session_id: str | None = None


@dataclass(slots=True, eq=False)
class Conversation:
    """One conversation, its observer, and the lock that serialises it."""

    observer: WindowObserver
    scope: Scope
    shape: Shape
    first: object = None
    """The first message that is no system prompt."""
    system: object = None
    last_at: float = 0.0
    keys: OrderedDict[object, None] = field(default_factory=OrderedDict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    """Guards the observer."""
    busy: bool = False
    """A call is under way."""
    streaming: bool = False
    """That call is a stream, which an agent may drop without a word."""

    @property
    def taken(self) -> bool:
        """Whether another call has to be one beside it."""
        return self.busy and not self.streaming

    @property
    def session_id(self) -> str:
        """Its session's id."""
        return self.observer.tracker.info.session_id


class Found(NamedTuple):
    """The conversation of a call."""

    conversation: Conversation
    common: int | None
    """Messages the call has in common with the one before; None for a new conversation."""


OpenConversation = Callable[[Call, Scope, Conversation | None], Conversation]
"""Makes the conversation that a call opens; the last argument is the one it branched off, if any."""


class Conversations:
    """The conversations of a process. Thread-safe: one lock guards the index, one each its conversation."""

    def __init__(self, open_conversation: OpenConversation, *, capacity: int = CAPACITY) -> None:
        self._open = open_conversation
        self._capacity = capacity
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Conversation] = OrderedDict()
        """By session id, the longest silent first."""
        self._by_key: dict[object, list[Conversation]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def find(self, call: Call, scope: Scope, *, now: float) -> Found:
        """The conversation of *call*, opened where it has none; it is busy until it is released."""
        with self._lock:
            self._forget(now)
            found = self._named(call, scope) if scope.session_id is not None else self._told(call, scope)
            conversation = found.conversation
            conversation.last_at = now
            conversation.first, conversation.system = copied(first_of(call)), copied(system_of(call))
            conversation.busy, conversation.streaming = True, call.streams
            self._known[conversation.session_id] = conversation
            self._known.move_to_end(conversation.session_id)
            if call.continues is not None:
                self._mark(conversation, call.continues)
            return found

    def release(self, conversation: Conversation) -> None:
        """The call came back, failed, or was given up."""
        with self._lock:
            conversation.busy = False

    def answered(self, conversation: Conversation, reply: Reply, response_id: str | None) -> None:
        """Remember by what the conversation will be known again."""
        with self._lock:
            conversation.busy = False
            for spec in specs_of_reply(reply):
                self._mark(conversation, spec.key)
            if response_id:
                self._mark(conversation, response_id)
            while len(conversation.keys) > REMEMBERED_KEYS:
                self._drop_key(conversation, conversation.keys.popitem(last=False)[0])

    def leave(self, scope: Scope) -> list[Conversation]:
        """Forget the conversations of a scope, and return them to be ended."""
        with self._lock:
            left = [conversation for conversation in self._known.values() if conversation.scope is scope]
            for conversation in left:
                self._remove(conversation)
            return left

    # -- inside -----------------------------------------------------------------------------------------------

    def _named(self, call: Call, scope: Scope) -> Found:
        """Within a named session: its conversation, or a side conversation under another system prompt."""
        own = [conversation for conversation in self._known.values() if conversation.scope is scope]
        told = self._by_generated(call, own)
        if told is not None:
            return told
        system = system_of(call)
        for conversation in own:
            if conversation.shape == call.shape and conversation.system == system and not conversation.taken:
                return Found(conversation, conversation.observer.common(call))
        return Found(self._open(call, scope, own[0] if own else None), None)

    def _told(self, call: Call, scope: Scope) -> Found:
        """Without a name: by what was generated, then by what was left unanswered or replaced."""
        candidates = [
            conversation
            for conversation in reversed(self._known.values())
            if conversation.shape == call.shape and conversation.scope == scope
        ]
        told = self._by_generated(call, candidates)
        if told is not None:
            return told
        first = first_of(call)
        for conversation in candidates:
            if conversation.taken or conversation.first != first:
                continue
            observer = conversation.observer
            common = observer.common(call)
            whole = common == observer.sent > 0
            if whole and not observer.answered:
                return Found(conversation, common)
            if not whole and 0 < common < len(call.messages) and observer.tracker.turn >= REPLACED_TURNS:
                return Found(conversation, common)
        return Found(self._open(call, scope, None), None)

    def _by_generated(self, call: Call, candidates: list[Conversation]) -> Found | None:
        """The candidate whose generated content *call* sends back: the one with the longest common prefix."""
        marked: dict[Conversation, int] = {}
        for key in generated_in(call):
            for conversation in self._by_key.get(key, ()):
                if conversation in marked or conversation not in candidates:
                    continue
                common = conversation.observer.common(call)
                if is_telling(key) or common == conversation.observer.sent:
                    marked[conversation] = common
            if any(common == conversation.observer.sent for conversation, common in marked.items()):
                break
        if not marked:
            return None
        best = max(marked, key=marked.__getitem__)
        if best.taken:  # two calls go on from the same messages at once
            return Found(self._open(call, best.scope, best), None)
        return Found(best, marked[best])

    def _forget(self, now: float) -> None:
        """End what is silent for too long or one too many; never a conversation with a call under way."""
        for oldest in list(islice(self._known.values(), FORGOTTEN_AT_ONCE)):
            if len(self._known) < self._capacity and now - oldest.last_at < IDLE_SECONDS:
                return
            if oldest.taken:
                continue
            self._remove(oldest)
            with oldest.lock:
                oldest.observer.end("idle")

    def _remove(self, conversation: Conversation) -> None:
        self._known.pop(conversation.session_id, None)
        for key in conversation.keys:
            self._drop_key(conversation, key)

    def _mark(self, conversation: Conversation, key: object) -> None:
        conversation.keys[key] = None
        known = self._by_key.setdefault(key, [])
        if conversation not in known:
            known.append(conversation)
            del known[:-CONVERSATIONS_A_KEY]

    def _drop_key(self, conversation: Conversation, key: object) -> None:
        known = self._by_key.get(key, [])
        if conversation in known:
            known.remove(conversation)
            if not known:
                del self._by_key[key]


def is_telling(key: object) -> bool:
    """Whether a generated piece is unique enough to tell its conversation alone."""
    if not isinstance(key, Key):
        return True
    least = TELLING_ID_CHARACTERS if key.content_type == "tool_call" else TELLING_TEXT_CHARACTERS
    return len(key.name) >= least


def generated_in(call: Call) -> Iterator[object]:
    """Keys of what may have been generated in the conversation of *call*, latest first."""
    if call.continues is not None:
        yield call.continues
    for message in islice(reversed(call.messages), LOOKED_BACK):
        kind = field_of(message, "type")
        if field_of(message, "role") == "assistant" or (kind is not None and str(kind).endswith("_call")):
            for spec in specs_of(call.shape, message):
                yield spec.key
        elif field_of(message, "tool_call_id") or str(kind).endswith("_output"):
            known = field_of(message, "tool_call_id") or field_of(message, "call_id")
            yield Key("tool_call", str(known))


def first_of(call: Call) -> object:
    """The first message that is no system prompt."""
    return next((message for message in call.messages if not _is_system(message)), None)


def system_of(call: Call) -> object:
    """The system prompt, wherever the provider wants it."""
    if call.system is not None:
        return call.system
    first = call.messages[0] if call.messages else None
    return field_of(first, "content") if _is_system(first) else None


def _is_system(message: object) -> bool:
    return field_of(message, "role") in ("system", "developer")
