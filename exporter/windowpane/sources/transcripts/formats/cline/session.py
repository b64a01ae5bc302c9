"""The messages of one agent's session in Cline's session store, and what its latest compaction replaced.

Every message is kept. What the model is sent since the latest compaction is in a file beside them, which states
how many messages it covers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from windowpane.core.vocabulary import ContentType
from windowpane.models.wire.messages import is_media
from windowpane.models.wire.usage import FLAT
from windowpane.sources.transcripts.formats.anthropic_blocks import content_of
from windowpane.sources.transcripts.formats.cline.task import texts_of
from windowpane.sources.transcripts.json_document import JsonObject
from windowpane.sources.transcripts.json_lines import (
    as_json,
    count,
    dollars,
    instant,
    mapping,
    milliseconds,
    sequence,
    text,
)
from windowpane.sources.transcripts.reader import FileStats
from windowpane.sources.transcripts.records import Compacted, ContentAdded, ContentRemoved, ModelCalled, Record

TRUNCATED: Final = "truncate"
SUMMARY: Final = "compaction_summary"
_INJECTED: Final = ("<environment_details>", "[ERROR]")
USAGE_NAMES: Final = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")


class Compaction(NamedTuple):
    """The latest compaction of a session."""

    covered: int
    """Number of messages that it replaced or retained; later ones are sent as they are."""
    messages: Sequence[dict[str, Any]]
    """Sent instead of these."""
    at: float | None

    @classmethod
    def of(cls, state: dict[str, Any]) -> Compaction | None:
        """Return the compaction that a file beside the messages states; None where it states none."""
        covered, messages = count(state.get("source_message_count")), sequence(state.get("messages"))
        if not covered or not messages:
            return None
        return cls(covered, [mapping(message) for message in messages], instant(state.get("updated_at")))


class ClineMessages:
    """Turns the messages of one session into records."""

    def __init__(self, stats: FileStats, *, model: str = "") -> None:
        self._stats = stats
        self._model = model
        self._number = -1
        self._contents: dict[int, list[ContentAdded]] = {}
        self._ids: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._children: dict[str, str] = {}
        self.unknown: set[str] = set()
        """Types of content that were skipped."""
        self.unstated = 0
        """Calls whose usage is not known."""

    def read(
        self, messages: Sequence[JsonObject], *, compaction: Compaction | None = None, inherited: int = 0
    ) -> Iterator[Record]:
        """Yield the records of all messages; the calls of the first *inherited* ones are another session's."""
        summed = _sums([message.value for message in messages])
        for self._number, message in enumerate(messages):
            if compaction is not None and self._number == compaction.covered:
                yield from self._compacted(compaction, messages)
            yield from self._message(message, is_sum=self._number in summed, is_copy=self._number < inherited)
        if compaction is not None and compaction.covered >= len(messages):
            yield from self._compacted(compaction, messages)

    def _message(self, message: JsonObject, *, is_sum: bool, is_copy: bool) -> Iterator[Record]:
        value, role = message.value, message.value.get("role")
        self._stats.messages += 1
        if role == "error":  # shown to the user
            return
        if role not in ("user", "assistant"):
            message.log.bad(message.at("role"), "expected user or assistant, got another")
            return
        at = milliseconds(value.get("ts"))
        if _is_summary(value):
            yield self._summary(value, at, retained=[one.key for one in self._all()])
            return
        for link in map(mapping, sequence(value.get("childSessions"))):
            self._children[text(link.get("toolCallId"))] = text(link.get("sessionId"))
        contents = list(self._contents_of(value, at))
        self._contents[self._number] = contents
        yield from contents
        if role == "assistant" and not is_copy:
            self._stats.api_calls += 1
            yield self._called(value, at, is_sum=is_sum)
        elif role == "user":
            self._stats.user_turns += any(content.content_type == "user_message" for content in contents)

    # -- content ----------------------------------------------------------------------------------------------

    def _contents_of(self, value: dict[str, Any], at: float | None) -> Iterator[ContentAdded]:
        content = value.get("content")
        for block in [content] if isinstance(content, str) else sequence(content):
            part = {"type": "text", "text": block} if isinstance(block, str) else mapping(block)
            yield from self._block(part, value, at)

    def _block(self, block: dict[str, Any], message: dict[str, Any], at: float | None) -> Iterator[ContentAdded]:
        kind, plain = text(block.get("type")), _author(message, text(block.get("text")))
        if kind == "tool_result":
            yield self._result(block, at)
        elif kind == "file":
            yield from self._written("memory_injection", text(block.get("content")), at)
        elif (content := content_of(block, plain, at=at)) is None:
            self.unknown.add(kind[:64])
        elif content.content_type == "tool_call":
            yield self._call(content, block, at)
        elif content.text is None:
            yield self._added(content.content_type, None, at, media=content.media)
        else:
            yield from self._written(content.content_type, content.text, at)

    def _written(self, kind: ContentType, written: str, at: float | None) -> Iterator[ContentAdded]:
        self._stats.content_chars += len(written)
        if written:
            yield self._added(kind, written, at)

    def _call(self, call: ContentAdded, block: dict[str, Any], at: float | None) -> ContentAdded:
        own, arguments = call.tool_call_id or "", call.text or ""
        self._ids[own] = text(block.get("call_id")) or own
        self._names[own] = call.tool_name or ""
        self._stats.tool_calls += 1
        self._stats.content_chars += len(arguments)
        return self._added("tool_call", arguments, at, tool=own)

    def _result(self, block: dict[str, Any], at: float | None) -> ContentAdded:
        own, content = text(block.get("tool_use_id")), block.get("content")
        parts = list(map(mapping, sequence(content)))
        texts = [text(part.get("text")) or text(part.get("content")) for part in parts]
        output = content if isinstance(content, str) else "\n".join(filter(None, texts))
        self._names.setdefault(own, text(block.get("name")))
        self._stats.content_chars += len(output)
        self._stats.max_tool_output_chars = max(self._stats.max_tool_output_chars, len(output))
        media = sum(map(is_media, parts))
        return self._added("tool_result", output, at, tool=own, media=media, child=self._children.get(own))

    def _added(
        self,
        kind: ContentType,
        written: str | None,
        at: float | None,
        *,
        tool: str = "",
        media: int = 0,
        child: str | None = None,
    ) -> ContentAdded:
        call_id, name = self._ids.get(tool, tool), self._names.get(tool)
        key = f"m{self._number}"
        return ContentAdded(kind, written, call_id or None, name or None, media, key=key, at=at, child_key=child)

    def _called(self, value: dict[str, Any], at: float | None, *, is_sum: bool) -> ModelCalled:
        metrics = mapping(value.get("metrics"))
        self._stats.add_usage(**{name: count(metrics.get(name)) for name in USAGE_NAMES})
        usage = None if is_sum else FLAT.read_sent(metrics)
        self.unstated += usage is None
        if usage is not None:
            self._stats.peak_context = max(self._stats.peak_context, usage.input_total)
        model = text(mapping(value.get("modelInfo")).get("id")) or self._model
        return ModelCalled(usage, model[:200], dollars(metrics.get("cost")) if usage else None, at=at)

    # -- compactions ------------------------------------------------------------------------------------------

    def _compacted(self, compaction: Compaction, messages: Sequence[JsonObject]) -> Iterator[Record]:
        """Yield the replacement of messages by a summary, or their removal where none was written."""
        retained = _retained([message.value for message in messages[: compaction.covered]], compaction.messages)
        keys = [one.key for number in retained for one in self._contents.get(number, ())]
        summary = next((message for message in compaction.messages if _is_summary(message)), None)
        if summary is not None:
            yield self._summary(summary, compaction.at, retained=keys)
            return
        is_retained = frozenset(keys)
        removed = tuple(dict.fromkeys(one.key for one in self._all() if one.key not in is_retained))
        if removed:
            self._stats.evictions += len(removed)
            yield ContentRemoved(removed, TRUNCATED, at=compaction.at)

    def _summary(self, value: dict[str, Any], at: float | None, *, retained: Sequence[str]) -> Compacted:
        stated = mapping(value.get("metadata"))
        self._stats.compactions += 1
        return Compacted(
            "unknown",
            summary=texts_of(value.get("content")) or None,
            kept_keys=tuple(dict.fromkeys(retained)),
            at=milliseconds(stated.get("generatedAt")) or at,
        )

    def _all(self) -> Iterator[ContentAdded]:
        for contents in self._contents.values():
            yield from contents


