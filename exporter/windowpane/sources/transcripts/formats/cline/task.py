"""One task of Cline or Roo Code: the messages that were sent, and the changes of the window that both state.

Roo Code marks messages that a summary or a truncation replaced, and keeps them; Cline states the range of
messages that it no longer sends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from windowpane.core.events import Usage
from windowpane.core.vocabulary import ContentType
from windowpane.models.wire.usage import CLINE
from windowpane.sources.transcripts.formats.anthropic_blocks import content_of
from windowpane.sources.transcripts.json_document import JsonObject
from windowpane.sources.transcripts.json_lines import (
    as_json,
    count,
    dollars,
    mapping,
    milliseconds,
    sequence,
    text,
)
from windowpane.sources.transcripts.reader import FileStats
from windowpane.sources.transcripts.records import Compacted, ContentAdded, ContentRemoved, ModelCalled, Record

TRUNCATED: Final = "truncate"
_MODEL: Final = re.compile(r"<model>([^<\n]{1,200})</model>")
"""Roo Code names the model in the details that it adds to each request."""
_INJECTED: Final = ("<environment_details>", "[ERROR]")


FINISHED: Final = "api_req_finished"
"""The message with the usage of a request in releases of 2024; later ones write it with the request itself."""
USAGE_NAMES: Final = ("tokensIn", "tokensOut", "cacheWrites", "cacheReads")


class Condensation(NamedTuple):
    """The sizes of a window that a condensation states."""

    condense_id: str
    before: int | None
    after: int | None


class Task:
    """Reads the messages of one task."""

    def __init__(
        self, stats: FileStats, visible: Sequence[object], *, models: Sequence[tuple[float, str]]
    ) -> None:
        """*visible* are the messages to the user, *models* the models that were used, with their times."""
        self._stats = stats
        self._models = models
        self._model = ""
        self._calls = shown_calls(visible)
        self._condensations = _condensations(visible)
        self._ranges = _ranges(visible)
        self._keys: dict[int, list[str]] = {}
        self._parents: dict[int, set[str]] = {}
        """Ids of the summaries and truncations that replaced each message."""
        self._names: dict[str, str] = {}
        self._removed = 0
        """Messages before this one are not sent any longer, after the first two."""
        self._number = -1
        self.unmatched = 0
        """Replies whose usage is not known although calls were shown."""
        self.unknown: set[str] = set()

    def read(self, messages: Sequence[JsonObject]) -> Iterator[Record]:
        """Yield the records of all messages."""
        replies = [
            (number, milliseconds(message.value.get("ts")))
            for number, message in enumerate(messages)
            if message.value.get("role") == "assistant" and _is_reply(message.value)
        ]
        matched = calls_of(replies, self._calls)
        for call in self._calls:
            self._stats.add_usage(**{name: count(call.stated.get(name)) for name in USAGE_NAMES})
        self.unmatched = len(replies) - len(matched) if self._calls else 0
        for self._number, message in enumerate(messages):
            yield from self._remove_range(self._number)
            yield from self._message(message, matched.get(self._number))
        yield from self._remove_range(len(messages))

    def _message(self, message: JsonObject, call: ShownCall | None) -> Iterator[Record]:
        value = message.value
        self._stats.messages += 1
        self._keys[self._number] = []
        self._parents[self._number] = {text(value.get("condenseParent")), text(value.get("truncationParent"))}
        at = milliseconds(value.get("ts"))
        if value.get("isSummary") is True:
            yield self._summary(value, at)
            return
        if value.get("isTruncationMarker") is True:
            yield from self._truncation(text(value.get("truncationId")), at)
        role = value.get("role")
        if role not in ("user", "assistant", "tool") and value.get("type") != "reasoning":
            message.log.bad(message.at("role"), "expected user, assistant or tool, got another")
            return
        contents = list(self._contents(value, at))
        yield from contents
        if role == "assistant" and _is_reply(value):
            self._stats.api_calls += 1
            yield self._called(value, call, at)
        elif role == "user":
            self._stats.user_turns += any(content.content_type == "user_message" for content in contents)

    # -- content ----------------------------------------------------------------------------------------------

    def _contents(self, value: dict[str, Any], at: float | None) -> Iterator[ContentAdded]:
        if value.get("type") == "reasoning":
            written = text(value.get("text")) or texts_of(value.get("summary"))
            yield self._added("thinking", written or None, at)
            return
        content = value.get("content")
        is_reply = value.get("role") == "assistant"
        for block in [content] if isinstance(content, str) else sequence(content):
            yield from self._block({"type": "text", "text": block} if isinstance(block, str) else mapping(block),
                                   at, is_reply=is_reply)  # fmt: skip

    def _block(self, block: dict[str, Any], at: float | None, *, is_reply: bool) -> Iterator[ContentAdded]:
        content = content_of(_as_anthropic(block), "user_message", at=at)
        if content is None:
            self.unknown.add(text(block.get("type"))[:64])
            return
        written = content.text
        if content.content_type == "user_message":
            yield from self._text(written or "", at, is_reply=is_reply)
            return
        self._stats.content_chars += len(written or "")
        if content.content_type == "tool_call":
            self._names[content.tool_call_id or ""] = content.tool_name or ""
            self._stats.tool_calls += 1
        elif content.content_type == "tool_result":
            self._stats.max_tool_output_chars = max(self._stats.max_tool_output_chars, len(written or ""))
        if content.content_type != "thinking" or written != "":
            call_id = content.tool_call_id or ""
            yield self._added(content.content_type, written, at, call_id=call_id, media=content.media)

    def _text(self, written: str, at: float | None, *, is_reply: bool) -> Iterator[ContentAdded]:
        self._stats.content_chars += len(written)
        if not written:
            return
        if is_reply:
            yield self._added("assistant_response", written, at)
            return
        model = _MODEL.search(written) if written.startswith(_INJECTED[0]) else None
        self._model = model.group(1) if model else self._model
        yield self._added("memory_injection" if written.startswith(_INJECTED) else "user_message", written, at)

    def _added(
        self, kind: ContentType, written: str | None, at: float | None, *, call_id: str = "", media: int = 0
    ) -> ContentAdded:
        keys = self._keys[self._number]
        keys.append(f"m{self._number}.{len(keys)}")
        name = self._names.get(call_id) or None
        return ContentAdded(kind, written, call_id or None, name, media, key=keys[-1], at=at)

    def _called(self, value: dict[str, Any], call: ShownCall | None, at: float | None) -> ModelCalled:
        usage = None if call is None else call.usage
        if usage is not None:
            self._stats.peak_context = max(self._stats.peak_context, usage.input_total)
        stated = text(mapping(value.get("modelInfo")).get("modelId"))
        used = next((name for since, name in reversed(self._models) if at is None or since <= at), "")
        return ModelCalled(
            usage, stated or used or self._model, None if call is None else call.cost_dollars, at=at
        )

    # -- removals ---------------------------------------------------------------------------------------------

    def _summary(self, value: dict[str, Any], at: float | None) -> Compacted:
        """Return the condensation that wrote a summary; messages that it did not replace are retained."""
        self._stats.compactions += 1
        condense_id = text(value.get("condenseId"))
        stated = next((sizes for sizes in self._condensations if sizes.condense_id == condense_id), None)
        if stated is None and len(self._condensations) >= self._stats.compactions:
            stated = self._condensations[self._stats.compactions - 1]
        retained = [
            key
            for number, keys in self._keys.items()
            if condense_id and condense_id not in self._parents[number]
            for key in keys
        ]
        return Compacted(
            "unknown",
            None if stated is None else stated.before,
            None if stated is None else stated.after,
            texts_of(value.get("content")) or None,
            tuple(retained),
            at=at,
        )

    def _truncation(self, truncation_id: str, at: float | None) -> Iterator[ContentRemoved]:
        keys = [key for n, keys in self._keys.items() if truncation_id in self._parents[n] - {""} for key in keys]
        if keys:
            self._stats.evictions += len(keys)
            yield ContentRemoved(tuple(keys), TRUNCATED, at=at)

    def _remove_range(self, number: int) -> Iterator[ContentRemoved]:
        """Yield the removal of the messages that Cline stopped to send before message *number*."""
        for at_message, first, last in self._ranges:
            start = max(first, self._removed)
            if at_message > number or last < start:
                continue
            self._removed = last + 1
            keys = [key for message in range(start, min(last + 1, number)) for key in self._keys.get(message, ())]
            if keys:
                self._stats.evictions += len(keys)
                yield ContentRemoved(tuple(keys), TRUNCATED)


def _is_reply(value: dict[str, Any]) -> bool:
    """Return whether a message of the assistant is a model's reply, not a summary or a marker."""
    return not (value.get("isSummary") or value.get("isTruncationMarker") or value.get("type") == "reasoning")


