"""Recordings of what no real recording shows, built as the sources of the formats write them."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

Json = dict[str, Any]


def _lines(*rows: Json) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


_USAGE = {"input_tokens": 100, "output_tokens": 9, "total_tokens": 109, "input_token_details": {"cache_read": 64}}
_CALL = {"name": "weather", "args": {"city": "Ulm"}, "id": "c1", "type": "tool_call"}


def _langchain(name: str, content: object, **more: Any) -> Json:
    path = ["langchain", "schema", "messages", name]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": {"content": content} | more}


def _run(number: int, messages: list[Json], answer: Json) -> Json:
    return {
        "id": f"r{number}",
        "run_type": "llm",
        "trace_id": "t1",
        "start_time": f"2026-01-01T00:00:0{number}",
        "end_time": f"2026-01-01T00:00:0{number}.5",
        "inputs": {"messages": [messages]},
        "error": None,
        "outputs": {"generations": [[{"message": answer}]], "llm_output": {"token_usage": {"prompt_tokens": 3}}},
        "extra": {
            "metadata": {"ls_model_name": "gpt-4o", "thread_id": "x"},
            "invocation_params": {"tools": [{}]},
        },
        "prompt_tokens": 100,
        "completion_tokens": 9,
        "total_cost": "0.5",
        "child_runs": [],
    }


_FIRST = [_langchain("SystemMessage", "be good"), _langchain("HumanMessage", [{"type": "text", "text": "warm?"}])]
_ASKED = _langchain("AIMessage", "", tool_calls=[_CALL], usage_metadata=_USAGE)
_ANSWERED = [*_FIRST, _ASKED, _langchain("ToolMessage", "21", tool_call_id="c1")]
LANGSMITH = json.dumps(
    [_run(1, _FIRST, _ASKED), _run(2, _ANSWERED, _langchain("AIMessage", "21 degrees"))], indent=1
).encode()


def _model_event(number: int, refs: list[list[int]]) -> Json:
    answer = {
        "role": "assistant",
        "content": [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "ok"}],
        "tool_calls": [{"id": f"c{number}", "function": "bash", "arguments": {"cmd": "ls"}}],
    }
    usage = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 112, "input_tokens_cache_read": 100}
    return {
        "event": "model",
        "uuid": f"m{number}",
        "timestamp": f"2026-01-01T00:00:0{number}+00:00",
        "model": "openai/gpt-5",
        "input": [],
        "input_refs": refs,
        "tools": [{"name": "bash"}],
        "output": {"choices": [{"message": answer, "stop_reason": "stop"}], "usage": usage, "time": 0.5},
    }


_SAMPLE = {
    "id": 1,
    "epoch": 1,
    "uuid": "u1",
    "messages": [{"role": "user", "content": "do it"}],
    "message_pool": [
        {"role": "user", "content": "attachment://abc"},
        {"role": "tool", "content": "a", "tool_call_id": "c1"},
    ],
    "attachments": {"abc": "a long task"},
    "events": [_model_event(1, [[0, 1]]), _model_event(2, [[0, 2]])],
}


def _archive() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({"version": 2, "eval": {"task": "shop", "eval_id": "e"}}))
        for number in (1, 2):
            archive.writestr(f"samples/{number}_epoch_1.json", json.dumps(_SAMPLE | {"uuid": f"u{number}"}))
    return packed.getvalue()


def _sdk(kind: str, number: int, **fields: Any) -> Json:
    source = {"ActionEvent": "agent", "MessageEvent": "user"}.get(kind, "environment")
    return {
        "kind": kind,
        "id": f"e{number}",
        "timestamp": f"2026-01-01T00:00:0{number}",
        "source": source,
    } | fields


def _totals(number: int, prompt: int) -> Json:
    usage = {"prompt_tokens": prompt, "completion_tokens": 5, "per_turn_token": 0, "context_window": 200_000}
    metrics = {"accumulated_token_usage": usage, "accumulated_cost": 0.5, "model_name": "m"}
    return _sdk(
        "ConversationStateUpdateEvent", number, key="stats", value={"usage_to_metrics": {"agent": metrics}}
    )


OPENHANDS_SDK = _lines(
    _sdk("SystemPromptEvent", 0, system_prompt={"text": "be good"}, tools=[{"title": "terminal"}]),
    _sdk("MessageEvent", 1, llm_message={"role": "user", "content": [{"type": "text", "text": "start"}]}),
    _totals(2, 100),
    _sdk(
        "ActionEvent",
        3,
        thought=[{"text": "so"}],
        tool_name="terminal",
        tool_call_id="c1",
        llm_response_id="r1",
        tool_call={"arguments": "{}"},
        reasoning_content="hm",
    ),
    _sdk(
        "ObservationEvent", 4, tool_name="terminal", tool_call_id="c1", observation={"content": [{"text": "one"}]}
    ),
    _sdk("Condensation", 5, forgotten_event_ids=["e3", "e4"], summary="did things", llm_response_id="s1"),
    _sdk("AgentErrorEvent", 6, tool_name="terminal", tool_call_id="c1", error="no"),
    _totals(7, 300),
    _sdk("ConversationStateUpdateEvent", 8, key="execution_status", value="finished"),
)


def _event(number: int, source: str = "agent", **fields: Any) -> Json:
    return {"id": number, "timestamp": f"2025-01-01T00:00:0{number}", "source": source} | fields


OPENHANDS = json.dumps(
    [
        _event(0, "user", action="message", args={"content": "start"}),
        _event(1, action="delegate", args={"agent": "Browser", "inputs": {"task": "look"}, "thought": "I ask"}),
        _event(
            2, action="browse", args={"url": "u"}, llm_metrics={"accumulated_token_usage": {"prompt_tokens": 5}}
        ),
        _event(3, "environment", observation="browse", content="page", extras={"image_urls": []}, cause=2),
        _event(4, observation="delegate", content="found it", extras={"outputs": {"a": 1}}, cause=1),
        _event(
            5,
            action="condensation",
            args={"forgotten_events_start_id": 1, "forgotten_events_end_id": 4, "summary": "s"},
        ),
        _event(
            6,
            "environment",
            observation="recall",
            content="",
            extras={"microagent_knowledge": [{"content": "k"}]},
        ),
        _event(7, action="finish", args={"final_thought": "done"}),
    ]
).encode()

_ROW = {
    "id": "call-1",
    "call_type": "acompletion",
    "model": "gpt-4o",
    "session_id": "s",
    "startTime": 1_757_000_000.0,
    "endTime": 1_757_000_000.5,
    "response_cost": 0.25,
    "prompt_tokens": 10,
    "completion_tokens": 2,
    "status": "success",
    "messages": [{"role": "user", "content": "one"}],
    "model_parameters": {"tools": [{"function": {"name": "f"}}]},
    "response": {"id": "r1", "choices": [{"message": {"role": "assistant", "content": "two"}}]},
}
LITELLM = _lines(
    _ROW, _ROW | {"id": "call-2", "messages": "[]", "proxy_server_request": "{}"}, _ROW | {"id": "call-3"}
)

_URI = "https://host/v1beta/models/gemini-2.5-pro:streamGenerateContent"
_ASK = {"role": "user", "parts": [{"text": "how warm?"}, {"inlineData": {"data": "AA=="}}]}
_CALLED = {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": {"city": "Ulm"}}}]}
_RESULT = {"role": "user", "parts": [{"functionResponse": {"name": "weather", "response": {"degrees": 21}}}]}
_COUNTS = {
    "promptTokenCount": 40,
    "candidatesTokenCount": 4,
    "thoughtsTokenCount": 6,
    "cachedContentTokenCount": 16,
}
_CHUNK = json.dumps({"candidates": [{"content": {"parts": [{"text": "21 "}]}}], "usageMetadata": _COUNTS})
GEMINI = json.dumps(
    [
        {
            "request": {
                "uri": _URI,
                "body": {"contents": [_ASK], "tools": [{"functionDeclarations": [{"name": "weather"}]}]},
            },
            "response": {"status": 200, "body": {"candidates": [{"content": _CALLED}], "usageMetadata": _COUNTS}},
        },
        {
            "request": {
                "uri": _URI,
                "body": {"contents": [_ASK, _CALLED, _RESULT], "systemInstruction": {"parts": [{"text": "s"}]}},
            },
            "response": {"status": 200, "body": f"data: {_CHUNK}\r\n\r\ndata: {_CHUNK}\r\n\r\n"},
        },
        {
            "request": {"uri": _URI, "body": {"contents": [_ASK]}},
            "response": {"status": 429, "body": {"error": {"code": 429}}},
        },
    ]
).encode()

AIDER = b"""
# aider chat started at 2026-01-01 10:00:00

> Aider v0.86.1  \n> Main model: claude-sonnet-4-5 with diff edit format  \n
#### make it faster  \n#### and smaller  \n
I will change it.

> Tokens: 12,566 sent, 1.1k cache write, 2.3k cache hit, 84 received. Cost: $0.0019 message, $0.02 all.  \n
#### /clear  \n
#### /ask why?  \n
Because.
"""

BUILT = {
    "langsmith": (".json", LANGSMITH),
    "inspect_ai archive": (".eval", _archive()),
    "inspect_ai pool": (
        ".json",
        json.dumps({"version": 2, "status": "success", "eval": {"task": "t"}, "samples": [_SAMPLE]}).encode(),
    ),
    "openhands sdk": (".jsonl", OPENHANDS_SDK),
    "openhands delegates": (".json", OPENHANDS),
    "litellm proxy": (".jsonl", LITELLM),
    "gemini exchanges": (".json", GEMINI),
    "aider history": (".md", AIDER),
}
"""Name to the suffix and the content of a file."""
