"""Gemini's `generateContent`, read as the chat messages that the observer compares.

Its calls of functions seldom have an id; such a call is named by its function and its number among the calls of
that function, and a result answers the earliest call of its function without one.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, Final

from windowpane.core.events import Usage
from windowpane.core.limits import MAXIMUM_TOKENS
from windowpane.models.replies import Reply, ReplyPart
from windowpane.observer.messages import ApiCall
from windowpane.observer.streams import raise_for_error
from windowpane.sources.json_document import MAXIMUM_NAME_CHARS
from windowpane.sources.json_lines import as_json, count, mapping, sequence, text

_ROLES: Final = {"model": "assistant", "user": "user", "function": "user"}


def read_call(request: Mapping[str, Any], uri: str) -> ApiCall:
    """Return the call of a request's body; its model is part of the address."""
    instruction = mapping(request.get("systemInstruction") or request.get("system_instruction"))
    calls = _Calls()
    messages = [
        message
        for content in sequence(request.get("contents"))
        if isinstance(content, dict)
        for message in _messages(content, calls)
    ]
    tools = [
        declaration
        for tool in sequence(request.get("tools"))
        for declaration in sequence(
            mapping(tool).get("functionDeclarations") or mapping(tool).get("function_declarations")
        )
    ]
    model = text(request.get("model")) or uri.partition("?")[0].rpartition("/")[2].partition(":")[0]
    system = "".join(text(mapping(part).get("text")) for part in sequence(instruction.get("parts")))
    return ApiCall(
        "chat", model.removeprefix("models/")[:MAXIMUM_NAME_CHARS], messages, system or None, tools or None
    )


def read_reply(response: object, call: ApiCall) -> Reply:
    """Return the reply of a response, whole or as the list of its chunks."""
    chunks = [
        chunk for chunk in (response if isinstance(response, list) else [response]) if isinstance(chunk, dict)
    ]
    calls = _Calls()
    for message in call.messages:
        for earlier in message.get("tool_calls", ()):
            calls.count(earlier["function"]["name"])
    parts: list[ReplyPart] = []
    usage: Usage | None = None
    reason = model = response_id = ""
    for chunk in chunks:
        raise_for_error(chunk)
        candidate = mapping(next(iter(sequence(chunk.get("candidates"))), None))
        for part in sequence(mapping(candidate.get("content")).get("parts")):
            parts += _reply_parts(mapping(part), calls)
        reason = text(candidate.get("finishReason")) or reason
        model = text(chunk.get("modelVersion")) or model
        response_id = text(chunk.get("responseId")) or response_id
        usage = _usage(mapping(chunk.get("usageMetadata"))) or usage
    return Reply(tuple(_joined(parts)), usage, model, reason or None, response_id=response_id)


class _Calls:
    """Names the calls of functions that have no id, and finds the calls that results answer."""

    def __init__(self) -> None:
        self._numbers: Counter[str] = Counter()
        self._waiting: dict[str, deque[str]] = {}

    def count(self, name: str) -> int:
        """Count one more call of a function; returns its number, from 1."""
        self._numbers[name] += 1
        return self._numbers[name]

    def id_of(self, call: Mapping[str, Any]) -> str:
        """Return the id of a call."""
        name = text(call.get("name"))
        number = self.count(name)
        call_id = text(call.get("id")) or f"{name}-{number}"
        self._waiting.setdefault(name, deque()).append(call_id)
        return call_id

    def answered_by(self, response: Mapping[str, Any]) -> str:
        """Return the id of the call that a result answers."""
        name = text(response.get("name"))
        waiting = self._waiting.get(name)
        earliest = waiting.popleft() if waiting else ""
        return text(response.get("id")) or earliest or name


def _messages(content: Mapping[str, Any], calls: _Calls) -> Iterator[dict[str, Any]]:
    """Yield the chat messages of one entry: its results, then the rest."""
    role = _ROLES.get(text(content.get("role")), "user")
    written: list[dict[str, Any]] = []
    called: list[dict[str, Any]] = []
    for value in sequence(content.get("parts")):
        part = mapping(value)
        call, response = _field(part, "functionCall"), _field(part, "functionResponse")
        if call:
            name, arguments = text(call.get("name")), as_json(call.get("args") or {})
            called.append({"id": calls.id_of(call), "function": {"name": name, "arguments": arguments}})
        elif response:
            answered = calls.answered_by(response)
            yield {
                "role": "tool", "tool_call_id": answered, "name": text(response.get("name")),
                "content": as_json(response.get("response")),
            }  # fmt: skip
        elif isinstance(part.get("text"), str):
            kind, field = ("thinking", "thinking") if part.get("thought") is True else ("text", "text")
            written.append({"type": kind, field: part["text"]})
        elif _field(part, "inlineData") or _field(part, "fileData"):
            written.append({"type": "image", "source": as_json(part)})
    if written or called:
        yield {"role": role, "content": written} | ({"tool_calls": called} if called else {})


def _reply_parts(part: Mapping[str, Any], calls: _Calls) -> Iterator[ReplyPart]:
    call = _field(part, "functionCall")
    if call:
        yield ReplyPart("tool_call", as_json(call.get("args") or {}), calls.id_of(call), text(call.get("name")))
    elif isinstance(part.get("text"), str) and part["text"]:
        yield ReplyPart("thinking" if part.get("thought") is True else "assistant_response", part["text"])


def _joined(parts: list[ReplyPart]) -> Iterator[ReplyPart]:
    """Yield the parts, with the pieces of one streamed text as one."""
    for kind, group in groupby(parts, key=lambda part: part.kind):
        if kind == "tool_call":
            yield from group
        else:
            yield ReplyPart(kind, "".join(part.text for part in group))


def _usage(metadata: Mapping[str, Any]) -> Usage | None:
    if "promptTokenCount" not in metadata and "candidatesTokenCount" not in metadata:
        return None
    thoughts = count(metadata.get("thoughtsTokenCount"))
    return Usage.of_prompt(
        min(
            count(metadata.get("promptTokenCount")) + count(metadata.get("toolUsePromptTokenCount")),
            MAXIMUM_TOKENS,
        ),
        min(count(metadata.get("candidatesTokenCount")) + thoughts, MAXIMUM_TOKENS),
        cached=count(metadata.get("cachedContentTokenCount")),
        reasoning=thoughts,
    )


def _field(part: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return an object by its name in JSON or in the client for Python."""
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    return mapping(part.get(name) or part.get(snake))
