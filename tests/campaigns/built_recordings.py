"""Small recordings of what no real recording shows, built after the source of the agents that write them."""

from __future__ import annotations

import io
import json
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

Json = dict[str, Any]
AT = 1_770_000_000_000
ISO = "2026-02-02T02:40:00Z"


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


def _generation(number: int, sent: list[Json], output: object, **more: Any) -> Json:
    return {
        "id": f"g{number}", "traceId": "t1", "sessionId": "s1", "type": "GENERATION", "projectId": "p",
        "startTime": f"2026-01-01T00:00:0{number}.000Z", "endTime": f"2026-01-01T00:00:0{number}.500Z",
        "parentObservationId": None, "model": "gpt-4o", "input": sent, "output": output,
        "usageDetails": {"input": 100, "input_cached_tokens": 90, "output": 5, "total": 105},
    } | more  # fmt: skip


_ONE = {"role": "user", "content": "one"}
_TWO = {"role": "assistant", "content": None, "tool_calls": [
    {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a"}'}}]}  # fmt: skip
_THREE = {"role": "tool", "tool_call_id": "c1", "content": "done"}
LANGFUSE = json.dumps([
    _generation(1, [_ONE], _TWO, totalCost=0.5),
    _generation(2, [_ONE, _TWO, _THREE], {"role": "assistant", "content": "ok"}),
    _generation(3, [_ONE], None, level="ERROR", statusMessage="rate limit"),
    {"id": "o1", "traceId": "t1", "type": "SPAN", "projectId": "p", "startTime": "2026-01-01T00:00:00.000Z"},
]).encode()  # fmt: skip


def _openclaw_database() -> bytes:
    """Return a database of OpenClaw with one session."""
    reply = {"role": "assistant", "model": "m", "content": [{"type": "text", "text": "ok"}],
             "usage": {"input": 10, "output": 5, "cacheRead": 90, "cacheWrite": 0}}  # fmt: skip
    entries: list[Json] = [
        {"type": "session", "version": 3, "id": "s", "timestamp": ISO, "cwd": "/work"},
        {"type": "message", "id": "a", "parentId": None, "message": {"role": "user", "content": "go"}},
        {"type": "message", "id": "b", "parentId": "a", "message": reply},
    ]
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute(
            "CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, event_zstd BLOB, "
            "created_at INTEGER, PRIMARY KEY (session_id, seq))"
        )
        for number, entry in enumerate(entries):
            row = ("s", number, json.dumps(entry), None, AT + number)
            connection.execute("INSERT INTO transcript_events VALUES (?, ?, ?, ?, ?)", row)
        return connection.serialize()


BUILT = {
    "langfuse": (".json", LANGFUSE),
    "openclaw database": (".sqlite", _openclaw_database()),
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


def _text(written: str) -> Json:
    return {"type": "text", "text": written}


def gemini_rows() -> list[Json]:
    """Return the rows of a session of Gemini CLI with tool calls, a rewind and a compression."""
    answer = [{"functionResponse": {"id": "c1", "name": "read", "response": {"output": "done"}}}]
    call = {
        "id": "c1",
        "name": "read",
        "args": {"path": "a"},
        "result": answer,
        "agentId": "s2",
        "timestamp": ISO,
    }
    tokens = {"input": 100, "output": 10, "cached": 40, "thoughts": 5, "tool": 0, "total": 115}
    reply = {
        "id": "b",
        "type": "gemini",
        "timestamp": ISO,
        "content": "ok",
        "tokens": tokens,
        "model": "gemini-3-pro",
    }
    thought = {"subject": "Look", "description": "at it"}
    snapshot = [{"text": "<state_snapshot>it</state_snapshot>"}, {"inlineData": {"mimeType": "image/png"}}]
    return [
        {"sessionId": "s1", "projectHash": "h", "startTime": ISO, "kind": "main", "directories": ["/work"]},
        {"id": "a", "type": "user", "timestamp": ISO, "content": [{"text": "go"}]},
        reply,
        reply | {"toolCalls": [call], "thoughts": [thought]},
        {"$set": {"lastUpdated": ISO, "summary": "Title"}},
        {"id": "c", "type": "user", "timestamp": ISO, "content": answer},
        {"$rewindTo": "c"},
        {"$set": {"messages": [{"id": "z", "type": "user", "content": snapshot}, reply]}},
    ]


def qwen_rows() -> list[Json]:
    """Return the rows of a session of Qwen Code with a compression, a title and a sub-agent."""
    common = {"sessionId": "s1", "timestamp": ISO, "cwd": "/work", "version": "0.15", "gitBranch": "main"}
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 20, "thoughtsTokenCount": 8, "totalTokenCount": 128}
    calls = [{"text": "hm", "thought": True}, {"functionCall": {"id": "c1", "name": "read", "args": {}}}]
    answer = {"functionResponse": {"id": "c1", "name": "read", "response": {"output": "done"}}}
    history = [{"role": "user", "parts": [{"text": "it"}]}]
    compressed = {"info": {"originalTokenCount": 900, "newTokenCount": 90}, "compressedHistory": history}
    rows: list[Json] = [
        {"type": "user", "message": {"role": "user", "parts": [{"text": "go"}]}},
        {"type": "assistant", "message": {"parts": calls}, "model": "q", "usageMetadata": usage,
         "contextWindowSize": 1_000},
        {"type": "tool_result", "message": {"role": "user", "parts": [answer]}},
        {"type": "system", "subtype": "chat_compression", "systemPayload": compressed},
        {"type": "system", "subtype": "custom_title", "systemPayload": {"customTitle": "T"}},
        {"type": "user", "message": {"parts": [{"text": "look"}]}, "isSidechain": True, "agentId": "a1"},
        {"type": "user", "message": {"parts": [{"text": "again"}]}, "parentUuid": "u0"},
    ]  # fmt: skip
    links = [{"uuid": f"u{n}", "parentUuid": f"u{n - 1}" if n else None} for n in range(len(rows))]
    return [common | link | row for link, row in zip(links, rows, strict=True)]


def goose_rows() -> list[Json]:
    """Return a line of metadata and the messages of a session of Goose, one of them a summary."""
    request = {"type": "toolRequest", "id": "t1", "toolCall": {"status": "success", "value": {"name": "shell"}}}
    result = {"status": "success", "value": {"content": [_text("done"), {"type": "image"}]}}
    hidden, injected = {"agentVisible": False}, {"userVisible": False}
    messages: list[tuple[str, list[Json], Json]] = [
        ("user", [_text("go"), {"type": "image"}], hidden),
        ("assistant", [{"type": "thinking", "thinking": "hm"}, request], hidden),
        ("user", [{"type": "toolResponse", "id": "t1", "toolResult": result}], hidden),
        ("user", [_text("it")], injected),
        ("assistant", [_text("Your context was compacted. The")], injected),
        ("assistant", [_text("more"), {"type": "systemNotification"}], {}),
    ]
    rows = [
        {"role": role, "created": AT // 1_000, "content": content, "metadata": metadata}
        for role, content, metadata in messages
    ]
    return [{"working_dir": "/work", "description": "Title"}, *rows]


def cline_files() -> dict[str, Any]:
    """Return the files of a task of Cline, with Roo Code's marks as well."""
    use = {"type": "tool_use", "id": "t1", "name": "read_file", "input": {"path": "a"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [_text("done"), {"type": "image"}]}
    request = json.dumps({"tokensIn": 10, "tokensOut": 5, "cacheReads": 90, "cacheWrites": 1, "cost": 0.5})
    sizes = {"prevContextTokens": 900, "newContextTokens": 90, "condenseId": "c1"}
    return {
        "api_conversation_history.json": [
            {"role": "user", "content": [_text("go"), _text("<environment_details><model>m</model>")], "ts": AT},
            {"role": "assistant", "content": [use], "ts": AT + 2, "condenseParent": "c1"},
            {"role": "user", "content": [result], "ts": AT + 3, "truncationParent": "t1"},
            {"role": "assistant", "content": [_text("it")], "isSummary": True, "condenseId": "c1"},
            {"role": "user", "content": "cut", "isTruncationMarker": True, "truncationId": "t1", "ts": AT + 4},
            {"role": "assistant", "type": "reasoning", "summary": [_text("hm")], "ts": AT + 5},
            {"role": "assistant", "content": "ok", "modelInfo": {"modelId": "m"}, "ts": AT + 6},
        ],
        "ui_messages.json": [
            {"ts": AT + 1, "say": "api_req_started", "text": request, "conversationHistoryIndex": -1,
             "conversationHistoryDeletedRange": [1, 2]},
            {"ts": AT + 3, "say": "condense_context", "contextCondense": sizes},
        ],
        "task_metadata.json": {"model_usage": [{"ts": AT, "model_id": "m"}],
                               "environment_history": [{"cline_version": "3"}]},
        "history_item.json": {"parentTaskId": "root", "workspace": "/work"},
    }  # fmt: skip


def opencode_document() -> Json:
    """Return an export with pruned outputs, a compaction and a reverted message."""
    tokens = {"total": 120, "input": 100, "output": 20, "reasoning": 5, "cache": {"read": 0, "write": 0}}
    time = {"start": AT, "end": AT, "compacted": AT + 5}
    state = {
        "status": "completed",
        "input": {"a": 1},
        "output": "done",
        "time": time,
        "metadata": {"sessionId": "s"},
    }
    steps = [
        {"type": "step-start"}, {"type": "reasoning", "text": "hm", "time": {"start": AT, "end": AT}},
        {"type": "tool", "callID": "c1", "tool": "task", "state": state},
        {"type": "tool", "callID": "c1", "tool": "bash", "state": {"status": "error", "error": "no"}},
        {"type": "step-finish", "reason": "stop", "tokens": tokens, "cost": 0.5},
    ]  # fmt: skip
    reply = {"role": "assistant", "modelID": "gpt-5", "tokens": tokens, "cost": 0.5,
             "time": {"created": AT + 1, "completed": AT + 2}}  # fmt: skip
    user = {"role": "user", "model": {"modelID": "gpt-5"}, "time": {"created": AT}}
    compaction = {"type": "compaction", "auto": True, "tail_start_id": "m2"}
    return {
        "info": {"id": "ses_1", "parentID": "ses_0", "directory": "/work", "title": "T", "version": "1",
                 "time": {"created": AT, "updated": AT}, "revert": {"messageID": "m4"}},
        "messages": [
            {"info": user | {"id": "m1"}, "parts": [_text("go"), {"type": "file", "mime": "image/png"}]},
            {"info": reply | {"id": "m2"}, "parts": steps},
            {"info": user | {"id": "m3"}, "parts": [compaction]},
            {"info": reply | {"id": "m4", "summary": True}, "parts": [_text("it")]},
            {"info": reply | {"id": "m5", "error": {"name": "APIError"}}, "parts": [_text("no")]},
        ],
    }  # fmt: skip


def opencode_database(path: Path, document: Json) -> None:
    """Write a database of opencode with the session of *document*."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(
            """
            PRAGMA synchronous = OFF;
            PRAGMA journal_mode = OFF;
            CREATE TABLE session (id, parent_id, directory, title, version, revert, time_created, time_updated);
            CREATE TABLE message (id, session_id, time_created, time_updated, data);
            CREATE TABLE part (id, message_id, session_id, data);
            """
        )
        info = document.get("info")
        info = info if isinstance(info, dict) else {}
        revert = json.dumps(info.get("revert"))
        session = ("ses_1", info.get("parentID"), info.get("directory"), info.get("title"), "1", revert, AT, AT)
        marks = ", ".join("?" * len(session))
        connection.execute(f"INSERT INTO session VALUES ({marks})", [_column(value) for value in session])
        messages = document.get("messages")
        for number, message in enumerate(messages if isinstance(messages, list) else []):
            stated = message if isinstance(message, dict) else {}
            data = json.dumps(stated.get("info"))
            connection.execute("INSERT INTO message VALUES (?, 'ses_1', ?, ?, ?)", (f"m{number}", AT, AT, data))
            parts = stated.get("parts")
            for index, part in enumerate(parts if isinstance(parts, list) else []):
                row = (f"p{index}", f"m{number}", json.dumps(part))
                connection.execute("INSERT INTO part VALUES (?, ?, 'ses_1', ?)", row)


def goose_database(path: Path, rows: list[Any]) -> None:
    """Write a database of Goose with the messages of *rows*."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(
            """
            PRAGMA synchronous = OFF;
            PRAGMA journal_mode = OFF;
            CREATE TABLE schema_version (version);
            CREATE TABLE sessions (id, name, working_dir, created_at, updated_at, model_config_json);
            CREATE TABLE messages (id, session_id, role, content_json, created_timestamp, metadata_json);
            """
        )
        connection.execute("INSERT INTO sessions VALUES ('a', 'T', '/work', ?, ?, '{}')", (ISO, ISO))
        for number, row in enumerate(rows):
            stated = row if isinstance(row, dict) else {}
            content, metadata = json.dumps(stated.get("content")), json.dumps(stated.get("metadata"))
            values = (number, _column(stated.get("role")), content, _column(stated.get("created")), metadata)
            connection.execute("INSERT INTO messages VALUES (?, 'a', ?, ?, ?, ?)", values)


def _column(value: Any) -> Any:
    """Return a value that a column can hold."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63:
        return float("inf")
    return value if value is None or isinstance(value, int | float) else json.dumps(value)
