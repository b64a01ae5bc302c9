"""One session of Goose as records, in whichever way it was stored.

The last message of a reply states the usage of its call in recent releases; earlier ones have sums of the
session, and some a ledger of calls. A compaction hides the messages before it from the model (`agentVisible`) and
adds a summary that only the model sees, with a continuation after it. One without it replaces an old tool call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any, Final, NamedTuple

from windowpane.core.events import Usage
from windowpane.core.vocabulary import ContentType
from windowpane.models.wire.messages import MEDIA_KINDS, is_media
from windowpane.models.wire.usage import FLAT
from windowpane.sources.transcripts.json_lines import (
    as_json,
    dollars,
    duration_seconds,
    mapping,
    sequence,
    text,
)
from windowpane.sources.transcripts.reader import FileStats
from windowpane.sources.transcripts.records import Compacted, ContentAdded, ContentRemoved, ModelCalled, Record

AGENT: Final = "goose"
SUBAGENT: Final = "goose-agent"
SUBAGENT_TYPE: Final = "sub_agent"
_SHOWN_ONLY: Final = frozenset(
    {"toolConfirmationRequest", "actionRequired", "systemNotification", "conversationCompacted", "error"}
)
_MANUAL: Final = "at the user's request"
"""Part of the continuation after a compaction that the user asked for; the rest differs between releases."""
_TOOLS: Final = frozenset({"toolRequest", "frontendToolRequest", "toolResponse"})
_STREAMED: Final = frozenset({"thinking", "reasoning"})
"""Content that some releases store as they receive it, an item per token."""
SUMMARIZED: Final = "tool_result_summarization"
_MILLISECONDS: Final = 100_000_000_000
"""A larger time is in milliseconds."""


class GooseMessage(NamedTuple):
    """One message of a session."""

    role: str
    content: list[Any]
    metadata: dict[str, Any]
    at: float | None

    @property
    def is_sent(self) -> bool:
        """Return whether the model sees it now."""
        return self.metadata.get("agentVisible") is not False

    @property
    def is_injected(self) -> bool:
        """Return whether the user does not see it."""
        return self.metadata.get("userVisible") is False

    @property
    def is_reply(self) -> bool:
        """Return whether the model wrote it."""
        return self.role == "assistant" and not self.is_injected

    @property
    def text(self) -> str:
        """Its texts."""
        return "\n".join(text(mapping(item).get("text")) for item in self.content if mapping(item).get("text"))

    @property
    def kinds(self) -> frozenset[str]:
        """Types of its content."""
        return frozenset(text(mapping(item).get("type")) for item in self.content)


class LedgerRow(NamedTuple):
    """One call of the ledger, which names no message."""

    usage: Usage | None
    model: str
    cost_dollars: float | None


def ledger_row(row: dict[str, Any]) -> LedgerRow:
    """Return a row of the database's ledger."""
    return LedgerRow(
        FLAT.read_sent(row),
        text(row.get("model")),
        dollars(row.get("cost")),
    )


def seconds_of(value: object) -> float | None:
    """Return the seconds since the epoch of a number of seconds, or of milliseconds."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 1e15:
        return None
    return value / 1000 if value > _MILLISECONDS else float(value)


def _result_text(part: dict[str, Any]) -> str:
    """Return the text of a part of a result, which may be that of a resource."""
    return text(part.get("text")) or text(mapping(part.get("resource")).get("text"))


def _joined(content: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Yield the items of a message, those that were stored as they were received joined to one."""
    for kind, items in groupby(map(mapping, content), key=lambda item: text(item.get("type"))):
        if kind in _STREAMED:
            yield {"type": kind, "thinking": "".join(_thought(item) for item in items)}
        else:
            yield from items


def _thought(item: dict[str, Any]) -> str:
    return text(item.get("thinking")) or text(item.get("text"))


def _calls(messages: Sequence[GooseMessage], sent: Sequence[int]) -> frozenset[int]:
    """Return the last message of each reply: a reply may be several messages, of which the last has the usage."""
    replies = [number for number in sent if messages[number].is_reply and messages[number].kinds - _SHOWN_ONLY]
    return frozenset(
        number
        for number, following in zip(replies, [*replies[1:], -1], strict=False)
        if messages[number].metadata.get("usage") or following != number + 1
    )


def _summarized(
    messages: Sequence[GooseMessage], sent: Sequence[int], *, after: int
) -> dict[int, tuple[str, ...]]:
    """Return the keys of the tool calls that each summary replaced since the compaction at message *after*.

    A call and its result are hidden together, the oldest first, and a summary is added for each.
    """
    hidden = [number for number in sent if number > after and not messages[number].is_sent]
    requests = [number for number in hidden if "toolResponse" not in messages[number].kinds]
    pairs = [
        tuple(f"m{number}" for number in hidden if start <= number < end)
        for start, end in pairwise([*requests, len(messages)])
    ]
    summaries = [number for number in sent if number > after + 1 and _replaces_content(messages[number])]
    return dict(zip(summaries, pairs, strict=False))


def _replaces_content(message: GooseMessage) -> bool:
    return message.role == "user" and message.is_injected and not message.metadata.get("turnContext")


def _trigger(message: GooseMessage, following: GooseMessage) -> str | None:
    """Return the trigger of the compaction whose summary is *message*; None where it is not one."""
    is_continued = following.role == "assistant" and following.is_injected and following.text
    if not (is_continued and _replaces_content(message)):
        return None
    return "manual" if _MANUAL in following.text else "auto"


