"""One conversation in the shape of every provider: requests, whole and streamed replies, and spans.

A question with an image is answered by a thought, a remark and a tool call; the result of the tool by an answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from windowpane.core.events import Usage
from windowpane.models.wire.calls import Shape

Json = dict[str, Any]

SYSTEM: Final = "You are a careful guide."
QUESTION: Final = "How warm is it in the town of this picture?"
PIXELS: Final = "iVBORw0KGgo="
THOUGHT: Final = "The picture shows Ulm, so I ask for its weather."
REMARK: Final = "I look it up."
RESULT: Final = "Ulm: 21 degrees."
ANSWER: Final = "It is 21 degrees in Ulm."
CALL_ID: Final = "call_0123456789abcdefghijklmn"
ARGUMENTS: Final = {"city": "Ulm", "days": [1, 2]}
PARAMETERS: Final = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOL: Final = {"name": "weather", "description": "Return the weather."}
CACHED, WRITTEN, REASONING = 300, 100, 20
INPUT: Final = 900
"""Tokens of the input with what was read from and written to the cache."""
OUTPUT: Final = 60
"""Tokens of the output with the reasoning."""
MODELS: Final[dict[Shape, str]] = {
    "chat": "gpt-4o", "responses": "gpt-5", "anthropic": "claude-sonnet-4-5", "gemini": "gemini-2.5-pro",
    "converse": "anthropic.claude-sonnet-4-5-v1:0",
}  # fmt: skip
PATHS: Final[dict[Shape, str]] = {
    "chat": "/v1/chat/completions", "responses": "/v1/responses", "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/gemini-2.5-pro:streamGenerateContent",
}  # fmt: skip
DATA: Final = f"data:image/png;base64,{PIXELS}"


@dataclass(frozen=True)
class Step:
    """One call: its request, and its reply as one document and as the events of a stream."""

    request: Json
    whole: Json
    events: list[Json]


def usage_of(shape: Shape) -> Usage:
    """Return the usage of each call."""
    written = 0 if shape == "gemini" else WRITTEN  # Gemini reports no writes
    reasoning = 0 if shape == "converse" else REASONING  # Converse reports no reasoning
    return Usage(INPUT - CACHED - written, OUTPUT, CACHED, written, reasoning)


def steps(shape: Shape) -> list[Step]:
    """Return the calls of the conversation."""
    return _STEPS[shape]()


def tools(shape: Shape) -> list[Json]:
    """Return the tool definitions in the form of *shape*."""
    match shape:
        case "chat":
            return [{"type": "function", "function": {**TOOL, "parameters": PARAMETERS}}]
        case "responses":
            return [{"type": "function", **TOOL, "parameters": PARAMETERS, "strict": False}]
        case "anthropic":
            return [{**TOOL, "input_schema": PARAMETERS}]
        case "converse":
            return [{**TOOL, "inputSchema": {"json": PARAMETERS}}]
    return [{**TOOL, "parameters": PARAMETERS}]


def _halves(text: str) -> tuple[str, str]:
    return text[:5], text[5:]


# -- OpenAI ---------------------------------------------------------------------------------------------------


def _chat() -> list[Step]:
    call = {
        "id": CALL_ID,
        "type": "function",
        "function": {"name": "weather", "arguments": json.dumps(ARGUMENTS)},
    }
    replies = [
        {"role": "assistant", "reasoning_content": THOUGHT, "content": REMARK, "tool_calls": [call]},
        {"role": "assistant", "content": ANSWER},
    ]
    usage = {
        "prompt_tokens": INPUT, "completion_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT,
        "prompt_tokens_details": {"cached_tokens": CACHED, "cache_write_tokens": WRITTEN},
        "completion_tokens_details": {"reasoning_tokens": REASONING},
    }  # fmt: skip
    question = [{"type": "text", "text": QUESTION}, {"type": "image_url", "image_url": {"url": DATA}}]
    first: list[Json] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]
    result = {"role": "tool", "tool_call_id": CALL_ID, "content": RESULT}
    sent = [first, [*first, replies[0], result]]

    def whole(number: int) -> Json:
        choice = {"index": 0, "finish_reason": "stop", "message": replies[number]}
        return {"id": f"chatcmpl-{number}", "model": MODELS["chat"], "choices": [choice], "usage": usage}

    def events(number: int) -> Iterable[Json]:
        common = {"id": f"chatcmpl-{number}", "model": MODELS["chat"]}
        for name in ("reasoning_content", "content"):
            for piece in _halves(replies[number].get(name) or ""):
                yield {**common, "choices": [{"index": 0, "delta": {name: piece}}]}
        for one in replies[number].get("tool_calls", ()):
            start = {**one, "index": 0, "function": {"name": "weather", "arguments": ""}}
            yield {**common, "choices": [{"index": 0, "delta": {"tool_calls": [start]}}]}
            for piece in _halves(one["function"]["arguments"]):
                rest = {"index": 0, "function": {"arguments": piece}}
                yield {**common, "choices": [{"index": 0, "delta": {"tool_calls": [rest]}}]}
        yield {**common, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        yield {**common, "choices": [], "usage": usage}

    body = {"model": MODELS["chat"], "tools": tools("chat")}
    return [Step({**body, "messages": sent[n]}, whole(n), list(events(n))) for n in range(2)]


def _responses() -> list[Step]:
    """Return the calls; reasoning is encrypted, so that its text is in no door."""
    hidden = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "abc"}
    call = {"id": "fc_1", "type": "function_call", "call_id": CALL_ID, "name": "weather",
            "arguments": json.dumps(ARGUMENTS)}  # fmt: skip
    outputs = [[hidden, _output(REMARK, 1), call], [_output(ANSWER, 2)]]
    usage = {
        "input_tokens": INPUT, "output_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT,
        "input_tokens_details": {"cached_tokens": CACHED, "cache_write_tokens": WRITTEN},
        "output_tokens_details": {"reasoning_tokens": REASONING},
    }  # fmt: skip
    content = [{"type": "input_text", "text": QUESTION}, {"type": "input_image", "image_url": DATA}]
    first: list[Json] = [{"role": "user", "content": content}]
    result = {"type": "function_call_output", "call_id": CALL_ID, "output": RESULT}
    sent = [first, [*first, *outputs[0], result]]

    def whole(number: int) -> Json:
        return {"id": f"resp_{number}", "object": "response", "status": "completed", "model": MODELS["responses"],
                "output": outputs[number], "usage": usage}  # fmt: skip

    def events(number: int) -> Iterable[Json]:
        yield {"type": "response.created", "response": {**whole(number), "output": [], "usage": None}}
        for item in outputs[number]:
            yield {"type": "response.output_item.done", "item": item}
        yield {"type": "response.completed", "response": whole(number)}

    body = {"model": MODELS["responses"], "instructions": SYSTEM, "tools": tools("responses")}
    return [Step({**body, "input": sent[n]}, whole(n), list(events(n))) for n in range(2)]


def _output(text: str, number: int) -> Json:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"id": f"msg_{number}", "type": "message", "role": "assistant", "content": content}


# -- Anthropic ------------------------------------------------------------------------------------------------


def _anthropic() -> list[Step]:
    thinking = {"type": "thinking", "thinking": THOUGHT, "signature": "abc"}
    call = {"type": "tool_use", "id": CALL_ID, "name": "weather", "input": ARGUMENTS}
    contents: list[list[Json]] = [
        [thinking, {"type": "text", "text": REMARK}, call], [{"type": "text", "text": ANSWER}],
    ]  # fmt: skip
    usage = {
        "input_tokens": INPUT - CACHED - WRITTEN, "output_tokens": OUTPUT, "cache_read_input_tokens": CACHED,
        "cache_creation_input_tokens": WRITTEN, "output_tokens_details": {"thinking_tokens": REASONING},
    }  # fmt: skip
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXELS}}
    question = [{"type": "text", "text": QUESTION, "cache_control": {"type": "ephemeral"}}, image]
    result = {"type": "tool_result", "tool_use_id": CALL_ID, "content": [{"type": "text", "text": RESULT}]}
    first: list[Json] = [{"role": "user", "content": question}]
    second = [*first, {"role": "assistant", "content": contents[0]}, {"role": "user", "content": [result]}]

    def whole(number: int) -> Json:
        return {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": MODELS["anthropic"],
                "content": contents[number], "stop_reason": "end_turn", "usage": usage}  # fmt: skip

    def events(number: int) -> Iterable[Json]:
        yield {"type": "message_start", "message": {**whole(number), "content": [],
                                                    "usage": {**usage, "output_tokens": 1}}}  # fmt: skip
        for index, block in enumerate(contents[number]):
            empty = {"input": {}} if block["type"] == "tool_use" else {block["type"]: ""}
            yield {"type": "content_block_start", "index": index, "content_block": {**block, **empty}}
            name = "partial_json" if block["type"] == "tool_use" else block["type"]
            text = json.dumps(block["input"]) if block["type"] == "tool_use" else block[block["type"]]
            for piece in _halves(text):
                yield {"type": "content_block_delta", "index": index, "delta": {"type": f"{name}_d", name: piece}}
            yield {"type": "content_block_stop", "index": index}
        yield {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}
        yield {"type": "message_stop"}

    system = [{"type": "text", "text": SYSTEM, "cache_control": {"type": "ephemeral"}}]
    body = {"model": MODELS["anthropic"], "system": system, "tools": tools("anthropic")}
    sent = [first, second]
    return [Step({**body, "messages": sent[n]}, whole(n), list(events(n))) for n in range(2)]


# -- Gemini ---------------------------------------------------------------------------------------------------


def _gemini() -> list[Step]:
    call = {"functionCall": {"id": CALL_ID, "name": "weather", "args": ARGUMENTS}}
    replies: list[list[Json]] = [[{"text": THOUGHT, "thought": True}, {"text": REMARK}, call], [{"text": ANSWER}]]
    usage = {
        "promptTokenCount": INPUT, "candidatesTokenCount": OUTPUT - REASONING, "thoughtsTokenCount": REASONING,
        "cachedContentTokenCount": CACHED, "totalTokenCount": INPUT + OUTPUT,
    }  # fmt: skip
    image = {"inlineData": {"mimeType": "image/png", "data": PIXELS}}
    response = {"id": CALL_ID, "name": "weather", "response": {"result": RESULT}}
    first: list[Json] = [{"role": "user", "parts": [{"text": QUESTION}, image]}]
    second = [*first, {"role": "model", "parts": replies[0]},
              {"role": "user", "parts": [{"functionResponse": response}]}]  # fmt: skip

    def chunk(number: int, parts: list[Json], **more: Any) -> Json:
        candidate = {"content": {"role": "model", "parts": parts}, **more}
        return {"responseId": f"gemini-{number}", "modelVersion": MODELS["gemini"], "candidates": [candidate],
                "usageMetadata": usage}  # fmt: skip

    def events(number: int) -> Iterable[Json]:
        for part in replies[number]:
            pieces = [{**part, "text": piece} for piece in _halves(part["text"])] if "text" in part else [part]
            for piece in pieces:
                yield chunk(number, [piece])
        yield chunk(number, [], finishReason="STOP")

    body = {"systemInstruction": {"parts": [{"text": SYSTEM}]}, "model": MODELS["gemini"],
            "tools": [{"functionDeclarations": tools("gemini")}]}  # fmt: skip
    sent = [first, second]
    return [
        Step({**body, "contents": sent[n]}, chunk(n, replies[n], finishReason="STOP"), list(events(n)))
        for n in range(2)
    ]


# -- Bedrock --------------------------------------------------------------------------------------------------


def _converse() -> list[Step]:
    call = {"toolUse": {"toolUseId": CALL_ID, "name": "weather", "input": ARGUMENTS}}
    thinking = {"reasoningContent": {"reasoningText": {"text": THOUGHT, "signature": "abc"}}}
    contents: list[list[Json]] = [[thinking, {"text": REMARK}, call], [{"text": ANSWER}]]
    usage = {
        "inputTokens": INPUT - CACHED - WRITTEN, "outputTokens": OUTPUT, "totalTokens": INPUT + OUTPUT,
        "cacheReadInputTokens": CACHED, "cacheWriteInputTokens": WRITTEN,
    }  # fmt: skip
    image = {"image": {"format": "png", "source": {"bytes": PIXELS}}}
    result = {"toolResult": {"toolUseId": CALL_ID, "content": [{"text": RESULT}], "status": "success"}}
    first: list[Json] = [
        {"role": "user", "content": [{"text": QUESTION}, image, {"cachePoint": {"type": "default"}}]}
    ]
    second = [*first, {"role": "assistant", "content": contents[0]}, {"role": "user", "content": [result]}]

    def events(number: int) -> Iterable[Json]:
        yield {"messageStart": {"role": "assistant"}}
        for index, part in enumerate(contents[number]):
            if "toolUse" in part:
                start = {"toolUse": {"toolUseId": CALL_ID, "name": "weather"}}
                yield {"contentBlockStart": {"contentBlockIndex": index, "start": start}}
                deltas = [{"toolUse": {"input": piece}} for piece in _halves(json.dumps(ARGUMENTS))]
            elif "text" in part:
                deltas = [{"text": piece} for piece in _halves(part["text"])]
            else:
                deltas = [{"reasoningContent": {"text": piece}} for piece in _halves(THOUGHT)]
                deltas.append({"reasoningContent": {"signature": "abc"}})
            for delta in deltas:
                yield {"contentBlockDelta": {"contentBlockIndex": index, "delta": delta}}
            yield {"contentBlockStop": {"contentBlockIndex": index}}
        yield {"messageStop": {"stopReason": "end_turn"}}
        yield {"metadata": {"usage": usage}}

    sent = [first, second]
    body = {"model": MODELS["converse"], "system": [{"text": SYSTEM}, {"cachePoint": {"type": "default"}}],
            "toolConfig": {"tools": [{"toolSpec": tool} for tool in tools("converse")]}}  # fmt: skip
    return [
        Step(
            {**body, "messages": sent[n]},
            {"output": {"message": {"role": "assistant", "content": contents[n]}}, "usage": usage,
             "stopReason": "end_turn"},
            list(events(n)),
        )
        for n in range(2)
    ]  # fmt: skip


_STEPS: Final = {
    "chat": _chat, "responses": _responses, "anthropic": _anthropic, "gemini": _gemini, "converse": _converse,
}  # fmt: skip


# -- spans ----------------------------------------------------------------------------------------------------


def gen_ai_spans(shape: Shape) -> list[Json]:
    """Return the attributes of the spans of both calls, by OpenTelemetry's conventions."""
    thought = [] if shape == "responses" else [{"type": "reasoning", "content": THOUGHT}]
    call = {"type": "tool_call", "id": CALL_ID, "name": "weather", "arguments": ARGUMENTS}
    replies: list[Json] = [
        {"role": "assistant", "parts": [*thought, {"type": "text", "content": REMARK}, call]},
        {"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]},
    ]
    image = {"type": "blob", "modality": "image", "mime_type": "image/png", "content": PIXELS}
    first: list[Json] = [{"role": "user", "parts": [{"type": "text", "content": QUESTION}, image]}]
    result = {"type": "tool_call_response", "id": CALL_ID, "response": RESULT}
    sent = [first, [*first, replies[0], {"role": "tool", "parts": [result]}]]
    usage = usage_of(shape)
    return [
        {
            "gen_ai.operation.name": "chat", "gen_ai.request.model": MODELS[shape],
            "gen_ai.response.id": f"response-{number}", "gen_ai.conversation.id": f"otlp-{shape}",
            "gen_ai.system_instructions": json.dumps([{"type": "text", "content": SYSTEM}]),
            "gen_ai.tool.definitions": json.dumps(tools(shape)),
            "gen_ai.input.messages": json.dumps(sent[number]),
            "gen_ai.output.messages": json.dumps([replies[number]]),
            "gen_ai.usage.input_tokens": INPUT, "gen_ai.usage.output_tokens": OUTPUT,
            "gen_ai.usage.cache_read.input_tokens": CACHED,
            "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
            "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
        }
        for number in range(2)
    ]  # fmt: skip


def openinference_spans() -> list[Json]:
    """Return the attributes of the spans of both calls, by OpenInference's conventions."""
    called = {"tool_call": {"id": CALL_ID, "function": {"name": "weather", "arguments": json.dumps(ARGUMENTS)}}}
    replies: list[Json] = [
        {"role": "assistant", "tool_calls": [called], "contents": [
            {"message_content": {"type": "reasoning", "text": THOUGHT}},
            {"message_content": {"type": "text", "text": REMARK}},
        ]},
        {"role": "assistant", "content": ANSWER},
    ]  # fmt: skip
    question = [{"message_content": {"type": "text", "text": QUESTION}},
                {"message_content": {"type": "image", "image": {"image": {"url": DATA}}}}]  # fmt: skip
    first: list[Json] = [{"role": "system", "content": SYSTEM}, {"role": "user", "contents": question}]
    sent = [first, [*first, replies[0], {"role": "tool", "tool_call_id": CALL_ID, "content": RESULT}]]
    return [
        {
            "openinference.span.kind": "LLM", "llm.model_name": MODELS["chat"], "session.id": "openinference",
            "llm.tools.0.tool.json_schema": json.dumps(tools("chat")[0]),
            **_flat("llm.input_messages", [{"message": message} for message in sent[number]]),
            **_flat("llm.output_messages", [{"message": replies[number]}]),
            "llm.token_count.prompt": INPUT, "llm.token_count.completion": OUTPUT,
            "llm.token_count.prompt_details.cache_read": CACHED,
            "llm.token_count.prompt_details.cache_write": WRITTEN,
            "llm.token_count.completion_details.reasoning": REASONING,
        }
        for number in range(2)
    ]  # fmt: skip


def vercel_spans() -> list[Json]:
    """Return the attributes of the spans of both calls, by those of the Vercel AI SDK."""
    call = {"toolCallId": CALL_ID, "toolName": "weather", "input": ARGUMENTS}
    replied = [
        {"type": "reasoning", "text": THOUGHT},
        {"type": "text", "text": REMARK},
        {"type": "tool-call", **call},
    ]
    output = {"type": "text", "value": RESULT}
    result = {"type": "tool-result", "toolCallId": CALL_ID, "toolName": "weather", "output": output}
    question = [{"type": "text", "text": QUESTION}, {"type": "file", "mediaType": "image/png", "data": PIXELS}]
    first: list[Json] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]
    sent = [first, [*first, {"role": "assistant", "content": replied}, {"role": "tool", "content": [result]}]]
    replies: list[Json] = [
        {
            "ai.response.reasoning": THOUGHT,
            "ai.response.text": REMARK,
            "ai.response.toolCalls": json.dumps([call]),
        },
        {"ai.response.text": ANSWER},
    ]
    return [
        {
            "ai.operationId": "ai.generateText.doGenerate", "ai.model.id": MODELS["chat"],
            "ai.telemetry.metadata.sessionId": "vercel",
            "ai.prompt.messages": json.dumps(sent[number]), "ai.prompt.tools": [json.dumps(tools("chat")[0])],
            **replies[number],
            "ai.usage.inputTokens": INPUT, "ai.usage.outputTokens": OUTPUT,
            "ai.usage.cachedInputTokens": CACHED, "ai.usage.inputTokenDetails.cacheWriteTokens": WRITTEN,
            "ai.usage.reasoningTokens": REASONING,
        }
        for number in range(2)
    ]  # fmt: skip


