"""Gemini's `generateContent`.

A call holds *contents*, whose *parts* are texts, function calls and their responses. The clients of Google write
names in camel case, their Python objects in snake case; the API takes both. A function call has an id only where
the model gives one; without it calls are recognized by name and arguments, and responses by name and content.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from windowpane.core.events import Usage
from windowpane.core.vocabulary import ContentType
from windowpane.models.wire.messages import (
    BlockSpec,
    Key,
    call_spec,
    field_of,
    json_text,
    media_spec,
    member_of,
    parts_of,
    text_specs,
)
from windowpane.models.wire.replies import Reply, reply_parts
from windowpane.models.wire.usage import GEMINI

_WRAPPERS: Final = ("result", "output", "error")
"""Names under which clients send a tool's output as the only field of a response."""


def head(body: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the system prompt and the tools of a call.

    Functions are sent in groups, and beside them the provider's own tools.
    """
    instruction = member_of(body, "systemInstruction")
    tools: list[Any] = []
    for tool in parts_of(body.get("tools")):
        declared = member_of(tool, "functionDeclarations")
        if isinstance(declared, list | tuple):
            tools += declared
        elif isinstance(tool, Mapping):
            tools += [{"name": name, **_fields(options)} for name, options in tool.items()]
    return instruction if isinstance(instruction, str) else field_of(instruction, "parts"), tools


def joined_contents(contents: Sequence[Any]) -> list[Any]:
    """Return *contents* with adjacent ones of the model joined: a streamed reply is sent back chunk by chunk."""
    joined: list[Any] = []
    for content in contents:
        if joined and _is_reply(content) and _is_reply(joined[-1]):
            parts = [*field_of(joined[-1], "parts"), *field_of(content, "parts")]
            joined[-1] = {"role": "model", "parts": joined_texts(parts)}
        else:
            joined.append(content)
    return joined


def _is_reply(content: object) -> bool:
    return field_of(content, "role") == "model" and isinstance(field_of(content, "parts"), list)


def joined_texts(parts: Iterable[Any]) -> list[Any]:
    """Return *parts* with adjacent texts joined: a stream breaks a text into one part per chunk."""
    joined: list[Any] = []
    for part in parts:
        text, last = member_of(part, "text"), joined[-1] if joined else None
        before = member_of(last, "text")
        same_kind = bool(member_of(part, "thought")) == bool(member_of(last, "thought"))
        if isinstance(text, str) and isinstance(before, str) and same_kind:
            joined[-1] = {"text": before + text, "thought": bool(member_of(part, "thought"))}
        else:
            joined.append(part)
    return joined


def content_blocks(content: object) -> Iterator[BlockSpec]:
    """Yield the blocks of one content."""
    content_type: ContentType = "assistant_response" if field_of(content, "role") == "model" else "user_message"
    for part in [content] if isinstance(content, str) else parts_of(field_of(content, "parts")):
        yield from part_blocks(content_type, part)


def part_blocks(content_type: ContentType, part: object) -> Iterator[BlockSpec]:
    """Yield the block of one part; *content_type* is that of texts."""
    text = part if isinstance(part, str) else field_of(part, "text")
    if isinstance(text, str):
        yield from text_specs("thinking" if field_of(part, "thought") is True else content_type, text)
        return
    call, response = member_of(part, "functionCall"), member_of(part, "functionResponse")
    if call is not None:
        yield call_spec(field_of(call, "id"), field_of(call, "name"), field_of(call, "args"))
    elif response is not None:
        yield _result(response)
    elif member_of(part, "inlineData") is not None or member_of(part, "fileData") is not None:
        yield media_spec(part)
    elif part:
        yield from text_specs(content_type, json_text(part))


def _result(response: object) -> BlockSpec:
    name, call_id = str(field_of(response, "name") or ""), field_of(response, "id")
    text, media = result_text(field_of(response, "response")), len(parts_of(field_of(response, "parts")))
    if call_id is not None:
        return BlockSpec("tool_result", text, Key("tool_result", str(call_id)), str(call_id), name, media)
    return BlockSpec("tool_result", text, Key("tool_result", f"{name}\0{text}"), None, name, media)


def result_text(output: object) -> str:
    """Return a tool's output: the text that clients wrap into an object, else the object as JSON."""
    return json_text(output or {}) if (text := unwrapped(output)) is None else text


def unwrapped(output: object) -> str | None:
    """Return the text that clients wrap into an object of one field; None for any other output."""
    if isinstance(output, Mapping) and len(output) == 1:
        [(name, value)] = output.items()
        if name in _WRAPPERS and isinstance(value, str):
            return value
    return None


def _fields(options: object) -> Mapping[str, Any]:
    return options if isinstance(options, Mapping) else {}


def read_chunks(chunks: Iterable[object]) -> Reply:
    """Return the first candidate of the reply that *chunks* make up; each reports the usage so far."""
    parts: list[Any] = []
    usage: Usage | None = None
    model = stop_reason = response_id = ""
    for chunk in chunks:
        candidate = next(iter(member_of(chunk, "candidates") or ()), None)
        parts += member_of(member_of(candidate, "content"), "parts") or ()
        usage = GEMINI.read(member_of(chunk, "usageMetadata")) or usage
        model = str(member_of(chunk, "modelVersion") or model)
        response_id = str(member_of(chunk, "responseId") or response_id)
        stop_reason = _text_of(member_of(candidate, "finishReason")) or stop_reason
    joined = joined_texts(parts)
    read = [part for part in joined if _is_read(part)]
    return Reply(
        tuple(reply_parts(content_blocks({"role": "model", "parts": read}))),
        usage,
        model,
        stop_reason or None,
        unread=tuple(sorted({_kind(part) for part in joined if not _is_read(part)})),
        response_id=response_id,
    )


def _is_read(part: object) -> bool:
    """Return whether a part of a reply enters the window."""
    return isinstance(member_of(part, "text"), str) or member_of(part, "functionCall") is not None


def _kind(part: object) -> str:
    return next((str(name) for name in part), "part") if isinstance(part, Mapping) else type(part).__name__


def _text_of(value: object) -> str:
    """Return an enumerated value as it is on the wire; the client has an object for it."""
    return str(getattr(value, "value", value) or "")