def texts_of(content: object) -> str:
    """Return the texts of a message's content, a line for each."""
    if isinstance(content, str):
        return content
    return "\n".join(text(mapping(part).get("text")) for part in sequence(content) if mapping(part).get("text"))


def _as_anthropic(block: dict[str, Any]) -> dict[str, Any]:
    """Return a block of Roo Code's second version, which has those of the AI SDK, in Anthropic's shape."""
    kind, call_id = block.get("type"), text(block.get("toolCallId"))
    if kind == "reasoning":
        return {"type": "thinking", "thinking": text(block.get("text"))}
    if kind == "tool-call":
        return {"type": "tool_use", "input": block.get("input"), "id": call_id, "name": block.get("toolName")}
    if kind == "tool-result":
        value = mapping(block.get("output")).get("value", block.get("output"))
        content = as_json(value) if isinstance(value, dict) else value
        return {"type": "tool_result", "tool_use_id": call_id, "content": content}
    return block


def _condensations(visible: Sequence[object]) -> list[Condensation]:
    """Return the condensations that Roo Code showed, with the sizes before and after."""
    stated = [mapping(mapping(message).get("contextCondense")) for message in visible]
    return [
        Condensation(
            text(sizes.get("condenseId")),
            count(sizes.get("prevContextTokens")) or None,
            count(sizes.get("newContextTokens")) or None,
        )
        for sizes in stated
        if sizes
    ]