def _flat(prefix: str, value: Any) -> Json:
    """Return nested objects as attributes."""
    if not isinstance(value, dict | list):
        return {prefix: value}
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return {name: one for key, item in items for name, one in _flat(f"{prefix}.{key}", item).items()}


# -- transcripts ----------------------------------------------------------------------------------------------


def chat_list() -> Json:
    """Return the conversation as a list of messages, whose replies hold their usage."""
    first, last = steps("chat")
    messages = [*last.request["messages"], last.whole["choices"][0]["message"]]
    usage = first.whole["usage"]
    stated = [{**message, "usage": usage} if message["role"] == "assistant" else message for message in messages]
    return {"model": MODELS["chat"], "tools": tools("chat"), "messages": stated}


def claude_code_rows() -> list[Json]:
    """Return the rows of a transcript of Claude Code."""
    first, last = steps("anthropic")
    question, _, result = last.request["messages"]
    messages = [question, *_one_block_each(first.whole), result, *_one_block_each(last.whole)]
    return [
        {
            "type": message["role"], "sessionId": "s", "uuid": f"u{number}", "cwd": "/work",
            "parentUuid": f"u{number - 1}" if number else None, "timestamp": f"2026-01-01T00:00:{number:02}Z",
            "message": message,
        }
        for number, message in enumerate(messages)
    ]  # fmt: skip


