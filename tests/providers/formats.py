"""Scripted replies in the wire formats of providers: whole documents, and the events of a stream."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

TEXT = "On it."
USAGE = {"input": 800, "output": 3}
"""Tokens that every reply reports unless its script states others."""


@dataclass(frozen=True)
class Call:
    """A call of a tool by the model."""

    name: str
    arguments: dict[str, Any]
    call_id: str
    namespace: str = ""
    """The group of tools that it is in; only the format of responses has them."""


@dataclass(frozen=True)
class Reply:
    """A reply of the model: a text, calls of tools in parallel, or both."""

    text: str = TEXT
    calls: tuple[Call, ...] = ()
    thinking: str = ""
    input_tokens: int = USAGE["input"]
    cached_tokens: int = 0
    output_tokens: int = USAGE["output"]
    number: int = 1
    """The number of the reply, part of the ids in it."""
    written_tokens: int = 0
    """Input written to the cache; only Anthropic's format reports it."""
    model: str = ""
    """The model that it names; by default one of its format."""
    compaction: str = ""
    """The encrypted summary of a conversation that the provider compacts; only the format of responses has it."""
    identity: str = ""
    """Its id without the prefix, by default its number; ids below 20 characters are not unique."""

    @property
    def id(self) -> str:
        """The id without its prefix."""
        return self.identity or str(self.number)


@dataclass(frozen=True)
class Refusal:
    """An error of the provider instead of a reply."""

    kind: str
    """`overflow` or `rate_limit`."""


Document = dict[str, Any]


def chat(reply: Reply) -> Document:
    message: Document = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        message["tool_calls"] = [_chat_call(call) for call in reply.calls]
    reason = "tool_calls" if reply.calls else "stop"
    return {
        "id": f"chatcmpl-{reply.id}", "object": "chat.completion", "created": 1, "model": reply.model or "gpt-4o",
        "choices": [{"index": 0, "finish_reason": reason, "message": message}], "usage": _chat_usage(reply),
    }  # fmt: skip


def _chat_call(call: Call) -> Document:
    function = {"name": call.name, "arguments": json.dumps(call.arguments)}
    return {"id": call.call_id, "type": "function", "function": function}


def _chat_usage(reply: Reply) -> Document:
    total = reply.input_tokens + reply.output_tokens
    return {"prompt_tokens": reply.input_tokens, "completion_tokens": reply.output_tokens, "total_tokens": total,
            "prompt_tokens_details": {"cached_tokens": reply.cached_tokens}}  # fmt: skip


def chat_events(reply: Reply) -> list[Document]:
    pieces: list[Document] = []
    first, space, rest = reply.text.partition(" ")
    if reply.text:
        pieces += [{"role": "assistant", "content": first + space}, {"content": rest}]
    for index, call in enumerate(reply.calls):
        whole = _chat_call(call)
        function = whole["function"]
        start = {**whole, "index": index, "function": {"name": function["name"], "arguments": ""}}
        pieces += [{"role": "assistant", "tool_calls": [start]}]
        pieces += [{"tool_calls": [{"index": index, "function": {"arguments": function["arguments"]}}]}]
    chunks = [_chunk(reply, piece) for piece in pieces]
    end = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if reply.calls else "stop"}
    usage = _chunk(reply, {}, choices=[], usage=_chat_usage(reply))
    return [*chunks, _chunk(reply, {}, choices=[end]), usage]


def _chunk(reply: Reply, delta: Document, **more: Any) -> Document:
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    return {"id": f"chatcmpl-{reply.id}", "object": "chat.completion.chunk", "created": 1,
            "model": reply.model or "gpt-4o", "choices": [choice]} | more  # fmt: skip


def responses(reply: Reply) -> Document:
    return {
        "id": f"resp_{reply.id}", "object": "response", "created_at": 1, "model": reply.model or "gpt-4o",
        "status": "completed", "output": _response_items(reply),
        "error": None, "incomplete_details": None, "instructions": None, "metadata": {},
        "parallel_tool_calls": False, "previous_response_id": None, "temperature": 1.0, "tools": [], "top_p": 1.0,
        "reasoning": {"effort": None, "summary": None}, "text": {"format": {"type": "text"}},
        "tool_choice": "auto", "max_output_tokens": None, "truncation": "disabled", "user": None,
        "usage": {"input_tokens": reply.input_tokens,
                  "input_tokens_details": {"cached_tokens": reply.cached_tokens},
                  "output_tokens": reply.output_tokens, "output_tokens_details": {"reasoning_tokens": 0},
                  "total_tokens": reply.input_tokens + reply.output_tokens},
    }  # fmt: skip


