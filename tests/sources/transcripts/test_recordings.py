"""Every real recording gives the values that were computed independently of these readers."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from windowpane.exceptions import SourceError, UnknownFormatError
from windowpane.sources.transcripts.discovery import all_readers, files_of, reader_for
from windowpane.sources.transcripts.playback import session_keys
from windowpane.sources.transcripts.reader import FileStats, Problem, Reader

FORMATS = ("claude_code", "codex", "pi")
CALLS = ("api_calls", "api_msgs")
"""Names under which the manifest counts model calls."""


@cache
def manifest(folder: Path) -> dict[str, dict[str, Any]]:
    entries = json.loads((folder / "MANIFEST.json").read_text())
    return {entry["file"]: entry["stats"] for entry in entries if entry["format"] in FORMATS}


def reader_of(source: str) -> Reader:
    return next(reader for reader in all_readers(complete=True) if reader.format == source)


def measured(path: Path) -> FileStats:
    stats = FileStats()
    problems: list[Problem] = []
    for _ in reader_of(path.parent.name).read(path, stats=stats, problems=problems):
        pass
    return stats


def files() -> list[str]:
    """Names are listed here so that a missing recording is noticed."""
    return [
        "claude_code/compact_micro_76-62d755ef9f-2.jsonl",
        "claude_code/compact_small_a6-e4c2a0fbd1-0.jsonl",
        "claude_code/daaain_edge_cases.jsonl",
        "claude_code/daaain_representative_messages.jsonl",
        "claude_code/daaain_session_b.jsonl",
        "claude_code/daaain_todowrite_examples.jsonl",
        "claude_code/malformed_two_objects_one_line_37-995ebed6e4-2.jsonl",
        "claude_code/micro_ids_present_d5-99f72ee73a-0.jsonl",
        "claude_code/new_cli_8c-b7fcfcbb16-0.jsonl",
        "claude_code/small_progress_96-6462b9a8e7-0.jsonl",
        "claude_code/tiny_c9-883595c929-0.jsonl",
        "claude_code/tiny_notools_8c-fa910f8ef9-2.jsonl",
        "codex/rollout_compact2_spark_00-34f597b72d-1.jsonl",
        "codex/rollout_small_a3-92ff332928-0.jsonl",
        "pi/large-session.jsonl",
    ]


@pytest.mark.parametrize("name", files())
def test_values_are_those_of_the_manifest(sessions_dir: Path, name: str) -> None:
    expected = manifest(sessions_dir)[name]
    stats = measured(sessions_dir / name)

    got = {
        "messages": stats.messages,
        "tool_calls": stats.tool_calls,
        "content_chars": stats.content_chars,
        "max_tool_output_chars": stats.max_tool_output_chars,
        "compactions": stats.compactions,
        "evictions": stats.evictions,
        "bad_lines": stats.bad_lines,
        "turns": stats.user_turns,
    }
    assert got == {key: expected[key] for key in got}
    assert stats.odd_lines == expected.get("odd_rows", 0)
    assert stats.sessions == len(expected["sid"])


@pytest.mark.parametrize("name", files())
def test_usage_is_that_of_the_manifest(sessions_dir: Path, name: str) -> None:
    expected = dict(manifest(sessions_dir)[name]["usage"])
    stats = measured(sessions_dir / name)

    naive = expected.pop("naive_over_dedup", None)
    assert stats.peak_context == expected.pop("peak_context")
    calls = [expected.pop(key) for key in CALLS if key in expected]
    assert calls in ([], [stats.api_calls])
    assert {key: stats.usage.get(key) for key in expected} == expected
    if naive is not None:
        once = sum(stats.usage[key] for key in expected)
        assert round(stats.usage["all_lines_total"] / once, 2) == naive


def test_every_file_of_the_collection_is_read_or_named(sessions_dir: Path) -> None:
    silent = []
    for entry in json.loads((sessions_dir / "MANIFEST.json").read_text()):
        path = sessions_dir / entry["file"]
        stats, problems = FileStats(), list[Problem]()
        try:
            reader = reader_for(path, all_readers(complete=True))
            records = list(reader.read(path, stats=stats, problems=problems))
        except SourceError:
            continue
        if not session_keys(records) and not problems:
            silent.append(entry["file"])

    assert silent == []


def test_every_recording_is_recognised_by_its_own_reader(sessions_dir: Path) -> None:
    claims = {}
    for path in files_of([sessions_dir]):
        try:
            claims[f"{path.parent.name}/{path.name}"] = reader_for(path, all_readers()).format
        except UnknownFormatError:
            continue

    known = {reader.format for reader in all_readers()}
    for name in files():
        assert claims[name] == name.partition("/")[0]
    for name, source in claims.items():
        folder = name.partition("/")[0]
        assert folder not in known or source == folder, name
        assert source not in FORMATS or folder == source, name


@pytest.mark.parametrize("odd", [[], {}, [[]], 1, None])
def test_no_reader_fails_on_values_of_another_kind(tmp_path: Path, odd: object) -> None:
    names = [
        "type",
        "kind",
        "event",
        "role",
        "source",
        "run_type",
        "message",
        "sessionId",
        "session_id",
        "uuid",
        "args",
        "action",
        "history",
        "metrics",
        "issue",
        "instance_id",
        "request",
        "response",
        "inputs",
        "traceId",
        "startTime",
        "trace_id",
        "start_time",
        "subtype",
        "payload",
        "timestamp",
        "data",
        "properties",
        "user_id",
        "time",
        "id",
        "messages",
        "info",
        "eval",
        "status",
    ]
    for row in (dict.fromkeys(names, odd), *({name: odd, "type": "user", "kind": "X"} for name in names)):
        head = json.dumps(row).encode() + b"\n"
        for reader in all_readers(complete=True):
            reader.recognizes(tmp_path / "file.jsonl", head + head)
            reader.recognizes(tmp_path / "file.json", b"[" + head.strip() + b"]")