def _ranges(visible: Sequence[object]) -> list[tuple[int, int, int]]:
    """Return the ranges of removed messages that Cline states: from which message on, the first and the last."""
    ranges: list[tuple[int, int, int]] = []
    for message in map(mapping, visible):
        removed = sequence(message.get("conversationHistoryDeletedRange"))
        index = message.get("conversationHistoryIndex")
        if len(removed) == 2 and all(type(bound) is int and 0 <= bound < 10**6 for bound in (*removed, index)):
            entry = (int(index) + 1, removed[0], removed[1])  # type: ignore[arg-type]
            if not ranges or ranges[-1][1:] != entry[1:]:
                ranges.append(entry)
    return ranges


class ShownCall(NamedTuple):
    """One model call that was shown."""

    at: float | None
    usage: Usage | None
    cost_dollars: float | None
    after: int | None
    """Number of the last message before it, where Cline states it."""
    stated: dict[str, Any]


def shown_calls(messages: Sequence[object]) -> list[ShownCall]:
    """Return the model calls in order.

    Cline states the input without what the cache held; Roo Code does so for some protocols and in some releases,
    which a cache larger than the input shows.
    """
    starts: list[dict[str, Any]] = []
    stated: list[dict[str, Any]] = []
    for message in map(mapping, messages):
        if message.get("say") == "api_req_started":
            starts.append(message)
            stated.append(_payload(message.get("text")))
        elif message.get("say") == FINISHED and stated:
            stated[-1] = stated[-1] | _payload(message.get("text"))
    has_protocol = any("apiProtocol" in call for call in stated)
    is_exclusive = not has_protocol or any(_cached(call) > count(call.get("tokensIn")) for call in stated)
    return [_call(message, call, exclusive=is_exclusive) for message, call in zip(starts, stated, strict=True)]


def _call(message: dict[str, Any], call: dict[str, Any], *, exclusive: bool) -> ShownCall:
    usage = CLINE.read_sent(call, exclusive=exclusive)
    index = message.get("conversationHistoryIndex")
    return ShownCall(
        milliseconds(message.get("ts")),
        usage,
        None if usage is None else dollars(call.get("cost")),
        index if isinstance(index, int) and not isinstance(index, bool) else None,
        call,
    )


def _cached(call: dict[str, Any]) -> int:
    return count(call.get("cacheWrites")) + count(call.get("cacheReads"))


def _payload(value: object) -> dict[str, Any]:
    try:
        return mapping(json.loads(text(value)))
    except (ValueError, RecursionError):
        return {}


def calls_of(replies: Sequence[tuple[int, float | None]], calls: Sequence[ShownCall]) -> dict[int, ShownCall]:
    """Return the call of each reply, given by its number and time; replies whose call is not known are absent.

    A call is shown when it starts: its reply is two messages later, or the first one that came after it.
    """
    by_index = {call.after + 2: call for call in calls if call.after is not None}
    if by_index:
        return {number: by_index[number] for number, _ in replies if number in by_index}
    if all(at is not None for _, at in replies) and all(call.at is not None for call in calls):
        return dict(_by_time(replies, calls))
    if len(replies) == len(calls):
        return {number: call for (number, _), call in zip(replies, calls, strict=True)}
    return {}


def _by_time(
    replies: Sequence[tuple[int, float | None]], calls: Sequence[ShownCall]
) -> Iterator[tuple[int, ShownCall]]:
    """Yield each reply with the last call between the reply before it and itself: earlier ones failed."""
    upcoming = 0
    for number, at in replies:
        latest = None
        while upcoming < len(calls) and (calls[upcoming].at or 0.0) <= (at or 0.0):
            latest = calls[upcoming]
            upcoming += 1
        if latest is not None:
            yield number, latest