def _response_items(reply: Reply) -> list[Document]:
    content = [{"type": "output_text", "text": reply.text, "annotations": []}]
    items: list[Document] = []
    if reply.compaction:
        return [{"id": "cmp_1", "type": "compaction", "encrypted_content": reply.compaction}]
    if reply.text:
        items += [
            {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content}
        ]
    return items + [
        {"id": f"fc_{call.call_id}", "type": "function_call", "call_id": call.call_id, "name": call.name,
         "arguments": json.dumps(call.arguments), "status": "completed"}
        | ({"namespace": call.namespace} if call.namespace else {})
        for call in reply.calls
    ]  # fmt: skip


def responses_events(reply: Reply) -> list[Document]:
    whole = responses(reply)
    events: list[Document] = [
        {"type": "response.created", "response": whole | {"status": "in_progress", "output": [], "usage": None}}
    ]
    for index, item in enumerate(whole["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        empty = {"message": {"content": []}, "function_call": {"arguments": ""}}.get(item["type"], {})
        events.append({"type": "response.output_item.added", "output_index": index,
                       "item": item | empty | {"status": "in_progress"}})  # fmt: skip
        if item["type"] == "message":
            part = place | {"content_index": 0, "logprobs": []}
            started = {"type": "output_text", "text": "", "annotations": []}
            events += [
                part | {"type": "response.content_part.added", "part": started},
                part | {"type": "response.output_text.delta", "delta": reply.text},
                part | {"type": "response.output_text.done", "text": reply.text},
            ]
        elif item["type"] == "function_call":
            arguments = item["arguments"]
            events += [
                place | {"type": "response.function_call_arguments.delta", "delta": arguments},
                place | {"type": "response.function_call_arguments.done", "arguments": arguments,
                         "name": item["name"]},
            ]  # fmt: skip
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": whole})
    return [event | {"sequence_number": number} for number, event in enumerate(events)]


def messages(reply: Reply) -> Document:
    content: list[Document] = []
    if reply.thinking:
        content.append({"type": "thinking", "thinking": reply.thinking, "signature": "c2ln"})
    if reply.text:
        content.append({"type": "text", "text": reply.text})
    content += [{"type": "tool_use", "id": call.call_id, "name": call.name, "input": call.arguments}
                for call in reply.calls]  # fmt: skip
    return {
        "id": f"msg_{reply.id}", "type": "message", "role": "assistant",
        "model": reply.model or "claude-of-tests",
        "stop_reason": "tool_use" if reply.calls else "end_turn", "stop_sequence": None, "content": content,
        "usage": {"input_tokens": reply.input_tokens - reply.cached_tokens - reply.written_tokens,
                  "output_tokens": reply.output_tokens, "cache_read_input_tokens": reply.cached_tokens,
                  "cache_creation_input_tokens": reply.written_tokens},
    }  # fmt: skip


def messages_events(reply: Reply) -> list[Document]:
    whole = messages(reply)
    events: list[Document] = [{"type": "message_start", "message": whole | {"content": [], "stop_reason": None}}]
    for index, block in enumerate(whole["content"]):
        start, deltas = _streamed_block(block)
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    usage = {"output_tokens": reply.output_tokens}
    return [*events, {"type": "message_delta", "delta": delta, "usage": usage}, {"type": "message_stop"}]


def _streamed_block(block: Document) -> tuple[Document, list[Document]]:
    if block["type"] == "text":
        return block | {"text": ""}, [{"type": "text_delta", "text": block["text"]}]
    if block["type"] == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": block["thinking"]},
                  {"type": "signature_delta", "signature": block["signature"]}]  # fmt: skip
        return block | {"thinking": "", "signature": ""}, deltas
    delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    return block | {"input": {}}, [delta]


def gemini(reply: Reply) -> Document:
    parts: list[Document] = [{"text": reply.thinking, "thought": True}] if reply.thinking else []
    parts += [{"text": reply.text}] if reply.text else []
    parts += [{"functionCall": {"name": call.name, "args": call.arguments}} for call in reply.calls]
    return _gemini_chunk(reply, parts)


def gemini_events(reply: Reply) -> list[Document]:
    parts = gemini(reply)["candidates"][0]["content"]["parts"]
    pieces: list[Document] = []
    for part in parts:
        first, space, rest = part.get("text", "").partition(" ")
        pieces += [part | {"text": first + space}, part | {"text": rest}] if rest else [part]
    return [_gemini_chunk(reply, [piece]) for piece in pieces]


def _gemini_chunk(reply: Reply, parts: list[Document]) -> Document:
    thoughts = 7 if reply.thinking else 0
    usage = {"promptTokenCount": reply.input_tokens, "candidatesTokenCount": reply.output_tokens,
             "totalTokenCount": reply.input_tokens + reply.output_tokens + thoughts,
             "cachedContentTokenCount": reply.cached_tokens, "thoughtsTokenCount": thoughts}  # fmt: skip
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {name: count for name, count in usage.items() if count},
        "modelVersion": reply.model or "gemini-2.5-flash", "responseId": f"r{reply.id}",
    }  # fmt: skip