def _one_block_each(reply: Json) -> list[Json]:
    return [{**reply, "content": [block]} for block in reply["content"]]


def codex_rows() -> list[Json]:
    """Return the rows of a rollout of Codex."""
    first, last = steps("responses")
    usage = {
        "input_tokens": INPUT, "cached_input_tokens": CACHED, "cache_write_input_tokens": WRITTEN,
        "output_tokens": OUTPUT, "reasoning_output_tokens": REASONING, "total_tokens": INPUT + OUTPUT,
    }  # fmt: skip
    counts = [
        {"type": "token_count", "info": {"last_token_usage": usage, "total_token_usage": {"input_tokens": sent}}}
        for sent in (1, 2)
    ]
    items = [item for item in last.request["input"] if item.get("type") != "reasoning"]
    items = [{"type": "message", **item} for item in items]
    rows: list[tuple[str, Json]] = [
        ("session_meta", {"id": "s"}), ("turn_context", {"model": MODELS["responses"]}),
        *(("response_item", item) for item in items[:-1]), ("event_msg", counts[0]),
        ("response_item", items[-1]), ("response_item", last.whole["output"][0]), ("event_msg", counts[1]),
    ]  # fmt: skip
    assert first.whole["output"][0]["type"] == "reasoning"
    return [
        {"timestamp": f"2026-01-01T00:00:{number:02}Z", "type": kind, "payload": payload}
        for number, (kind, payload) in enumerate(rows)
    ]


