"""Tools of MCP servers have one form of name, where a recording names the server."""

from __future__ import annotations

from pathlib import Path

import pytest
from reads import Json, read_rows

from windowpane.core.names import mcp_server_of
from windowpane.models.wire.responses import item_blocks
from windowpane.sources.transcripts.formats.codex.reader import CodexReader
from windowpane.sources.transcripts.formats.copilot_cli.reader import CopilotReader
from windowpane.sources.transcripts.formats.gemini.reader import GeminiLinesReader
from windowpane.sources.transcripts.reader import Reader
from windowpane.sources.transcripts.records import ContentAdded

AT = "2026-11-27T01:07:27Z"
CODEX_CALL = {
    "type": "function_call", "name": "window_status", "namespace": "mcp__windowpane", "arguments": "{}",
    "call_id": "c1",
}  # fmt: skip
CODEX = [
    {"timestamp": AT, "type": "session_meta", "payload": {"id": "s", "timestamp": AT, "cwd": "/w"}},
    {"timestamp": AT, "type": "response_item", "payload": CODEX_CALL},
    {
        "timestamp": AT, "type": "response_item",
        "payload": CODEX_CALL | {"name": "spawn_agent", "namespace": "collaboration", "call_id": "c2"},
    },
]  # fmt: skip
GEMINI_CALLS = [
    {
        "id": "c1", "name": "mcp_windowpane_window_status", "args": {}, "result": [], "status": "success",
        "displayName": "window_status (windowpane MCP Server)",
    },
    {"id": "c2", "name": "read_file", "args": {}, "result": [], "status": "success", "displayName": "ReadFile"},
]  # fmt: skip
GEMINI = [
    {"sessionId": "s", "projectHash": "p", "startTime": AT, "lastUpdated": AT, "kind": "main"},
    {"id": "m1", "timestamp": AT, "type": "gemini", "content": "On it.", "toolCalls": GEMINI_CALLS},
    {"id": "m2", "timestamp": AT, "type": "user", "content": "go"},
]
COPILOT_CALLS = [
    {
        "toolCallId": "c1", "name": "windowpane-window_status", "arguments": {}, "mcpServerName": "windowpane",
        "mcpToolName": "window_status",
    },
    {"toolCallId": "c2", "name": "str_replace_editor", "arguments": {}},
]  # fmt: skip
COPILOT = [
    {"type": "session.start", "id": "e0", "parentId": None, "timestamp": AT, "data": {"sessionId": "s"}},
    {
        "type": "assistant.message", "id": "e1", "parentId": None, "timestamp": AT,
        "data": {"content": "ok", "toolRequests": COPILOT_CALLS},
    },
]  # fmt: skip


@pytest.mark.parametrize(
    ("reader", "rows", "other"),
    [
        (CodexReader(), CODEX, "spawn_agent"),
        (GeminiLinesReader(), GEMINI, "read_file"),
        (CopilotReader(), COPILOT, "str_replace_editor"),
    ],
)
def test_the_name_of_a_tool_has_the_server(reader: Reader, rows: list[Json], other: str, tmp_path: Path) -> None:
    read = read_rows(reader, tmp_path, rows)

    calls = [one.tool_name for one in read.of(ContentAdded) if one.content_type == "tool_call"]
    assert calls == ["mcp__windowpane__window_status", other]
    assert [mcp_server_of(name) for name in calls] == ["windowpane", None]


def test_a_call_that_a_proxy_sees_has_the_same_name_as_the_recorded_one() -> None:
    (block,) = item_blocks(CODEX_CALL)

    assert block.tool_name == "mcp__windowpane__window_status"
