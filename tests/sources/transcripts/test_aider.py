"""Aider: the history of its chats with several in one file, and its log of analytics."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from reads import Read

from windowpane.sources.transcripts.discovery import all_readers, files_of, reader_for
from windowpane.sources.transcripts.formats.aider.analytics import AiderAnalyticsReader
from windowpane.sources.transcripts.formats.aider.history import AiderHistoryReader
from windowpane.sources.transcripts.records import (
    Cleared,
    ContentAdded,
    ModelCalled,
    SessionDescribed,
    SessionOpened,
)

HISTORY = """
# aider chat started at 2026-01-01 10:00:00

> Aider v0.86.1  \n> Main model: claude-sonnet-4-5 with diff edit format  \n> Added shop.py to the chat  \n
#### make it faster  \n#### and smaller  \n
I will change it.

#### A heading of the reply

> a quote of the reply

> Tokens: 12,566 sent, 1.1k cache write, 2.3k cache hit, 84 received. Cost: $0.0019 message, $0.02 all.  \n
#### /clear  \n> All chat history cleared.  \n
#### /ask why?  \n
Because.

# aider chat started at 2026-01-02 11:00:00

#### only asked  \n"""


def history(tmp_path: Path, text: str = HISTORY) -> Path:
    path = tmp_path / ".aider.chat.history.md"
    path.write_text(text)
    return path


@pytest.mark.parametrize("file", ["example_complex-change.md", "sample-analytics.jsonl"])
def test_counts_are_those_of_the_manifest(sessions_dir: Path, file: str) -> None:
    entries = json.loads((sessions_dir / "MANIFEST.json").read_text())
    expected = next(entry["stats"] for entry in entries if entry["file"] == f"aider/{file}")
    path = sessions_dir / "aider" / file
    stats = Read(reader_for(path, all_readers(complete=True)), path).stats

    assert (stats.messages, stats.user_turns, stats.content_chars) == (
        expected["messages"], expected["turns"], expected["content_chars"],
    )  # fmt: skip
    assert stats.usage == (expected["usage"] or {})


def test_chats_of_one_file_are_sessions(tmp_path: Path) -> None:
    read = Read(AiderHistoryReader(complete=True), history(tmp_path))
    opened = read.of(SessionOpened)

    assert [one.session_key[:19] for one in opened if one.at is not None] == [
        "2026-01-01T10:00:00", "2026-01-02T11:00:00",
    ]  # fmt: skip
    assert {one.model for one in opened} == {"", "claude-sonnet-4-5"}
    assert {one.folder for one in read.of(SessionDescribed)} == {str(tmp_path), ""}
    assert {one.agent_version for one in read.of(SessionDescribed)} == {"", "0.86.1"}


def test_replies_usage_and_commands(tmp_path: Path) -> None:
    read = Read(AiderHistoryReader(complete=True), history(tmp_path))

    assert [(one.content_type, (one.text or "").split("\n")[0]) for one in read.of(ContentAdded)] == [
        ("user_message", "make it faster"), ("assistant_response", "I will change it."),
        ("user_message", "/ask why?"), ("assistant_response", "Because."), ("user_message", "only asked"),
    ]  # fmt: skip
    assert "> a quote of the reply" in (read.of(ContentAdded)[1].text or "")
    first, second = read.of(ModelCalled)
    assert (first.usage.input_total, first.usage.cache_read_tokens, first.usage.cache_write_tokens) == (
        12_566, 2_300, 1_100,
    )  # fmt: skip
    assert (first.cost_dollars, second.usage) == (0.0019, None)
    assert len(read.of(Cleared)) == 1
    assert len([problem for problem in read.problems if "rounded" in problem.problem]) == 1


def test_a_history_is_found_in_a_folder_that_is_named(tmp_path: Path) -> None:
    path = history(tmp_path)
    (tmp_path / "README.md").write_text("# shop")
    (tmp_path / "saved.md").write_text(HISTORY)

    assert list(files_of([tmp_path])) == [path, tmp_path / "saved.md"]


def test_a_growing_history_only_appends(tmp_path: Path) -> None:
    whole = Read(AiderHistoryReader(complete=True), history(tmp_path)).records
    lines = HISTORY.splitlines(keepends=True)
    for length in range(1, len(lines)):
        part = Read(AiderHistoryReader(complete=False), history(tmp_path, "".join(lines[:length]))).records
        assert part == whole[: len(part)], f"cut after line {length}"


def test_launches_of_the_log_are_sessions(tmp_path: Path) -> None:
    first = {"main_model": "m", "prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12, "cost": 0.5}
    second = {"main_model": "m", "prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}
    rows = [
        ("launched", {}), ("exit", {}), ("launched", {}), ("message_send", first), ("command_clear", {}),
        ("message_send", second), ("exit", {}),
    ]  # fmt: skip
    path = tmp_path / "analytics.jsonl"
    path.write_text("".join(
        json.dumps({"event": event, "properties": properties, "user_id": "u", "time": time}) + "\n"
        for time, (event, properties) in enumerate(rows, 1_757_000_000)
    ))  # fmt: skip
    read = Read(AiderAnalyticsReader(complete=True), path)

    assert read.order == ["ModelCalled", "Cleared", "ModelCalled", "SessionClosed"]
    assert [(call.usage.input_total, call.cost_dollars) for call in read.of(ModelCalled)] == [
        (10, 0.5),
        (5, None),
    ]
    assert [one.at for one in read.of(SessionOpened)] == [1_757_000_002]