def _sums(messages: Sequence[dict[str, Any]]) -> frozenset[int]:
    """Return the replies whose usage is that of all calls since the user's message.

    Cline states it with the last one where the provider stated none of single calls.
    """
    sums: set[int] = set()
    run: list[int] = []
    for number, message in enumerate([*messages, {"role": "user", "content": ""}]):
        if message.get("role") == "assistant":
            run.append(number)
        elif not _is_result(message):
            stated = [one for one in run if mapping(messages[one].get("metrics"))]
            if len(run) > 1 and stated == run[-1:]:
                sums.update(stated)
            run = []
    return frozenset(sums)


def _is_result(message: dict[str, Any]) -> bool:
    blocks = sequence(message.get("content"))
    return bool(blocks) and all(mapping(block).get("type") == "tool_result" for block in blocks)


def _is_summary(message: dict[str, Any]) -> bool:
    return message.get("compactionSummary") is True or mapping(message.get("metadata")).get("kind") == SUMMARY


def _author(message: dict[str, Any], written: str) -> ContentType:
    if message.get("role") == "assistant":
        return "assistant_response"
    is_injected = mapping(message.get("metadata")).get("kind") or written.startswith(_INJECTED)
    return "memory_injection" if is_injected else "user_message"


def _retained(messages: Sequence[dict[str, Any]], sent: Sequence[dict[str, Any]]) -> list[int]:
    """Return the numbers of those *messages* that are among the *sent* ones; their ids differ."""
    contents = Counter(_digestible(message) for message in sent)
    retained = []
    for number in range(len(messages) - 1, -1, -1):  # the latest of equal ones
        content = _digestible(messages[number])
        if contents[content]:
            contents[content] -= 1
            retained.append(number)
    return retained[::-1]


def _digestible(message: dict[str, Any]) -> str:
    return f"{message.get('role')} {as_json(message.get('content'))}"