def qwen_rows() -> list[Json]:
    """Return the rows of a session of Qwen Code, which has the shape of Gemini's API."""
    first, last = steps("gemini")
    contents = [*last.request["contents"], last.whole["candidates"][0]["content"]]
    return [
        {
            "uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None, "sessionId": "s",
            "timestamp": f"2026-01-01T00:00:{number:02}Z", "version": "1", "cwd": "/work", "message": content,
            "type": _QWEN_TYPES[number], "model": MODELS["gemini"],
            **({"usageMetadata": first.whole["usageMetadata"]} if content["role"] == "model" else {}),
        }
        for number, content in enumerate(contents)
    ]  # fmt: skip


_QWEN_TYPES: Final = ("user", "assistant", "tool_result", "assistant")


# -- a compaction at the provider -------------------------------------------------------------------------------

SUMMARY: Final = (
    "The user looks for the source of the river Danube; so far only the Breg was examined, at Furtwangen."
)
ENCRYPTED: Final = "gAAAAABo-encrypted-summary-of-the-conversation"
COMPACTION_USAGE: Final = Usage(180_000, 3_500)
"""Tokens of making Anthropic's summary, as the provider's documentation has them."""
COMPACTED_USAGES: Final = (Usage(150_000, 500), Usage(23_000, 1_000), Usage(24_100, 200))
QUESTIONS: Final = (
    "Where does the Danube rise? Examine the Breg first.",
    "Which of the two sources is higher?",
    "And the distance between them?",
)
ANSWERS: Final = ("The Breg rises at Furtwangen, at 1,078 metres.", "The Breg is higher.", "About 20 kilometres.")


