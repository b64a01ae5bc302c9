"""Calls of Gemini's `generateContent`, read as blocks.

A call holds *contents*, whose *parts* are texts, function calls and their responses. The clients of Google write
names in camel case; the API takes the snake case of its definition too. A function call has an id only where the
model gives one; without it calls are recognized by name and arguments, responses by name and content, and their
blocks get ids from `diff.CallIds`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from windowpane.core.vocabulary import ContentType
from windowpane.models.gemini_replies import joined_texts, member_of
from windowpane.sources.conversations.block_specs import (
    BlockSpec,
    Key,
    call_spec,
    field_of,
    json_text,
    media_spec,
    parts_of,
    text_specs,
)

_RESULT_FIELDS: Final = ("result", "output", "error")
"""Names under which clients send a tool's output as the only field of a response."""


def gemini_system(body: Mapping[str, Any]) -> Any:
    """Return the parts of the system instruction."""
    instruction = member_of(body, "systemInstruction")
    return instruction if isinstance(instruction, str) else field_of(instruction, "parts")


def gemini_tools(body: Mapping[str, Any]) -> list[Any]:
    """Return the definitions of all functions, which are sent as groups, and of the provider's own tools."""
    tools: list[Any] = []
    for tool in parts_of(body.get("tools")):
        declared = member_of(tool, "functionDeclarations")
        if isinstance(declared, list | tuple):
            tools += declared
        elif isinstance(tool, Mapping):
            tools += [{"name": name, **_fields(options)} for name, options in tool.items()]
    return tools


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


def gemini_blocks(content: object) -> Iterator[BlockSpec]:
    """Yield the blocks of one content."""
    content_type: ContentType = "assistant_response" if field_of(content, "role") == "model" else "user_message"
    for part in [content] if isinstance(content, str) else parts_of(field_of(content, "parts")):
        yield from _part(content_type, part)


def _part(content_type: ContentType, part: object) -> Iterator[BlockSpec]:
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
    if isinstance(output, Mapping) and len(output) == 1:
        [(name, value)] = output.items()
        if name in _RESULT_FIELDS and isinstance(value, str):
            return value
    return json_text(output or {})


def _fields(options: object) -> Mapping[str, Any]:
    return options if isinstance(options, Mapping) else {}
