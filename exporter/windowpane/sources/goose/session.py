"""One session of Goose as records, in whichever way it was stored.

Goose states no usage per message, only sums of the session. A compaction hides the messages before it from the
model (`agentVisible`) and adds a summary that only the model sees.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from windowpane.core.vocabulary import ContentType
from windowpane.sources.json_lines import as_json, mapping, sequence, text
from windowpane.sources.reader import FileStats
from windowpane.sources.records import Compacted, ContentAdded, ModelCalled, Record

AGENT: Final = "goose"
SUBAGENT: Final = "goose-agent"
SUBAGENT_TYPE: Final = "sub_agent"
_SHOWN_ONLY: Final = frozenset(
    {"toolConfirmationRequest", "actionRequired", "systemNotification", "conversationCompacted"}
)
CONTINUATIONS: Final = {
    "Your context was compacted": "auto",
    "Your context was compacted at the user's request": "manual",
}
"""First sentence of the text that follows a summary, and the trigger that it shows."""
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
    def text(self) -> str:
        """Its texts."""
        return "\n".join(text(mapping(item).get("text")) for item in self.content if mapping(item).get("text"))


def seconds_of(value: object) -> float | None:
    """Return the seconds since the epoch of a number of seconds, or of milliseconds."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 1e15:
        return None
    return value / 1000 if value > _MILLISECONDS else float(value)


def _is_summary(message: GooseMessage, following: GooseMessage) -> bool:
    return (
        message.role == "user"
        and message.is_injected
        and following.is_injected
        and following.text.partition(".")[0] in CONTINUATIONS
    )


class GooseMessages:
    """Turns the messages of one session into records, one after the other."""

    def __init__(self, stats: FileStats, *, model: str = "") -> None:
        self._stats = stats
        self._model = model
        self._number = -1
        self._names: dict[str, str] = {}
        self.unknown: set[str] = set()
        """Types of content that were skipped."""

    def read(self, messages: Sequence[GooseMessage]) -> Iterator[Record]:
        """Yield the records of all messages of the session, in order."""
        summaries = {
            number: CONTINUATIONS[following.text.partition(".")[0]]
            for number, (message, following) in enumerate(pairwise(messages))
            if _is_summary(message, following)
        }
        last = max(summaries, default=-1)
        for self._number, message in enumerate(messages):
            self._stats.messages += 1
            if self._number in summaries:
                self._stats.compactions += 1
                trigger = summaries[self._number]
                yield Compacted(trigger, summary=message.text or None, at=message.at)
            elif message.is_sent or self._number < last:
                yield from self._message(message)

    def _message(self, message: GooseMessage) -> Iterator[Record]:
        contents = [content for item in message.content for content in self._contents(mapping(item), message)]
        self._stats.user_turns += any(content.content_type == "user_message" for content in contents)
        yield from contents
        if message.role == "assistant" and contents and not message.is_injected:
            self._stats.api_calls += 1
            yield ModelCalled(None, self._model, at=message.at)

    def _contents(self, item: dict[str, Any], message: GooseMessage) -> Iterator[ContentAdded]:
        kind = text(item.get("type"))
        if kind == "text":
            yield from self._text(text(item.get("text")), message)
        elif kind in ("thinking", "reasoning"):
            yield from self._written("thinking", text(item.get("thinking")) or text(item.get("text")), message)
        elif kind == "redactedThinking":
            yield self._added("thinking", None, message)
        elif kind == "image":
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
        return self._added("tool_call", f"{name} {arguments}", message, call_id=call_id)

    def _result(self, item: dict[str, Any], message: GooseMessage) -> ContentAdded:
        result = mapping(item.get("toolResult"))
        value = result.get("value", item.get("toolResult"))
        parts = [mapping(part) for part in sequence(mapping(value).get("content") or value)]
        output = "\n".join(text(part.get("text")) for part in parts if part.get("type") == "text")
        output = output or text(result.get("error"))
        media = sum(part.get("type") == "image" for part in parts)
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