class GooseMessages:
    """Turns the messages of one session into records, one after the other."""

    def __init__(self, stats: FileStats, *, model: str = "", ledger: Sequence[LedgerRow] = ()) -> None:
        self._stats = stats
        self._model = model
        self._ledger = ledger
        self._number = -1
        self._names: dict[str, str] = {}
        self.unknown: set[str] = set()
        """Types of content that were skipped."""
        self.unstated = 0
        """Calls whose usage is not known."""

    def read(self, messages: Sequence[GooseMessage]) -> Iterator[Record]:
        """Yield the records of all messages of the session, in order."""
        triggers = {
            number: trigger
            for number, (message, following) in enumerate(pairwise(messages))
            if (trigger := _trigger(message, following)) is not None
        }
        last = max(triggers, default=-1)
        sent = [
            number
            for number, message in enumerate(messages)
            if message.is_sent or number < last or message.kinds & _TOOLS
        ]
        calls = _calls(messages, sent)
        rows = self._ledger if len(self._ledger) == len(calls) else ()
        ledger = dict(zip(calls, rows, strict=True)) if rows else {}
        summarized = _summarized(messages, sent, after=last)
        for self._number in sent:
            message = messages[self._number]
            if self._number in triggers:
                self._stats.compactions += 1
                yield Compacted(triggers[self._number], summary=message.text or None, at=message.at)
                continue
            if self._number in summarized:
                self._stats.evictions += 1
                yield ContentRemoved(summarized[self._number], SUMMARIZED, at=message.at)
            yield from self._message(message)
            if self._number in calls:
                self._stats.api_calls += 1
                yield self._called(message, ledger.get(self._number))
        self._stats.messages += len(messages)

    def _message(self, message: GooseMessage) -> Iterator[ContentAdded]:
        contents = [content for item in _joined(message.content) for content in self._contents(item, message)]
        self._stats.user_turns += any(content.content_type == "user_message" for content in contents)
        yield from contents

    def _called(self, message: GooseMessage, row: LedgerRow | None) -> ModelCalled:
        stated = mapping(message.metadata.get("usage"))
        usage = FLAT.read_sent(stated)
        cost = dollars(stated.get("cost")) if usage else None
        inference = mapping(message.metadata.get("inference"))
        model = text(inference.get("resolvedModel")) or text(inference.get("requestedModel"))
        if usage is None and row is not None:
            usage, cost, model = row.usage, row.cost_dollars, model or row.model
        self.unstated += usage is None
        if usage is not None:
            self._stats.peak_context = max(self._stats.peak_context, usage.input_total)
        elapsed = duration_seconds(stated.get("elapsedMs"))
        return ModelCalled(usage, (model or self._model)[:200], cost, elapsed, at=message.at)

    def _contents(self, item: dict[str, Any], message: GooseMessage) -> Iterator[ContentAdded]:
        kind = text(item.get("type"))
        if kind == "text":
            yield from self._text(text(item.get("text")), message)
        elif kind in _STREAMED:
            yield from self._written("thinking", text(item.get("thinking")), message)
        elif kind == "redactedThinking":
            yield self._added("thinking", None, message)
        elif kind in MEDIA_KINDS:
            yield self._added("media", None, message, media=1)
        elif kind in ("toolRequest", "frontendToolRequest"):
            yield self._call(item, message)
        elif kind == "toolResponse":
            yield self._result(item, message)
        elif kind not in _SHOWN_ONLY:
            self.unknown.add(kind[:64])

    def _text(self, written: str, message: GooseMessage) -> Iterator[ContentAdded]:
        if message.role == "assistant" and not message.is_injected:
            return self._written("assistant_response", written, message)
        return self._written("memory_injection" if message.is_injected else "user_message", written, message)

    def _written(self, kind: ContentType, written: str, message: GooseMessage) -> Iterator[ContentAdded]:
        self._stats.content_chars += len(written)
        if written:
            yield self._added(kind, written, message)

    def _call(self, item: dict[str, Any], message: GooseMessage) -> ContentAdded:
        call = mapping(item.get("toolCall"))
        stated = mapping(call.get("value")) or call
        call_id, name = text(item.get("id")), text(stated.get("name"))
        self._names[call_id] = name
        arguments = as_json(stated.get("arguments"))
        self._stats.tool_calls += 1
        self._stats.content_chars += len(arguments)
        return self._added("tool_call", arguments, message, call_id=call_id)

    def _result(self, item: dict[str, Any], message: GooseMessage) -> ContentAdded:
        result = mapping(item.get("toolResult"))
        value = result.get("value", item.get("toolResult"))
        parts = [mapping(part) for part in sequence(mapping(value).get("content") or value)]
        output = "\n".join(filter(None, map(_result_text, parts)))
        output = output or text(result.get("error"))
        media = sum(map(is_media, parts))
        self._stats.content_chars += len(output)
        self._stats.max_tool_output_chars = max(self._stats.max_tool_output_chars, len(output))
        return self._added("tool_result", output, message, call_id=text(item.get("id")), media=media)

    def _added(
        self,
        kind: ContentType,
        written: str | None,
        message: GooseMessage,
        *,
        call_id: str = "",
        media: int = 0,
    ) -> ContentAdded:
        name = self._names.get(call_id) or None
        key = f"m{self._number}"
        return ContentAdded(kind, written, call_id or None, name, media, key=key, at=message.at)
