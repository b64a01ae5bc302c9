"""One recorded model call, and the assignment of calls to sessions.

A recording of whole calls seldom states which conversation a call belongs to. They are assigned by the rules by
which `observe` assigns the calls of a live agent (`sources.conversations`), so that the windows are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from windowpane.core.limits import MAXIMUM_TOKENS
from windowpane.core.redaction import stored_id
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.models.wire.calls import ApiCall
from windowpane.models.wire.replies import Reply
from windowpane.sources.conversations.conversations import Conversation, Conversations, Scope
from windowpane.sources.conversations.diff import ModelProfile
from windowpane.sources.conversations.observer import WindowObserver
from windowpane.sources.transcripts.json_document import MAXIMUM_KEY_CHARS, MAXIMUM_NAME_CHARS
from windowpane.sources.transcripts.reader import FileStats
from windowpane.sources.transcripts.records import (
    CallFailed,
    CallSent,
    Compacted,
    Record,
    ReplyReceived,
    SessionDescribed,
    SessionOpened,
)

MAXIMUM_NESTING: Final = 60
"""Levels of a call's JSON; deeper ones are not what a client sends, and could not be compared."""
MAXIMUM_ERROR_CHARS: Final = 4_000
_SHORTEST_CHARS: Final = 64


@dataclass(frozen=True, slots=True)
class Exchange:
    """One model call as a recording holds it."""

    call: ApiCall
    key: str
    """Its id; names the session that it opens."""
    reply: Reply | None = None
    """None where the recording ends before the reply, or where it failed."""
    error: str = ""
    """The provider's text where the call failed."""
    sent_at: float | None = None
    ended_at: float | None = None
    session_key: str = ""
    """The session that the recording assigns it to; empty where only its messages show it."""
    parent_key: str | None = None
    agent: str = ""
    """The agent that made it, where it is not that of the whole recording."""
    limit_tokens: int | None = None
    """The window's size, where the recording states it."""
    description: SessionDescribed | None = None
    """The names of the session, where the recording states them; the first call's count."""


class ExchangeSorter:
    """Turns the calls of one recording, in the order they were sent, into the records of its sessions."""

    def __init__(self, agent: str, stats: FileStats) -> None:
        self._agent = agent
        self._stats = stats
        self._conversations = Conversations(self._open)
        self._scopes: dict[str, Scope] = {}
        self._keys: set[str] = set()
        self._opened: dict[str, SessionOpened] = {}
        self._current = ""
        """Key of the session of the last record."""
        self._under_way: list[tuple[Exchange, Conversation]] = []
        """Calls whose reply came after the last call was sent."""
        self._sending: Exchange | None = None

    def add(self, exchange: Exchange) -> Iterator[Record]:
        """Yield the records of one call, and of those that ended before it was sent."""
        yield from self._end(before=exchange.sent_at)
        self._sending = exchange
        scope = self._scope(exchange)
        conversation, common, content = self._conversations.find(exchange.call, scope, now=0.0)
        yield from self._switch(conversation.session_id)
        if common is None and exchange.description is not None:
            yield exchange.description
        conversation.observer.record_call(exchange.call, common=common, content=content)
        yield CallSent(exchange.call, exchange.sent_at)
        self._under_way.append((exchange, conversation))
        if exchange.ended_at is None or exchange.sent_at is None:
            yield from self._end(before=None)

    def add_compaction(self, session_key: str, compaction: Compacted) -> Iterator[Record]:
        """Yield the records of a compaction that the recording states, where its session is open."""
        session_key = stored_id(session_key)
        if session_key in self._opened:
            yield from self._end(before=None)
            yield from self._switch(session_key)
            yield compaction

    def finish(self) -> Iterator[Record]:
        """Yield the ends of the calls that are still under way."""
        yield from self._end(before=None)

    # -- inside -----------------------------------------------------------------------------------------------

    def _scope(self, exchange: Exchange) -> Scope:
        scope = self._scopes.get(exchange.session_key)
        if scope is None:
            scope = Scope(exchange.agent or self._agent, exchange.session_key or None, None, exchange.parent_key)
            self._scopes[exchange.session_key] = scope
        return scope

    def _switch(self, key: str) -> Iterator[Record]:
        if key != self._current:
            self._current = key
            yield self._opened[key]
            self._opened[key] = replace(self._opened[key], model="", limit_tokens=None)

    def _end(self, *, before: float | None) -> Iterator[Record]:
        """End the calls under way that ended up to *before*; all of them where it is None."""
        ended = [
            one for one in self._under_way if before is None or (one[0].ended_at or 0.0) <= before
        ]  # fmt: skip
        for one in sorted(ended, key=lambda one: one[0].ended_at or 0.0):
            self._under_way.remove(one)
            exchange, conversation = one
            yield from self._switch(conversation.session_id)
            if exchange.reply is None:
                conversation.observer.record_failure(exchange.error)
                self._conversations.release(conversation)
                yield CallFailed(exchange.error[:MAXIMUM_ERROR_CHARS], exchange.ended_at)
                continue
            content = conversation.observer.record_reply(exchange.reply)
            self._conversations.index_reply(conversation, content, exchange.reply.response_id)
            yield ReplyReceived(exchange.reply, exchange.ended_at)

    def _open(self, call: ApiCall, scope: Scope, parent: Conversation | None) -> Conversation:
        """Return a conversation whose observer only compares; the player's records the events."""
        exchange = self._sending
        assert exchange is not None
        parent_key = exchange.parent_key
        if parent is not None:
            parent_key = parent.session_id
            key = f"{parent_key[:MAXIMUM_KEY_CHARS]}/{exchange.key[:_SHORTEST_CHARS]}"
        else:
            key = scope.session_id or exchange.key
        key = self._unique(stored_id(key[:MAXIMUM_NAME_CHARS]))  # as the observer names it
        self._stats.sessions += 1
        self._opened[key] = SessionOpened(
            key, exchange.agent or self._agent, call.model, parent_key, exchange.limit_tokens, exchange.sent_at
        )
        tracker = SessionTracker(
            SessionInfo(key, self._agent, call.model, "", key, parent_key), emit=_discard, digest=str
        )
        return Conversation(WindowObserver(tracker, _uncounted, digest=str), scope, call.shape)

    def _unique(self, key: str) -> str:
        unique, number = key, 1
        while unique in self._keys:
            number += 1
            unique = f"{key}-{number}"
        self._keys.add(unique)
        return unique


class _Characters:
    """Counts characters: enough to compare which of two texts is the larger."""

    source: Final = "estimate"

    def count(self, text: str) -> int:
        """Return the number of characters."""
        return min(len(text), MAXIMUM_TOKENS)


_PROFILE: Final = ModelProfile(_Characters())


def _uncounted(_model: str) -> ModelProfile:
    return _PROFILE


def _discard(_events: object) -> None:
    return


def is_nested_too_deeply(value: object) -> bool:
    """Return whether *value* has more levels than a client sends."""
    level = [value]
    for _ in range(MAXIMUM_NESTING):
        level = [
            item
            for one in level
            if isinstance(one, dict | list)
            for item in (one.values() if isinstance(one, dict) else one)
            if isinstance(item, dict | list)
        ]
        if not level:
            return False
    return True
