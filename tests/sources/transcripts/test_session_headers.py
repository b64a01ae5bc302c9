"""The row that names a session names it wherever it stands among the first rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from windowpane.sources.transcripts.discovery import all_readers, reader_for
from windowpane.sources.transcripts.json_lines import HEAD_LINES, JsonRow
from windowpane.sources.transcripts.playback import session_keys
from windowpane.sources.transcripts.reader import FileStats, Problem
from windowpane.sources.transcripts.records import Record, SessionDescribed, SessionOpened

Json = dict[str, Any]
AT = "2026-01-01T00:00:0{}Z"
KEY = "0a1b2c3d-0000-4000-8000-000000000001"


def _pi(number: int) -> Json:
    parent = f"e{number - 1}" if number else None
    role = ("user", "assistant")[number % 2]
    message = {"role": role, "content": [{"type": "text", "text": f"text {number}"}], "model": "m"}
    return {
        "type": "message",
        "id": f"e{number}",
        "parentId": parent,
        "timestamp": AT.format(number),
        "message": message,
    }


def _codex(number: int) -> Json:
    role, kind = (("user", "input_text"), ("assistant", "output_text"))[number % 2]
    payload = {"type": "message", "role": role, "content": [{"type": kind, "text": f"text {number}"}]}
    return {"type": "response_item", "timestamp": AT.format(number), "payload": payload}


def _copilot(number: int) -> Json:
    kind = ("user.message", "assistant.message")[number % 2]
    data = {"content": f"text {number}", "messageId": f"m{number}"}
    return {"type": kind, "id": f"e{number}", "parentId": None, "timestamp": AT.format(number), "data": data}


def _gemini(number: int) -> Json:
    kind = ("user", "gemini")[number % 2]
    return {
        "id": f"e{number}",
        "type": kind,
        "timestamp": AT.format(number),
        "content": f"text {number}",
        "model": "m",
    }


def _qwen(number: int) -> Json:
    kind = ("user", "assistant")[number % 2]
    return {
        "type": kind, "uuid": f"e{number}", "parentUuid": f"e{number - 1}" if number else None,
        "timestamp": AT.format(number), "model": "m",
        "message": {"role": kind, "parts": [{"text": f"text {number}"}]},
    }  # fmt: skip


def _claude(number: int) -> Json:
    kind = ("user", "assistant")[number % 2]
    message = {
        "role": kind,
        "id": f"m{number}",
        "model": "m",
        "content": [{"type": "text", "text": f"text {number}"}],
    }
    return {
        "type": kind,
        "uuid": f"e{number}",
        "parentUuid": None,
        "timestamp": AT.format(number),
        "message": message,
    }


HEADERS: dict[str, tuple[Json, Any]] = {
    "pi": ({"type": "session", "id": KEY, "cwd": "/project", "timestamp": AT.format(0)}, _pi),
    "codex": ({"type": "session_meta", "timestamp": AT.format(0), "payload": {"id": KEY, "cwd": "/p"}}, _codex),
    "copilot_cli": (
        {
            "type": "session.start",
            "id": "s",
            "parentId": None,
            "timestamp": AT.format(0),
            "data": {"sessionId": KEY},
        },
        _copilot,
    ),
    "gemini_cli": ({"sessionId": KEY, "projectHash": "p", "startTime": AT.format(0)}, _gemini),
    "qwen": (_qwen(0) | {"sessionId": KEY, "uuid": "h"}, _qwen),
    "claude_code": (_claude(0) | {"sessionId": KEY, "uuid": "h"}, _claude),
}


def read(path: Path, rows: list[Json]) -> tuple[list[Record], list[Problem]]:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    problems: list[Problem] = []
    reader = reader_for(path, all_readers(complete=True))
    return list(reader.read(path, stats=FileStats(), problems=problems)), problems


@pytest.mark.parametrize("before", [0, 1, HEAD_LINES - 1])
@pytest.mark.parametrize("name", HEADERS)
def test_a_header_counts_wherever_it_stands_in_the_first_rows(tmp_path: Path, name: str, before: int) -> None:
    header, row = HEADERS[name]
    rows = [row(number) for number in range(4)]
    earlier = (rows * HEAD_LINES)[:before] if before > 1 else rows[:before]
    records, _ = read(tmp_path / "recording.jsonl", [*earlier, header, *rows[before:]])

    assert session_keys(records) == (KEY,)


@pytest.mark.parametrize("name", HEADERS)
def test_a_growing_recording_awaits_its_header(tmp_path: Path, name: str) -> None:
    header, row = HEADERS[name]
    rows = [row(number) for number in range(4)]
    whole, _ = read(tmp_path / "recording.jsonl", [rows[0], header, *rows[1:]])
    reader: Any = reader_for(tmp_path / "recording.jsonl", all_readers(complete=False))
    transcript = reader.transcript(tmp_path / "recording.jsonl", stats=FileStats(), problems=[])
    assert transcript.feed([JsonRow(1, rows[0])]) == []
    assert transcript.pause() == []
    records = transcript.feed([JsonRow(number, one) for number, one in enumerate([header, *rows[1:]], 2)])
    assert session_keys(records or transcript.pause()) in ((KEY,), ())
    assert session_keys(whole) == (KEY,)


def test_oh_my_pi_writes_a_title_before_the_header(tmp_path: Path) -> None:
    header, row = HEADERS["pi"]
    title = {"type": "title", "v": 1, "title": "", "updatedAt": AT.format(0), "pad": " "}
    records, problems = read(tmp_path / "recording.jsonl", [title, header, row(0), row(1)])

    assert isinstance(records[0], SessionOpened)
    assert (records[0].session_key, records[0].folder) == (KEY, "/project")
    assert problems == []
    records, _ = read(tmp_path / "recording.jsonl", [title | {"title": "Fix the port"}, header, row(0), row(1)])
    assert [one.title for one in records if isinstance(one, SessionDescribed) if one.title] == ["Fix the port"]