def compacted_steps(shape: Shape, *, drops: bool) -> list[Step]:
    """Return three calls, in the second of which the provider compacts the conversation.

    With *drops* the client then sends no longer what was replaced.
    """
    return (_compacted_anthropic if shape == "anthropic" else _compacted_responses)(drops=drops)


def _compacted_anthropic(*, drops: bool) -> list[Step]:
    block = {"type": "compaction", "content": SUMMARY}
    contents: list[list[Json]] = [[{"type": "text", "text": answer}] for answer in ANSWERS]
    contents[1].insert(0, block)
    usages: list[Json] = [
        {"input_tokens": one.input_tokens, "output_tokens": one.output_tokens} for one in COMPACTED_USAGES
    ]
    made = {"input_tokens": COMPACTION_USAGE.input_tokens, "output_tokens": COMPACTION_USAGE.output_tokens}
    usages[1] |= {"iterations": [{"type": "compaction", **made}, {"type": "message", **usages[1]}]}
    sent: list[list[Json]] = [[{"role": "user", "content": QUESTIONS[0]}]]
    for number in (1, 2):
        earlier = [*sent[-1], {"role": "assistant", "content": contents[number - 1]}]
        sent.append(
            [*earlier[-1 if drops and number == 2 else 0 :], {"role": "user", "content": QUESTIONS[number]}]
        )

    def whole(number: int) -> Json:
        return {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": MODELS["anthropic"],
                "content": contents[number], "stop_reason": "end_turn", "usage": usages[number]}  # fmt: skip

    def events(number: int) -> Iterable[Json]:
        start = {key: value for key, value in usages[number].items() if key != "iterations"}
        yield {"type": "message_start", "message": {**whole(number), "content": [], "usage": start}}
        for index, one in enumerate(contents[number]):
            name = "content" if one["type"] == "compaction" else "text"
            yield {"type": "content_block_start", "index": index, "content_block": {**one, name: ""}}
            yield {"type": "content_block_delta", "index": index,
                   "delta": {"type": f"{one['type']}_delta", name: one[name]}}  # fmt: skip
            yield {"type": "content_block_stop", "index": index}
        yield {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usages[number]}

    body = {"model": MODELS["anthropic"], "system": SYSTEM}
    return [Step({**body, "messages": sent[n]}, whole(n), list(events(n))) for n in range(3)]


