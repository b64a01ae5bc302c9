"""The messages that agents send, in the shapes of OpenAI and Anthropic, read as blocks.

Pure and duck-typed: messages may be dictionaries or objects of the clients, and nothing of a provider's library
is imported. Markers that change nothing the model sees, such as `cache_control`, are not part of a block.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from windowpane.core.vocabulary import ContentType
from windowpane.models.replies import Reply

Shape = Literal["chat", "responses", "anthropic"]
"""OpenAI chat completions, OpenAI responses, Anthropic messages."""

SENDS_OWN_MESSAGES: Final[frozenset[Shape]] = frozenset({"anthropic"})
"""Shapes whose client sends the agent's own dictionaries. The client of the others sends copies of them."""
_MESSAGES_FIELD: Final[dict[Shape, str]] = {"chat": "messages", "responses": "input", "anthropic": "messages"}


class Key(NamedTuple):
    """The identity of a piece of content: a tool call's id where it has one, else the text."""

    content_type: ContentType
    name: str


@dataclass(frozen=True, slots=True)
class BlockSpec:
    """One piece of content as it was sent."""

    content_type: ContentType
    text: str | None
    key: Key
    tool_call_id: str | None = None
    tool_name: str | None = None
    media: int = 0
    """Images or documents in it, counted at a flat rate each; their bytes are never counted as text."""


@dataclass(frozen=True, slots=True)
class ApiCall:
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
        messages = [{"role": "user", "content": messages}]
    model = body.get("model")
    continues = None
    if shape == "responses":
        conversation = body.get("conversation")
        continues = body.get("previous_response_id") or field_of(conversation, "id") or conversation
    system = {"chat": None, "responses": "instructions", "anthropic": "system"}[shape]
    return ApiCall(
        shape,
        model if isinstance(model, str) else "",
        messages,
        None if system is None else _text_or_list(body.get(system)),
        _text_or_list(body.get("tools")),
        continues if isinstance(continues, str) else None,
        body.get("stream") is True,
    )


def head_blocks(call: ApiCall) -> list[BlockSpec]:
    """Return the blocks of the system prompt and tool definitions that are sent beside the messages."""
    return [
        *(spec for text in _texts(call.system) for spec in _text("system_prompt", text)),
        *(_tool(tool) for tool in call.tools or ()),
    ]


def message_blocks(shape: Shape, message: object) -> list[BlockSpec]:
    """Return the blocks of one message."""
    if shape == "responses" and field_of(message, "type") not in (None, "message"):
        return list(_item(message))
    role = str(field_of(message, "role") or "user")
    content = field_of(message, "content")
    specs: list[BlockSpec] = []
    if role in ("tool", "function"):
        name = field_of(message, "tool_call_id") or field_of(message, "name")
        specs += _result(name, content, tool_name=field_of(message, "name"))
    else:
        specs += [
            spec for part in _parts(content) for spec in _part(_TYPE_OF_ROLE.get(role, "user_message"), part)
        ]
    for call in items_of(message, "tool_calls"):
        function = field_of(call, "function") or field_of(call, "custom")
        arguments = field_of(function, "arguments")
        if arguments is None:
            arguments = field_of(function, "input")
        specs.append(_call(field_of(call, "id"), field_of(function, "name"), arguments))
    if field_of(message, "refusal"):
        specs += _text("assistant_response", field_of(message, "refusal"))
    return specs


def reply_blocks(reply: Reply) -> list[BlockSpec]:
    """Return the blocks of a model's reply, with the keys they will have when they are sent back."""
    specs: list[BlockSpec] = []
    for part in reply.parts:
        if part.kind == "tool_call":
            specs.append(_call(part.tool_call_id, part.tool_name, part.text))
        else:
            specs += _text(part.kind, part.text)
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


def canonical_json(text: str | None) -> str | None:
    """Return JSON with sorted keys and no spaces; other text unchanged."""
    try:
        return json.dumps(json.loads(text or "{}"), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError):
        return text