def converse(reply: Reply) -> Document:
    content: list[Document] = []
    if reply.thinking:
        content.append({"reasoningContent": {"reasoningText": {"text": reply.thinking, "signature": "c2ln"}}})
    content += [{"text": reply.text}] if reply.text else []
    content += [{"toolUse": {"toolUseId": call.call_id, "name": call.name, "input": call.arguments}}
                for call in reply.calls]  # fmt: skip
    return {
        "output": {"message": {"role": "assistant", "content": content}}, "metrics": {"latencyMs": 5},
        "stopReason": "tool_use" if reply.calls else "end_turn", "usage": _converse_usage(reply),
    }  # fmt: skip


def _converse_usage(reply: Reply) -> Document:
    fresh = reply.input_tokens - reply.cached_tokens
    return {"inputTokens": fresh, "outputTokens": reply.output_tokens, "cacheWriteInputTokens": 0,
            "cacheReadInputTokens": reply.cached_tokens,
            "totalTokens": reply.input_tokens + reply.output_tokens}  # fmt: skip


def converse_events(reply: Reply) -> list[Document]:
    """Return the events, each as its name and its fields."""
    whole = converse(reply)
    events: list[Document] = [{"messageStart": {"role": "assistant"}}]
    for index, block in enumerate(whole["output"]["message"]["content"]):
        at = {"contentBlockIndex": index}
        deltas: list[Document] = []
        if "toolUse" in block:
            call = dict(block["toolUse"])
            deltas = [{"toolUse": {"input": json.dumps(call.pop("input"))}}]
            events.append({"contentBlockStart": at | {"start": {"toolUse": call}}})
        elif "text" in block:
            first, space, rest = block["text"].partition(" ")
            deltas = [{"text": first + space}, {"text": rest}]
        else:
            reasoning = block["reasoningContent"]["reasoningText"]
            deltas = [{"reasoningContent": {name: value}} for name, value in reasoning.items()]
        events += [{"contentBlockDelta": at | {"delta": delta}} for delta in deltas]
        events.append({"contentBlockStop": at})
    return [*events, {"messageStop": {"stopReason": whole["stopReason"]}},
            {"metadata": {"usage": whole["usage"], "metrics": {"latencyMs": 5}}}]  # fmt: skip


def invoke_events(reply: Reply) -> list[Document]:
    """Return the events of Anthropic's format as Bedrock passes them on."""
    return [
        {"chunk": {"bytes": base64.b64encode(json.dumps(event).encode()).decode()}}
        for event in messages_events(reply)
    ]


DOCUMENTS: dict[str, Callable[[Reply], Document]] = {
    "chat": chat, "responses": responses, "messages": messages, "gemini": gemini, "converse": converse,
    "invoke": messages,
}  # fmt: skip
EVENTS: dict[str, Callable[[Reply], list[Document]]] = {
    "chat": chat_events, "responses": responses_events, "messages": messages_events, "gemini": gemini_events,
    "converse": converse_events, "invoke": invoke_events,
}  # fmt: skip

_OVERFLOWS = {
    "chat": "This model's maximum context length is 128000 tokens. Your messages resulted in 130000 tokens.",
    "messages": "prompt is too long: 210000 tokens > 200000 maximum",
    "gemini": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "converse": "Input is too long for requested model.",
}


def refusal(shape: str, kind: str) -> tuple[int, Document, dict[str, str]]:
    """Return the status, document and headers of an error."""
    overflow = kind == "overflow"
    status = 400 if overflow else 429
    family = {"responses": "chat", "invoke": "converse"}.get(shape, shape)
    message = _OVERFLOWS[family] if overflow else "Rate limit reached. Try again."
    if family == "chat":
        code = "context_length_exceeded" if overflow else "rate_limit_exceeded"
        return status, {"error": {"message": message, "type": "invalid_request_error", "code": code}}, {}
    if family == "messages":
        name = "invalid_request_error" if overflow else "rate_limit_error"
        return status, {"type": "error", "error": {"type": name, "message": message}}, {}
    if family == "gemini":
        name = "INVALID_ARGUMENT" if overflow else "RESOURCE_EXHAUSTED"
        return status, {"error": {"code": status, "message": message, "status": name}}, {}
    name = "ValidationException" if overflow else "ThrottlingException"
    return status, {"message": message}, {"x-amzn-errortype": name}


CHAT, RESPONSE = chat(Reply()), responses(Reply())
MESSAGE = messages(Reply(cached_tokens=700))
STREAMS = {"chat": chat_events(Reply()), "responses": responses_events(Reply()),
           "messages": messages_events(Reply(cached_tokens=700))}  # fmt: skip
"""Replies without a script."""