def _compacted_responses(*, drops: bool) -> list[Step]:
    item = {"id": "cmp_1", "type": "compaction", "encrypted_content": ENCRYPTED}
    outputs: list[list[Json]] = [[_output(answer, number)] for number, answer in enumerate(ANSWERS)]
    outputs[1].insert(0, item)
    sent: list[list[Json]] = [[{"role": "user", "content": QUESTIONS[0]}]]
    for number in (1, 2):
        earlier = [] if drops and number == 2 else sent[-1]
        sent.append([*earlier, *outputs[number - 1], {"role": "user", "content": QUESTIONS[number]}])

    def whole(number: int) -> Json:
        used = COMPACTED_USAGES[number]
        usage = {"input_tokens": used.input_tokens, "output_tokens": used.output_tokens,
                 "input_tokens_details": {"cached_tokens": 0}}  # fmt: skip
        return {"id": f"resp_{number}", "object": "response", "status": "completed", "model": MODELS["responses"],
                "output": outputs[number], "usage": usage}  # fmt: skip

    def events(number: int) -> Iterable[Json]:
        for one in outputs[number]:
            yield {"type": "response.output_item.done", "item": one}
        yield {"type": "response.completed", "response": whole(number)}

    body = {"model": MODELS["responses"], "instructions": SYSTEM}
    return [Step({**body, "input": sent[n]}, whole(n), list(events(n))) for n in range(3)]


