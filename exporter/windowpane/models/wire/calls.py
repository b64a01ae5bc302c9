"""Model calls in the shape of any provider: what they send, as blocks, and their replies, whole or streamed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from windowpane.core.fast_dataclass import FastDataclass
from windowpane.models.wire import anthropic, chat, converse, gemini, responses
from windowpane.models.wire.messages import BlockSpec, field_of, text_specs, texts_of, tool_spec
from windowpane.models.wire.replies import Reply, ReplyAssembler, ReplyPart, raise_for_error

Shape = Literal["chat", "responses", "anthropic", "gemini", "converse"]
"""OpenAI chat completions, OpenAI responses, Anthropic messages, Gemini's generateContent, Bedrock's Converse."""

MESSAGES_FIELD: Final[dict[Shape, str]] = {
    "chat": "messages", "responses": "input", "anthropic": "messages", "gemini": "contents",
    "converse": "messages",
}  # fmt: skip


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
    is_compacted: bool = False
    """The messages are those of a compacted conversation, by whom reports them."""


def parse_call(shape: Shape, body: Mapping[str, Any]) -> ApiCall:
    """Return the call that *body* requests, whose messages are text or a list."""
    messages = sent_messages(shape, body)
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}] if shape != "gemini" else [messages]
    if shape == "gemini":
        messages = gemini.joined_contents(messages)
    model = body.get("model")
    system, tools = _HEADS[shape](body)
    return ApiCall(
        shape,
        model if isinstance(model, str) else "",
        messages,
        _text_or_list(system),
        _text_or_list(tools),
        responses.continues(body) if shape == "responses" else None,
        body.get("stream") is True,
    )


def sent_messages(shape: Shape, body: Mapping[str, Any]) -> Any:
    """Return the messages of *body*; none where a request, such as for a compaction, names a stored response."""
    messages = body.get(MESSAGES_FIELD[shape])
    return () if messages is None and shape == "responses" and responses.continues(body) else messages


def _text_or_list(value: Any) -> Any:
    """Return text or a list of parts; None for a client's marker for *not given* or an iterator."""
    return value if isinstance(value, str | list | tuple) else None


def head_blocks(call: ApiCall) -> list[BlockSpec]:
    """Return the blocks of the system prompt and tool definitions that are sent beside the messages."""
    return [
        *(spec for text in texts_of(call.system) for spec in text_specs("system_prompt", text)),
        *(tool_spec(tool) for tool in call.tools or ()),
    ]


def message_blocks(shape: Shape, message: object) -> list[BlockSpec]:
    """Return the blocks of one message."""
    return list(MESSAGE_READERS[shape](message))


def is_system(message: object) -> bool:
    """Return whether *message* is a system prompt."""
    role = message.get("role") if type(message) is dict else field_of(message, "role")  # most are dictionaries
    return role in ("system", "developer")


def read_whole(reply: object, shape: Shape) -> Reply:
    """Return a reply that came whole. Raises `FailedReplyError` where it reports an error instead of content."""
    if isinstance(reply, Reply):
        return reply
    raise_for_error(reply)
    if shape == "gemini":
        return gemini.read_chunks([reply])
    return converse.read_reply(reply) if shape == "converse" else read_reply(reply)


def read_reply(reply: object) -> Reply:
    """Return a reply of OpenAI or Anthropic, whose fields show the shape. Raises `TypeError` for any other."""
    if isinstance(reply, Reply):
        return reply
    if isinstance(reply, str):
        return Reply((ReplyPart("assistant_response", reply),)) if reply else Reply()
    if field_of(reply, "choices"):
        return chat.read_reply(reply)
    if isinstance(field_of(reply, "output"), list | tuple):
        return responses.read_reply(reply)
    if field_of(reply, "role") == "assistant" or field_of(reply, "type") == "message":
        if isinstance(field_of(reply, "content"), list | tuple) and field_of(reply, "tool_calls") is None:
            return anthropic.read_reply(reply)
        return chat.read_message(reply, reply)
    raise TypeError(
        f"expected a reply of a chat completion, response or messages call, got {type(reply).__name__}"
    )


def read_events(shape: Shape, events: Iterable[object]) -> Reply:
    """Return the reply in *events*, which may end early. Raises `FailedReplyError` for an error among them."""
    return _STREAMS[shape](_without_errors(events))


def _without_errors(events: Iterable[object]) -> Iterator[object]:
    for event in events:
        raise_for_error(field_of(event, "response") if field_of(event, "type") == "response.failed" else event)
        yield event


def _assembled(events: Iterable[object], assembler: ReplyAssembler) -> Reply:
    for event in events:
        assembler.add(event)
    return assembler.reply()


_HEADS: Final[dict[Shape, Callable[[Mapping[str, Any]], tuple[Any, Any]]]] = {
    "chat": chat.head,
    "responses": responses.head,
    "anthropic": anthropic.head,
    "gemini": gemini.head,
    "converse": converse.head,
}
MESSAGE_READERS: Final[dict[Shape, Callable[[object], Iterable[BlockSpec]]]] = {
    "chat": chat.message_blocks,
    "responses": responses.item_blocks,
    "anthropic": anthropic.message_blocks,
    "gemini": gemini.content_blocks,
    "converse": converse.message_blocks,
}
"""The readers that yield the blocks of one message, by shape."""
_STREAMS: Final[dict[Shape, Callable[[Iterable[object]], Reply]]] = {
    "chat": lambda events: _assembled(events, chat.ChatAssembler()),
    "responses": lambda events: _assembled(events, responses.ResponsesAssembler()),
    "anthropic": lambda events: _assembled(events, anthropic.AnthropicAssembler()),
    "gemini": gemini.read_chunks,
    "converse": converse.read_events,
}
