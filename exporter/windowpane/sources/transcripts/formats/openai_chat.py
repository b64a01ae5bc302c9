"""Message lists in the shape of OpenAI's chat API, and the reading of their messages, which other formats share.

A bare list records neither times nor usage (a message's own `usage` is read where it was saved), so its session
is estimated throughout. It has no id either: the session is keyed by a digest of its first messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Final

from windowpane.core.events import Usage
from windowpane.core.vocabulary import ContentType
from windowpane.models.wire.messages import content_blocks, is_media, text_and_media, tool_spec
from windowpane.models.wire.usage import CHAT
from windowpane.sources.transcripts.json_document import (
    DocumentLog,
    JsonObject,
    compact,
    load_list,
    record_digest,
    shape_of,
)
from windowpane.sources.transcripts.json_lines import as_json, count, mapping
from windowpane.sources.transcripts.reader import FileStats, Problem
from windowpane.sources.transcripts.records import ContentAdded, ModelCalled, Record, SessionOpened

ROLES: Final[dict[str, ContentType]] = {
    "system": "system_prompt",
    "developer": "system_prompt",
    "user": "user_message",
    "assistant": "assistant_response",
    "tool": "tool_result",
    "function": "tool_result",
}
"""The content type of a message of each role."""

_MAXIMUM_STOP_REASON_CHARS: Final = 64


class Chat:
    """Reads the messages of one conversation in order and links tool results to their calls."""

    def __init__(self, stats: FileStats, *, calls_are_content: bool = False) -> None:
        self._stats = stats
        self._calls_are_content = calls_are_content
        """Tool calls count as content characters, besides the messages' texts."""
        self._names: dict[str, str] = {}
        self._steps = 0
        self.pending: str | None = None
        """The last call without an id in the recording, until its result comes."""

    def role(self, message: JsonObject) -> str | None:
        """Return the message's role; an unknown one is reported and None."""
        role = message.text("role")
        if role in ROLES:
            return role
        if role is not None or not message.has("role"):
            message.log.bad(message.at("role"), f"expected one of {', '.join(ROLES)}, got another")
        return None

    def count(self, message: JsonObject) -> None:
        """Count the message in the statistics, as the recording states it."""
        stats = self._stats
        stats.messages += 1
        stats.content_chars += len(text_of(message, quiet=True))
        calls = message.value.get("tool_calls")
        if isinstance(calls, list) and calls:
            stats.tool_calls += len(calls)
            if self._calls_are_content:
                stats.content_chars += len(compact(calls))

    def contents(self, message: JsonObject, role: str, at: float | None) -> Iterator[ContentAdded]:
        """Yield the content that entered the window with the message."""
        if role == "assistant":
            yield from self.thinking(message, at)
        yield from self._body(message, role, at)
        if role == "assistant":
            yield from self.calls(message, at)

    def thinking(self, message: JsonObject, at: float | None) -> Iterator[ContentAdded]:
        """Yield the model's reasoning, where the message holds it."""
        thought = message.text("reasoning_content")
        if thought:
            yield ContentAdded("thinking", thought, at=at)

    def calls(self, message: JsonObject, at: float | None) -> Iterator[ContentAdded]:
        """Yield the tool calls of a reply, including the older `function_call`."""
        for call in message.items("tool_calls"):
            function = call.item("function") if call.has("function") else call
            yield self._call(function, call.name("id"), at)
        if message.has("function_call"):
            yield self._call(message.item("function_call"), None, at)

    def step(self, name: str, text: str, at: float | None) -> ContentAdded:
        """Return a call that is written in the reply's text, under a new id."""
        call_id = f"step-{self._steps}"
        self._steps += 1
        self.pending = call_id
        self._names[call_id] = name
        return ContentAdded("tool_call", text, tool_call_id=call_id, tool_name=name or None, at=at)

    def result(self, message: JsonObject, call_id: str | None, at: float | None) -> Iterator[ContentAdded]:
        """Yield the result of a tool call; of the pending one where *call_id* is None."""
        text, media = text_of(message), text_and_media(message.value.get("content"))[1]
        self._stats.max_tool_output_chars = max(self._stats.max_tool_output_chars, len(text))
        call_id = call_id or self.pending
        if call_id == self.pending:
            self.pending = None
        name = message.name("name") or (self._names.get(call_id) if call_id else None)
        yield ContentAdded("tool_result", text, tool_call_id=call_id, tool_name=name or None, media=media, at=at)

    def _call(self, function: JsonObject, call_id: str | None, at: float | None) -> ContentAdded:
        name = function.name("name") or ""
        arguments = function.value.get("arguments")
        text = arguments if isinstance(arguments, str) else "" if arguments is None else as_json(arguments)
        if call_id is None:
            return self.step(name, text, at)
        self._names[call_id] = name
        return ContentAdded("tool_call", text, tool_call_id=call_id, tool_name=name or None, at=at)

    def _body(self, message: JsonObject, role: str, at: float | None) -> Iterator[ContentAdded]:
        if ROLES[role] == "tool_result":
            yield from self.result(message, message.name("tool_call_id") or message.name("id"), at)
            return
        text_of(message)  # reports parts that are neither text nor media
        content = message.value.get("content")
        for spec in content_blocks(role, content) if isinstance(content, str | list) else ():
            yield ContentAdded.of(spec, at)


