"""OpenClaw's database: the entries of its files, as rows."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from reads import Json, Read, read_rows

from windowpane.sources.installed_agents.locations import default_folders
from windowpane.sources.transcripts import compressed
from windowpane.sources.transcripts.discovery import all_readers, files_of, reader_for
from windowpane.sources.transcripts.formats.openclaw import OpenClawDatabaseReader
from windowpane.sources.transcripts.formats.pi import PiReader
from windowpane.sources.transcripts.records import ModelCalled, SessionOpened

USAGE = {"input": 10, "output": 5, "cacheRead": 90, "cacheWrite": 0}


def entries(key: str) -> list[Json]:
    message: dict[str, Any] = {"role": "assistant", "model": "m", "content": [{"type": "text", "text": "ok"}]}
    return [
        {"type": "session", "version": 3, "id": key, "timestamp": "2026-09-02T10:00:00Z", "cwd": "/work"},
        {"type": "message", "id": "a", "parentId": None, "message": {"role": "user", "content": "go"}},
        {"type": "message", "id": "b", "parentId": "a", "message": message | {"usage": USAGE}},
    ]


def database(folder: Path, **sessions: list[Any]) -> Path:
    path = folder / "agents" / "main" / "agent" / "openclaw-agent.sqlite"
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(
            "CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, event_zstd BLOB, "
            "created_at INTEGER, PRIMARY KEY (session_id, seq))"
        )
        for key, rows in sessions.items():
            for seq, row in enumerate(rows):
                packed = row if isinstance(row, bytes) else None
                plain = None if packed else row if isinstance(row, str | None) else json.dumps(row)
                values = (plain, packed)
                connection.execute(
                    "INSERT INTO transcript_events VALUES (?, ?, ?, ?, ?)",
                    (key, seq, *values, 1_788_000_000_000 + seq),
                )
    return path


def test_rows_are_read_as_the_lines_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = database(tmp_path, s1=entries("s1"), s2=entries("s2"))
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(tmp_path))
    read = Read(reader_for(path, all_readers()), path)
    (tmp_path / "file").mkdir()
    lines = read_rows(PiReader(complete=True), tmp_path / "file", entries("s1"))

    assert path in default_folders()
    assert path in list(files_of([tmp_path]))
    assert [opened.agent for opened in read.of(SessionOpened)][:1] == ["openclaw"]
    assert read.order == lines.order * 2
    assert [call.usage.input_total for call in read.of(ModelCalled)] == [100, 100]
    assert list(OpenClawDatabaseReader().sessions(path)) == ["s1", "s2"]


def test_damaged_rows_are_reported(tmp_path: Path) -> None:
    path = database(tmp_path, s1=[*entries("s1")[:2], "{", "7", None, *entries("s1")[2:]])
    read = Read(OpenClawDatabaseReader(complete=True), path)

    assert len(read.of(ModelCalled)) == 1
    assert [(problem.line, problem.severity) for problem in read.problems] == [(2, "bad"), (3, "bad")]


@pytest.mark.parametrize("is_there", [True, False])
def test_compressed_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_there: bool) -> None:
    zstd = pytest.importorskip("backports.zstd")
    packed = [zstd.compress(json.dumps(entry).encode()) for entry in entries("s1")]
    path = database(tmp_path, s1=[*packed, b"damaged"], s2=packed)
    if not is_there:
        monkeypatch.setattr(compressed, "MODULES", ())
    read = Read(OpenClawDatabaseReader(complete=True), path)

    assert len(read.of(ModelCalled)) == 2 * is_there
    assert [problem.field for problem in read.problems if "Zstandard" in problem.problem] == (
        [] if is_there else ["event_zstd"]
    )
