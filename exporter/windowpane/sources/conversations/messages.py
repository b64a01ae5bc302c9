"""The messages that agents send, in the shapes of every provider, read as blocks.

OpenAI's and Anthropic's are read here, the others by `gemini_contents` and `converse_messages`. Markers that
change nothing the model sees, such as `cache_control`, are not part of a block.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from windowpane.core.fast_dataclass import FastDataclass
from windowpane.core.vocabulary import ContentType
from windowpane.models.replies import Reply
from windowpane.sources.conversations.block_specs import (
    BlockSpec,
    Key,
    call_spec,
    canonical_json,
    copy_structure,
    field_of,
    items_of,
    json_text,
    media_spec,
    name_of,
    parts_of,
    result_specs,
    text_specs,
    texts_of,
    tool_spec,
)
from windowpane.sources.conversations.converse_messages import converse_blocks, converse_tools
from windowpane.sources.conversations.gemini_contents import (
    gemini_blocks,
    gemini_system,
    gemini_tools,
    joined_contents,
)

Shape = Literal["chat", "responses", "anthropic", "gemini", "converse"]
"""OpenAI chat completions, OpenAI responses, Anthropic messages, Gemini's generateContent, Bedrock's Converse."""

SENDS_OWN_MESSAGES: Final[frozenset[Shape]] = frozenset({"anthropic", "converse"})
"""Shapes whose client sends the agent's own dictionaries. The client of the others sends copies of them."""
JSON_CHARACTERS_PER_MESSAGE: Final = 500
_MESSAGES_FIELD: Final[dict[Shape, str]] = {
    "chat": "messages",
    "responses": "input",
    "anthropic": "messages",
    "gemini": "contents",
    "converse": "messages",
}


class ApiCall(FastDataclass, frozen=True):
    """One model call as it is about to be sent."""

    shape: Shape
    model: str
    messages: Sequence[Any]
    system: Any = None
    """The system prompt, where it is sent beside the messages."""
    tools: Any = None
    continues: str | None = None
    """The response or stored conversation that the provider puts before the messages."""
    streams: bool = False
    """The reply is requested as a stream."""


class CapturedCall:
    """References to a call's arguments, taken on the agent's thread; what they refer to is not read there."""

    __slots__ = ("_body", "_read", "shape")

    def __init__(self, shape: Shape, body: dict[str, Any]) -> None:
        self.shape: Shape = shape
        self._body = body
        self._read = False

    @property
    def message_count(self) -> int:
        """The number of its messages."""
        messages = self._body[_MESSAGES_FIELD[self.shape]]
        return 1 if isinstance(messages, str) else len(messages)

    def before_return(self) -> None:
        """Copy the messages if the agent is about to get them back unread, and could edit them in place."""
        if not self._read and self.shape in SENDS_OWN_MESSAGES:
            self._body = copy_structure(self._body)

    def read(self) -> ApiCall:
        """Return the call, which shares the agent's messages until `release`."""
        return parse_call(self.shape, self._body)

    def release(self) -> None:
        """Drop the references: what is needed of them was copied."""
        self._read = True
        self._body = {_MESSAGES_FIELD[self.shape]: ()}


class CapturedJson(CapturedCall):
    """A call whose body was sent as JSON: the agent cannot edit it, and it is parsed where it is read."""

    __slots__ = ("_json", "_model")

    def __init__(self, shape: Shape, body: str | bytes, model: str) -> None:
        super().__init__(shape, {})
        self._json: str | bytes | None = body
        self._model = model

    @property
    def message_count(self) -> int:
        """The number of its messages, by the length of the body."""
        return len(self._json or "") // JSON_CHARACTERS_PER_MESSAGE

    def before_return(self) -> None:
        """Copy nothing."""

    def read(self) -> ApiCall:
        """Return the call."""
        return parse_call(self.shape, {"model": self._model, **json.loads(self._json or "{}")})

    def release(self) -> None:
        """Drop the body."""
        self._json = None


def capture_call(shape: Shape, body: Mapping[str, Any]) -> CapturedCall | None:
    """Return references to the call that *body* requests; None where reading its messages would consume them."""
    field = _MESSAGES_FIELD[shape]
    messages = body.get(field)
    if not isinstance(messages, list | tuple | str):
        return None
    captured = dict(body)
    if not isinstance(messages, str):
        captured[field] = list(messages)
    return CapturedCall(shape, captured)


def parse_call(shape: Shape, body: Mapping[str, Any]) -> ApiCall:
    """Return the call that *body* requests, whose messages are text or a list."""
    messages = body[_MESSAGES_FIELD[shape]]
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}] if shape != "gemini" else [messages]
    if shape == "gemini":
        messages = joined_contents(messages)
    model = body.get("model")
    continues = None
    if shape == "responses":
        conversation = body.get("conversation")
        continues = body.get("previous_response_id") or field_of(conversation, "id") or conversation
    system, tools = _head(shape, body)
    return ApiCall(
        shape,
        model if isinstance(model, str) else "",
        messages,
        _text_or_list(system),
        _text_or_list(tools),
        continues if isinstance(continues, str) else None,
        body.get("stream") is True,
    )