def text_of(message: JsonObject, *, quiet: bool = False) -> str:
    """Return the text of a message's content, given as text or as a list of parts, which are joined."""
    content = message.value.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        if not quiet:
            message.wrong("content", "text or a list of parts", content)
        return ""
    texts = []
    for index, part in enumerate(content):
        text = part if isinstance(part, str) else part.get("text") if isinstance(part, dict) else None
        if isinstance(text, str):
            texts.append(text)
        elif not quiet and not is_media(part):
            message.log.bad(f"{message.at('content')}[{index}]", "expected a part with text or media")
    return "".join(texts)


def usage_of(holder: JsonObject, *, exclusive: bool = False) -> Usage | None:
    """Return the usage of one call, given in OpenAI's names; None where it is absent.

    *exclusive* is whether `prompt_tokens` excludes the cache, as `excludes_cache` has shown for another call.
    """
    return CHAT.read(holder.item("usage"), exclusive=exclusive, count=JsonObject.count_at)


def excludes_cache(usage: object) -> bool:
    """Return whether a call read more from the cache than its whole prompt, which then excludes the cache."""
    stated = mapping(usage)
    cached = count(mapping(stated.get("prompt_tokens_details")).get("cached_tokens"))
    return cached > count(stated.get("prompt_tokens"))


def stop_reason_of(choice: JsonObject) -> str | None:
    """Return the reason why the model stopped."""
    reason = choice.text("finish_reason")
    return reason[:_MAXIMUM_STOP_REASON_CHARS] if reason else None


def opening(messages: object) -> object:
    """Return the messages up to the first reply, which identify a conversation and never change."""
    if not isinstance(messages, list):
        return messages
    for index, message in enumerate(messages):
        if isinstance(message, dict) and message.get("role") == "assistant":
            return messages[: index + 1]
    return messages


_TRAJECTORY_SUFFIXES: Final = (".traj", ".traj.json")
_ROLE_PATHS: Final = frozenset({"[].role", "messages[].role"})
_BODY_PATHS: Final = frozenset({"[].content", "[].tool_calls", "messages[].content", "messages[].tool_calls"})
_FOREIGN_PATHS: Final = frozenset(
    {"info", "response", "trajectory_format", "[].turn_idx", "[].termination_reason"}
)
"""Fields of other formats that also hold messages: agents' trajectories, exports, logs of single calls."""


def conversation(messages: Iterator[JsonObject], chat: Chat, stats: FileStats) -> Iterator[Record]:
    """Yield the records of messages in OpenAI's shape; every assistant message is one model call."""
    for message in messages:
        role = chat.role(message)
        if role is None:
            continue
        chat.count(message)
        at = message.time("timestamp") if "timestamp" in message.value else None
        if role == "user":
            stats.user_turns += 1
        yield from chat.contents(message, role, at)
        if role == "assistant":
            stats.api_calls += 1
            usage = usage_of(message)
            if usage is not None:
                stats.peak_context = max(stats.peak_context, usage.input_total)
                stats.add_usage(prompt_tokens=usage.input_total, completion_tokens=usage.output_tokens)
            yield ModelCalled(usage, at=at)


class OpenAIChatReader:
    """One conversation: a list of messages, or an object with `messages` and perhaps `model` and `tools`."""

    format: ClassVar[str] = "openai_chat"

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Return whether the file is a list of messages with roles, and of no other format."""
        if path.name.endswith(_TRAJECTORY_SUFFIXES):
            return False
        paths = shape_of(head)
        return bool(paths & _ROLE_PATHS and paths & _BODY_PATHS) and not paths & _FOREIGN_PATHS

    def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
        """Yield the records of the conversation. Raises `SourceError` when the file is not a list of messages."""
        log = DocumentLog(path, stats, problems)
        holder = load_list(path, log, of="messages")
        stats.sessions += 1
        key = record_digest(opening(holder.value["messages"]))
        yield SessionOpened(key, "openai-chat", holder.name("model") or "")
        for tool in holder.items("tools"):
            yield ContentAdded.of(tool_spec(tool.value), None)
        yield from conversation(holder.items("messages"), Chat(stats, calls_are_content=True), stats)