def copy_structure(value: Any) -> Any:
    """Return a copy of a message that shares its texts, so that later edits in place are noticed."""
    if isinstance(value, dict):
        return {key: copy_structure(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [copy_structure(item) for item in value]
    return value


def field_of(value: object, name: str) -> Any:
    """Return a field of a dictionary or of an object; None where it has no such field."""
    if isinstance(value, dict) or isinstance(value, Mapping):  # noqa: SIM101  # the check of a dict is much faster
        return value.get(name)
    return getattr(value, name, None)


def is_system(message: object) -> bool:
    """Return whether *message* is a system prompt."""
    return field_of(message, "role") in ("system", "developer")


_TYPE_OF_ROLE: Final[dict[str, ContentType]] = {
    "system": "system_prompt",
    "developer": "system_prompt",
    "assistant": "assistant_response",
}


def items_of(value: object, name: str) -> Sequence[Any]:
    """Return the items of a field that holds a list; none where it holds anything else, such as a text."""
    items = field_of(value, name)
    return items if isinstance(items, list | tuple) else ()


def _text_or_list(value: Any) -> Any:
    """Return text or a list of parts; None for a client's marker for *not given* or an iterator."""
    return value if isinstance(value, str | list | tuple) else None


def _parts(content: Any) -> Sequence[Any]:
    if content is None:
        return ()
    return content if isinstance(content, list | tuple) else (content,)


def _texts(content: Any) -> Iterator[str]:
    for part in _parts(content):
        text = part if isinstance(part, str) else field_of(part, "text")
        if isinstance(text, str):
            yield text


def _text(content_type: ContentType, text: object) -> Iterator[BlockSpec]:
    if isinstance(text, str) and text.strip():
        yield BlockSpec(content_type, text, Key(content_type, text.strip()))


def _part(content_type: ContentType, part: object) -> Iterator[BlockSpec]:
    """Read one part of a message's content, in either provider's shape."""
    if isinstance(part, str):
        yield from _text(content_type, part)
        return
    kind = str(field_of(part, "type") or "text")
    reader = _READERS.get(kind)
    if reader is not None:
        yield from reader(part)
    elif kind in _TEXT_KINDS:
        yield from _text(content_type, field_of(part, "text") or field_of(part, "refusal"))
    elif kind.endswith("_tool_result"):
        yield from _result(field_of(part, "tool_use_id"), field_of(part, "content"))
    elif kind in _MEDIA_KINDS:
        yield BlockSpec("media", None, Key("media", _json(part)), media=1)
    else:
        yield from _text(content_type, _json(part))


def _thinking(part: object) -> Iterator[BlockSpec]:
    return _text("thinking", field_of(part, "thinking") or field_of(part, "data"))


def _tool_use(part: object) -> Iterator[BlockSpec]:
    yield _call(field_of(part, "id"), field_of(part, "name"), field_of(part, "input"))


def _tool_result(part: object) -> Iterator[BlockSpec]:
    return _result(field_of(part, "tool_use_id"), field_of(part, "content"))


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
_RESULT_MEDIA: Final = frozenset({"image", "document", "input_image", "image_url", "input_file"})


def _item(item: object) -> Iterator[BlockSpec]:
    """Read an entry of a response's input other than a message."""
    kind = str(field_of(item, "type"))
    call_id = field_of(item, "call_id") or field_of(item, "id")
    if kind in ("function_call", "custom_tool_call"):
        arguments = field_of(item, "arguments" if kind == "function_call" else "input")
        yield _call(call_id, field_of(item, "name"), arguments)
    elif kind.endswith("_output"):
        yield from _result(call_id, field_of(item, "output"))
    elif kind.endswith("_call"):
        yield _call(call_id, kind, _json(item))
    # Reasoning is encrypted or a summary, and a reference has no text: only the provider's total knows them.


def _result(call_id: object, content: Any, *, tool_name: object = None) -> Iterator[BlockSpec]:
    media = sum(
        str(field_of(part, "type")) in _RESULT_MEDIA for part in _parts(content) if not isinstance(part, str)
    )
    text = content if isinstance(content, str) else "".join(_texts(content))
    if not text and not media and content and not isinstance(content, str):
        text = _json(content)
    name = None if call_id is None else str(call_id)
    yield BlockSpec(
        "tool_result",
        text,
        Key("tool_result", text if name is None else name),
        name,
        tool_name if isinstance(tool_name, str) else None,
        media,
    )


def _call(call_id: object, name: object, arguments: object) -> BlockSpec:
    text = arguments if isinstance(arguments, str) else _json(arguments or {})
    tool_name = str(name or "")
    tool_call_id = None if call_id is None else str(call_id)
    key = Key("tool_call", tool_call_id or f"{tool_name}\0{text}")
    return BlockSpec("tool_call", text, key, tool_call_id, tool_name)


def _tool(tool: object) -> BlockSpec:
    definition = field_of(tool, "function") or tool
    name = str(field_of(definition, "name") or field_of(tool, "type") or "")
    return BlockSpec("tool_definition", _json(tool), Key("tool_definition", name), tool_name=name or None)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: object) -> object:
    dump = getattr(value, "model_dump", None)
    return dump(exclude_none=True) if callable(dump) else str(value)
