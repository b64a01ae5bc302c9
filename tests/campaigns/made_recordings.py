"""Small recordings of the formats of which there is no real one, made after the agents' own source."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

Json = dict[str, Any]
AT = 1_770_000_000_000
ISO = "2026-02-02T02:40:00Z"


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
