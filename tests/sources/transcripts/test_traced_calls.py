"""Exports of tracing tools: calls within calls, threads, and messages in the forms of frameworks."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from reads import Read

from windowpane.core.events import Usage
from windowpane.models.wire.calls import message_blocks
from windowpane.sources.transcripts.discovery import all_readers, files_of, reader_for
from windowpane.sources.transcripts.formats.exchanges.tables import table_rows
from windowpane.sources.transcripts.json_document import DocumentLog
from windowpane.sources.transcripts.reader import FileStats
from windowpane.sources.transcripts.records import (
    CallFailed,
    CallSent,
    ReplyReceived,
    SessionDescribed,
    SessionOpened,
)

READERS = all_readers(complete=True)
Json = dict[str, Any]


def read(tmp_path: Path, document: object, *, lines: bool = False) -> Read:
    path = tmp_path / ("export.jsonl" if lines else "export.json")
    rows = document if isinstance(document, list) else [document]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) if lines else json.dumps(document))
    return Read(reader_for(path, READERS), path)


def kinds(result: Read) -> list[list[str]]:
    """Return the kinds and texts of the content that each call sent."""
    return [
        [spec.content_type for message in sent.call.messages for spec in message_blocks("chat", message)]
        for sent in result.of(CallSent)
    ]


def test_the_recorded_trace_of_langfuse(sessions_dir: Path) -> None:
    path = sessions_dir / "otel_otlp" / "langfuse_chat_1.json"
    entries = json.loads((sessions_dir / "MANIFEST.json").read_text())
    expected = next(entry["stats"] for entry in entries if entry["file"] == "otel_otlp/langfuse_chat_1.json")
    result = Read(reader_for(path, READERS), path)

    assert result.stats.messages == expected["messages"]
    assert result.stats.content_chars == expected["content_chars"]
    assert result.stats.usage == expected["usage"]
    assert result.stats.api_calls == 1
    (opened,) = result.of(SessionOpened)
    assert (opened.session_key, opened.model) == ("chat_c32ff304-28ad-4a7d-a831-31641506b480", "gpt-5")
    assert result.of(SessionDescribed) == [SessionDescribed(label="QA-Chatbot")]
    assert kinds(result) == [["system_prompt", "assistant_response", "user_message"]]
    assert len(result.of(CallSent)[0].call.tools) == 3


def generation(number: int, sent: object, output: object, **more: Any) -> Json:
    return {
        "id": f"g{number}", "traceId": "t1", "type": "GENERATION", "projectId": "p",
        "startTime": f"2026-01-01T00:00:{number:02}.000Z", "endTime": f"2026-01-01T00:00:{number:02}.500Z",
        "parentObservationId": None, "model": "gpt-4o", "input": sent, "output": output,
    } | more  # fmt: skip


CACHED = {"input_cached_tokens": 90, "output": 5, "total": 105}


def test_usage_of_langfuse_excludes_the_cache_where_the_total_shows_it(tmp_path: Path) -> None:
    ask = [{"role": "user", "content": "one"}]
    result = read(tmp_path, [
        generation(1, ask, "two", usageDetails={"input": 10, **CACHED}),
        generation(2, ask, "two", usageDetails={"input": 100, **CACHED}),
        generation(3, ask, "two", usageDetails={}),
    ])  # fmt: skip
    usage = [received.reply.usage for received in result.of(ReplyReceived)]

    assert [(one.input_total, one.cache_read_tokens) for one in usage[:2]] == [(100, 90), (100, 90)]
    assert usage[2] is None
    assert "does not state the usage of 1 calls" in str(result.problems[-1])


def test_a_failed_generation_has_no_reply(tmp_path: Path) -> None:
    result = read(tmp_path, [
        generation(1, "one", None, level="ERROR", statusMessage="rate limit"), generation(2, "one", "two"),
    ])  # fmt: skip

    assert [failed.error for failed in result.of(CallFailed)] == ["rate limit"]


def test_columns_of_a_bulk_export_are_read(tmp_path: Path) -> None:
    rows = [
        {"id": "g1", "trace_id": "t1", "type": "GENERATION", "start_time": "2026-01-01T00:00:01Z",
         "end_time": "2026-01-01T00:00:02Z", "parent_observation_id": None, "provided_model_name": "gpt-4o",
         "input": '{"messages": [{"role": "user", "content": "one"}]}',
         "output": '{"role": "assistant", "content": "two"}',
         "usage_details": {"input": 10, "output": 5, "total": 15}, "total_cost": 0.25},
        {"id": "s1", "trace_id": "t1", "type": "SPAN", "start_time": "2026-01-01T00:00:00Z"},
    ]  # fmt: skip
    result = read(tmp_path, rows, lines=True)
    (received,) = result.of(ReplyReceived)

    assert kinds(result) == [["user_message"]]
    assert [part.text for part in received.reply.parts] == ["two"]
    assert (received.reply.cost_dollars, received.reply.latency_seconds) == (0.25, 1.0)


VERCEL = [
    {"role": "system", "content": "be good"},
    {"role": "user", "content": [{"type": "text", "text": "how warm?"}]},
    {"role": "assistant", "content": [
        {"type": "text", "text": "I look"},
        {"type": "tool-call", "toolCallId": "c1", "toolName": "weather", "args": {"city": "Ulm"}},
    ]},
    {"role": "tool", "content": [
        {"type": "tool-result", "toolCallId": "c1", "toolName": "weather", "result": {"t": 21}},
    ]},
]  # fmt: skip


def test_parts_of_the_vercel_ai_sdk(tmp_path: Path) -> None:
    result = read(tmp_path, [generation(1, json.dumps(VERCEL), "21 degrees")])

    assert kinds(result) == [["system_prompt", "user_message", "assistant_response", "tool_call", "tool_result"]]


def langchain(name: str, content: object, **more: Any) -> Json:
    path = ["langchain", "schema", "messages", name]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": {"content": content} | more}


def run(number: int, messages: object, answer: Json, **more: Any) -> Json:
    return {
        "id": f"r{number}", "name": "ChatOpenAI", "run_type": "llm", "trace_id": "t1", "parent_run_id": "root",
        "start_time": f"2026-01-01T00:00:{number:02}", "end_time": f"2026-01-01T00:00:{number:02}.250000",
        "inputs": {"messages": messages}, "outputs": {"generations": [[{"message": answer}]]},
        "extra": {"metadata": {"ls_model_name": "gpt-4o"}},
    } | more  # fmt: skip


USAGE = {
    "input_tokens": 100, "output_tokens": 9, "total_tokens": 109, "input_token_details": {"cache_read": 64},
    "output_token_details": {"reasoning": 4},
}  # fmt: skip
CALL = {"name": "weather", "args": {"city": "Ulm"}, "id": "c1", "type": "tool_call"}


def test_runs_of_langsmith_are_one_session_per_thread(tmp_path: Path) -> None:
    first = [langchain("SystemMessage", "be good"), langchain("HumanMessage", "how warm?")]
    asked = langchain("AIMessage", "", tool_calls=[CALL], usage_metadata=USAGE)
    second = [*first, asked, langchain("ToolMessage", "21", tool_call_id="c1")]
    root = {
        "id": "root", "run_type": "chain", "trace_id": "t1", "inputs": {}, "outputs": {},
        "extra": {"metadata": {"thread_id": "thread-7"}},
        "child_runs": [
            run(2, [second], langchain("AIMessage", "21 degrees", usage_metadata=USAGE)), run(1, [first], asked),
        ],
    }  # fmt: skip
    result = read(tmp_path, [root])

    assert [opened.session_key for opened in result.of(SessionOpened)] == ["thread-7"]
    assert kinds(result) == [
        ["system_prompt", "user_message"], ["system_prompt", "user_message", "tool_call", "tool_result"],
    ]  # fmt: skip
    replies = [received.reply for received in result.of(ReplyReceived)]
    assert [[part.kind for part in reply.parts] for reply in replies] == [["tool_call"], ["assistant_response"]]
    assert [(reply.usage.input_total, reply.usage.cache_read_tokens) for reply in replies] == [(100, 64)] * 2
    assert replies[0].latency_seconds == 0.25


def test_a_wrapped_client_of_openai_in_langsmith(tmp_path: Path) -> None:
    rows = [
        run(1, [{"role": "user", "content": "one"}], {}, outputs={
            "choices": [{"message": {"role": "assistant", "content": "two"}}], "model": "gpt-4o-mini",
            "usage": {"prompt_tokens": 7, "completion_tokens": 3},
        }),
        run(2, [{"role": "user", "content": "one"}], {}, outputs=None, error="context_length_exceeded"),
    ]  # fmt: skip
    result = read(tmp_path, rows, lines=True)
    (received,) = result.of(ReplyReceived)

    assert (received.reply.usage.input_total, received.reply.parts[0].text) == (7, "two")
    assert [failed.error for failed in result.of(CallFailed)] == ["context_length_exceeded"]


@pytest.mark.parametrize(
    "stated",
    [
        {"usage": {"promptTokens": 10, "completionTokens": 5, "totalTokens": 15}},
        {"usage": {"unit": "TOKENS"}, "promptTokens": 10, "completionTokens": 5, "totalTokens": 15},
        {"usageDetails": {}, "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        {"usageDetails": '{"input": 10, "output": 5, "total": 15}'},
    ],
    ids=["usage", "fields", "columns", "text"],
)
def test_counts_of_langfuse_are_read_by_their_earlier_names(tmp_path: Path, stated: Json) -> None:
    """Releases of 2023 and 2024 named them otherwise, in `usage` or beside it."""
    result = read(tmp_path, [generation(1, [{"role": "user", "content": "one"}], "two", **stated)])

    assert [received.reply.usage for received in result.of(ReplyReceived)] == [Usage(10, 5)]


def test_missing_and_surplus_cells_of_a_table_are_omitted(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1\n2,3,4\n")

    assert list(table_rows(path, DocumentLog(path, FileStats(), []))) == [{"a": "1"}, {"a": "2", "b": "3"}]


def test_a_table_of_langfuse_is_read(tmp_path: Path) -> None:
    messages = json.dumps([{"role": "user", "content": "one\ntwo"}])
    row = generation(1, messages, "3", promptTokens=10, completionTokens=5, totalTokens=15, totalCost=0.25)
    with (tmp_path / "observations.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, list(row))
        table.writeheader()
        table.writerow(row)
    (tmp_path / "prices.csv").write_text("id,price\n1,2\n")

    (found,) = files_of([tmp_path])
    result = Read(reader_for(found, READERS), found)
    (received,) = result.of(ReplyReceived)

    assert kinds(result) == [["user_message"]]
    assert (received.reply.usage, received.reply.cost_dollars) == (Usage(10, 5), 0.25)
    assert [part.text for part in received.reply.parts] == ["3"]
    assert (result.stats.api_calls, result.problems) == (1, [])
