"""Recordings that a program compressed, and files that are read together with a recording."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from reads import Read

from windowpane.exceptions import SourceError
from windowpane.sources.transcripts import compressed
from windowpane.sources.transcripts.discovery import all_readers, files_of, reader_for
from windowpane.sources.transcripts.formats.agent_sidecar import has_ended
from windowpane.sources.transcripts.formats.claude_code.reader import ClaudeCodeReader
from windowpane.sources.transcripts.formats.codex.reader import CodexReader
from windowpane.sources.transcripts.records import SessionDescribed, SessionOpened

zstd = pytest.importorskip("backports.zstd")
ROWS = [
    {"type": "session_meta", "timestamp": "2026-06-15T10:00:00Z", "payload": {"id": "s1", "cwd": "/work"}},
    {
        "type": "response_item",
        "timestamp": "2026-06-15T10:00:01Z",
        "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
    },
]
LINES = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)


def test_a_compressed_rollout_is_read_as_the_plain_one(tmp_path: Path) -> None:
    plain, packed = tmp_path / "rollout-1.jsonl", tmp_path / "rollout-1.jsonl.zst"
    plain.write_bytes(LINES)
    packed.write_bytes(zstd.compress(LINES))
    expected = Read(CodexReader(complete=True), plain)

    assert list(files_of([tmp_path])) == [plain]
    plain.unlink()
    assert list(files_of([tmp_path])) == [packed]
    assert reader_for(packed, all_readers()).format == "codex"
    assert Read(CodexReader(complete=True), packed).records == expected.records


def test_a_damaged_compressed_rollout_is_reported(tmp_path: Path) -> None:
    packed = tmp_path / "rollout-1.jsonl.zst"
    packed.write_bytes(zstd.compress(LINES) + b"damaged")
    read = Read(CodexReader(complete=True), packed)

    assert len(read.of(SessionOpened)) == 1
    assert [problem.line for problem in read.problems if problem.severity == "bad"] == [3]


def test_a_rollout_that_nothing_decompresses_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = tmp_path / "rollout-1.jsonl.zst"
    packed.write_bytes(zstd.compress(LINES))
    monkeypatch.setattr(compressed, "MODULES", ())

    with pytest.raises(SourceError, match=r"backports\.zstd"):
        reader_for(packed, all_readers())


def test_the_file_beside_a_sub_agents_transcript_names_its_task(tmp_path: Path) -> None:
    folder = tmp_path / "0190a0a0-0000-7000-8000-000000000000" / "subagents"
    folder.mkdir(parents=True)
    row = {
        "type": "user",
        "uuid": "u1",
        "parentUuid": None,
        "isSidechain": True,
        "agentId": "a1",
        "sessionId": folder.parent.name,
        "timestamp": "2026-06-15T10:00:00Z",
        "message": {"role": "user", "content": "go"},
    }
    (folder / "agent-a1.jsonl").write_text(json.dumps(row))
    beside = {"agentType": "Explore", "description": "Find the tests", "toolUseId": "t1"}
    (folder / "agent-a1.meta.json").write_text(json.dumps(beside))
    read = Read(ClaudeCodeReader(complete=True), folder / "agent-a1.jsonl")

    assert list(files_of([tmp_path])) == [folder / "agent-a1.jsonl"]
    assert [opened.parent_key for opened in read.of(SessionOpened)] == [folder.parent.name]
    assert read.of(SessionDescribed)[-1] == SessionDescribed("Find the tests", label="Explore")


@pytest.mark.parametrize(("kibibytes", "is_read"), [(255, True), (256, False)])
def test_the_file_beside_a_sub_agents_transcript_is_read_up_to_256_kib(
    tmp_path: Path, kibibytes: int, is_read: bool
) -> None:
    beside = {"status": "completed", "description": "x" * (kibibytes << 10)}
    (tmp_path / "agent-a1.meta.json").write_text(json.dumps(beside))

    assert has_ended(tmp_path / "agent-a1.jsonl") is is_read