def _head(shape: Shape, body: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the system prompt and the tools that are sent beside the messages."""
    match shape:
        case "gemini":
            return gemini_system(body), gemini_tools(body)
        case "converse":
            return body.get("system"), converse_tools(body)
        case "responses":
            return body.get("instructions"), body.get("tools")
        case "anthropic":
            return body.get("system"), body.get("tools")
        case "chat":
            return None, body.get("tools")


def head_blocks(call: ApiCall) -> list[BlockSpec]:
    """Return the blocks of the system prompt and tool definitions that are sent beside the messages."""
    return [
        *(spec for text in texts_of(call.system) for spec in text_specs("system_prompt", text)),
        *(tool_spec(tool) for tool in call.tools or ()),
    ]


def message_blocks(shape: Shape, message: object) -> list[BlockSpec]:
    """Return the blocks of one message."""
    if shape == "gemini":
        return list(gemini_blocks(message))
    if shape == "converse":
        return list(converse_blocks(message))
    if shape == "responses" and field_of(message, "type") not in (None, "message"):
        return list(_item(message))
    role = name_of(field_of(message, "role"), "user")
    content = field_of(message, "content")
    specs: list[BlockSpec] = []
    if role in ("tool", "function"):
        name = field_of(message, "tool_call_id") or field_of(message, "name")
        specs += result_specs(name, content, tool_name=field_of(message, "name"))
    else:
        specs += [
            spec for part in parts_of(content) for spec in _part(_TYPE_OF_ROLE.get(role, "user_message"), part)
        ]
    for call in items_of(message, "tool_calls"):
        function = field_of(call, "function") or field_of(call, "custom")
        arguments = field_of(function, "arguments")
        if arguments is None:
            arguments = field_of(function, "input")
        specs.append(call_spec(field_of(call, "id"), field_of(function, "name"), arguments))
    if field_of(message, "refusal"):
        specs += text_specs("assistant_response", field_of(message, "refusal"))
    return specs


def reply_blocks(reply: Reply) -> list[BlockSpec]:
    """Return the blocks of a model's reply, with the keys they will have when they are sent back."""
    specs: list[BlockSpec] = []
    for part in reply.parts:
        if part.kind == "tool_call":
            specs.append(call_spec(part.tool_call_id, part.tool_name, part.text))
        else:
            specs += text_specs(part.kind, part.text)
    return specs


def same_content(one: Sequence[BlockSpec], other: Sequence[BlockSpec]) -> bool:
    """Return whether the blocks of two messages hold the same, however their messages are written."""
    return [_content(spec) for spec in one] == [_content(spec) for spec in other]


def same_rendering(one: BlockSpec, other: BlockSpec) -> bool:
    """Return whether two blocks differ in nothing but blanks, or for a tool call in its id and JSON format."""
    if one.content_type != other.content_type or one.media or other.media:
        return False
    if one.content_type == "tool_call":
        return _content(one) == _content(other)
    return (one.text or "").split() == (other.text or "").split()


def _content(spec: BlockSpec) -> tuple[Key, str | None, int]:
    """Return what two writings of one block have in common."""
    if spec.content_type == "tool_call":
        return Key("tool_call", spec.tool_name or ""), canonical_json(spec.text), 0
    return spec.key, None if spec.text is None else spec.text.strip(), spec.media


def is_system(message: object) -> bool:
    """Return whether *message* is a system prompt."""
    return field_of(message, "role") in ("system", "developer")


_TYPE_OF_ROLE: Final[dict[str, ContentType]] = {
    "system": "system_prompt",
    "developer": "system_prompt",
    "assistant": "assistant_response",
}


def _text_or_list(value: Any) -> Any:
    """Return text or a list of parts; None for a client's marker for *not given* or an iterator."""
    return value if isinstance(value, str | list | tuple) else None


def _part(content_type: ContentType, part: object) -> Iterator[BlockSpec]:
    """Read one part of a message's content, in either provider's shape."""
    if isinstance(part, str):
        yield from text_specs(content_type, part)
        return
    kind = name_of(field_of(part, "type"), "text")
    reader = _READERS.get(kind)
    if reader is not None:
        yield from reader(part)
    elif kind in _TEXT_KINDS:
        yield from text_specs(content_type, field_of(part, "text") or field_of(part, "refusal"))
    elif kind.endswith("_tool_result"):
        yield from result_specs(field_of(part, "tool_use_id"), field_of(part, "content"))
    elif kind in _MEDIA_KINDS:
        yield media_spec(part)
    else:
        yield from text_specs(content_type, json_text(part))


def _thinking(part: object) -> Iterator[BlockSpec]:
    return text_specs("thinking", field_of(part, "thinking") or field_of(part, "data"))


def _tool_use(part: object) -> Iterator[BlockSpec]:
    yield call_spec(field_of(part, "id"), field_of(part, "name"), field_of(part, "input"))


def _tool_result(part: object) -> Iterator[BlockSpec]:
    return result_specs(field_of(part, "tool_use_id"), field_of(part, "content"))


_READERS: Final[dict[str, Callable[[object], Iterator[BlockSpec]]]] = {
    "thinking": _thinking,
    "redacted_thinking": _thinking,
    "tool_use": _tool_use,
    "server_tool_use": _tool_use,
    "tool_result": _tool_result,
}
_TEXT_KINDS: Final = frozenset({"text", "input_text", "output_text", "refusal"})
_MEDIA_KINDS: Final = frozenset(
    {"image", "image_url", "input_image", "document", "file", "input_file", "input_audio", "audio", "video"}
)


def _item(item: object) -> Iterator[BlockSpec]:
    """Read an entry of a response's input other than a message."""
    kind = name_of(field_of(item, "type"), "")
    call_id = field_of(item, "call_id") or field_of(item, "id")
    if kind in ("function_call", "custom_tool_call"):
        arguments = field_of(item, "arguments" if kind == "function_call" else "input")
        yield call_spec(call_id, field_of(item, "name"), arguments)
    elif kind.endswith("_output"):
        yield from result_specs(call_id, field_of(item, "output"))
    elif kind.endswith("_call"):
        yield call_spec(call_id, kind, json_text(item))
    # Reasoning is encrypted or a summary, and a reference has no text: only the provider's total knows them.