def compacted_spans(shape: Shape) -> list[Json]:
    """Return the attributes of the spans of `compacted_steps`, by OpenTelemetry's conventions."""
    summary = (
        {"type": "compaction", "content": SUMMARY} if shape == "anthropic" else {"type": "compaction", "id": "c"}
    )
    replies: list[Json] = [
        {"role": "assistant", "parts": [{"type": "text", "content": answer}]} for answer in ANSWERS
    ]
    replies[1]["parts"].insert(0, summary)
    questions: list[Json] = [{"role": "user", "parts": [{"type": "text", "content": one}]} for one in QUESTIONS]
    sent = [questions[:1], [questions[0], replies[0], questions[1]]]
    sent.append([*sent[1], replies[1], questions[2]])
    return [
        {
            "gen_ai.operation.name": "chat", "gen_ai.request.model": MODELS[shape],
            "gen_ai.response.id": f"response-{number}", "gen_ai.conversation.id": f"compacted-{shape}",
            "gen_ai.system_instructions": json.dumps([{"type": "text", "content": SYSTEM}]),
            "gen_ai.input.messages": json.dumps(sent[number]),
            "gen_ai.output.messages": json.dumps([replies[number]]),
            "gen_ai.usage.input_tokens": used.input_tokens, "gen_ai.usage.output_tokens": used.output_tokens,
            **({"gen_ai.conversation.compacted": "true"} if number else {}),
        }
        for number, used in enumerate(COMPACTED_USAGES)
    ]  # fmt: skip
