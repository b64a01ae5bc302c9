"""pi's traps, each with the few rows that show it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reads import Json, Read, read_rows

from windowpane.sources.transcripts.formats.pi import PiReader
from windowpane.sources.transcripts.records import Compacted, ContentAdded, ModelCalled, SessionOpened

HEADER: Json = {
    "type": "session",
    "id": "s",
    "timestamp": "2026-01-01T00:10:00Z",
    "cwd": "/",
    "modelId": "claude-a",
}


def message(role: str, second: int, **more: Any) -> Json:
    body = {"role": role, "timestamp": 1_767_225_600_000 + (second - 1) * 1_000} | more
    return {"type": "message", "timestamp": f"2026-01-01T00:00:{second:02}Z", "message": body}


def reply(second: int, *blocks: Json, stop: str = "stop", **usage: Any) -> Json:
    counted = {"input": 10, "output": 5, "cacheRead": 90, "cacheWrite": 0, "cost": {"total": 0.25}} | usage
    return message("assistant", second, content=list(blocks), model="claude-a", stopReason=stop, usage=counted)


def user(second: int, text: str) -> Json:
    return message("user", second, content=[{"type": "text", "text": text}])


def text(value: str) -> Json:
    return {"type": "text", "text": value}


def read_pi(tmp_path: Path, *rows: Json) -> Read:
    return read_rows(PiReader(complete=True), tmp_path, rows)


def test_cost_latency_and_stop_reason_are_as_recorded(tmp_path: Path) -> None:
    (called,) = read_pi(tmp_path, HEADER, user(1, "go"), reply(2, text("a"), stop="toolUse")).of(ModelCalled)

    assert (called.cost_dollars, called.latency_seconds, called.stop_reason) == (0.25, 1.0, "toolUse")
    assert called.usage.input_total == 100


def test_aborted_call_has_no_usage(tmp_path: Path) -> None:
    zero = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "cost": {"total": 0}}
    read = read_pi(tmp_path, HEADER, user(1, "go"), reply(2, stop="aborted", **zero))

    (called,) = read.of(ModelCalled)
    assert (called.usage, called.cost_dollars) == (None, None)
    assert read.stats.api_calls == 1


def test_session_starts_with_its_first_row_if_the_header_is_later(tmp_path: Path) -> None:
    opened = read_pi(tmp_path, HEADER, user(1, "go")).of(SessionOpened)[0]

    assert opened.at == 1_767_225_601.0


def test_change_of_model_is_recorded_before_the_next_content(tmp_path: Path) -> None:
    other = reply(4, text("c"))
    other["message"]["model"] = "gpt-b"
    read = read_pi(
        tmp_path, HEADER, user(1, "go"), {"type": "model_change", "modelId": "claude-c"}, user(2, "on"), other
    )

    assert [record.model for record in read.of(SessionOpened)] == ["claude-a", "claude-c", "gpt-b"]
    assert isinstance(read.records[-2], ContentAdded)


def test_commands_of_the_user_are_results_without_a_call(tmp_path: Path) -> None:
    """The model sees them, unless they were kept from it."""
    seen = message("bashExecution", 2, command="ls", output="a.py")
    kept = message("bashExecution", 3, command="env", output="secret", excludeFromContext=True)
    read = read_pi(tmp_path, HEADER, user(1, "go"), seen, kept)

    results = [content for content in read.of(ContentAdded) if content.content_type == "tool_result"]
    assert [(content.text, content.tool_name) for content in results] == [("ls\na.py", "bash")]
    assert read.stats.user_turns == 1


def test_compaction_keeps_the_entries_from_its_first_kept_one(tmp_path: Path) -> None:
    compaction = {"type": "compaction", "summary": "in short", "tokensBefore": 175_004}
    rows = [HEADER, user(1, "a") | {"id": "e1"}, reply(2, text("b")) | {"id": "e2"}, user(3, "c") | {"id": "e3"}]

    (counted,) = read_pi(tmp_path, *rows, compaction | {"firstKeptEntryIndex": 2}).of(Compacted)
    (named,) = read_pi(tmp_path, *rows, compaction | {"firstKeptEntryId": "e2"}).of(Compacted)

    assert counted.kept_keys == named.kept_keys == ("entry-2", "entry-3")
    assert (counted.summary, counted.tokens_before) == ("in short", 175_004)


def test_file_without_header_is_read_under_a_separate_name(tmp_path: Path) -> None:
    """Its name comes from its first row, so the same file has the same name."""
    first = read_pi(tmp_path, user(1, "go"), reply(2, text("a")))
    again = read_pi(tmp_path, user(1, "go"), reply(2, text("a")), user(3, "more"))

    assert first.of(SessionOpened)[0].session_key == again.of(SessionOpened)[0].session_key
    assert "no session header" in first.problems[0].problem


def test_tool_results_keep_call_and_images(tmp_path: Path) -> None:
    parts = [text("a"), text("b"), {"type": "image", "data": "x"}]
    result = message("toolResult", 2, toolCallId="c1", toolName="read", content=parts)
    read = read_pi(tmp_path, HEADER, user(1, "go"), result)

    content = read.of(ContentAdded)[-1]
    assert (content.text, content.tool_call_id, content.tool_name, content.media) == ("ab", "c1", "read", 1)
    assert read.stats.max_tool_output_chars == 2


def test_unknown_roles_and_blocks_are_remarked(tmp_path: Path) -> None:
    read = read_pi(
        tmp_path, HEADER, message("narrator", 1, content="noted"), reply(2, {"type": "video"}, text("a"))
    )

    assert [problem.severity for problem in read.problems] == ["odd", "odd"]
    assert [content.content_type for content in read.of(ContentAdded)] == [
        "memory_injection",
        "assistant_response",
    ]


def test_second_header_is_skipped(tmp_path: Path) -> None:
    read = read_pi(tmp_path, HEADER, user(1, "go"), HEADER | {"id": "other"})

    assert {record.session_key for record in read.of(SessionOpened)} == {"s"}
    assert read.stats.sessions == 1


@pytest.mark.parametrize("time", [10**400, -(10**400), 10**18, float("inf"), float("nan"), 2**63])
def test_an_impossible_time_costs_the_latency_not_the_file(tmp_path: Path, time: float) -> None:
    rows = [HEADER, user(1, "go"), reply(2, text("a")), user(3, "on"), reply(4, text("b"))]
    rows[2]["message"]["timestamp"] = time
    first, second = read_pi(tmp_path, *rows).of(ModelCalled)

    assert first.latency_seconds is None
    assert second.latency_seconds == 1.0


def test_entries_of_a_later_release_are_reported_once(tmp_path: Path) -> None:
    later = {"type": "novelty", "timestamp": "2026-01-01T00:00:01Z"}
    known = {"type": "label", "timestamp": "2026-01-01T00:00:01Z"}
    read = read_pi(tmp_path, HEADER, user(1, "go"), later, later, known, reply(2, text("a")))

    assert len(read.of(ModelCalled)) == 1
    assert [problem.problem for problem in read.problems] == ["entries of the unknown type 'novelty' are skipped"]
