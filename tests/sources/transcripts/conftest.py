"""Builds Claude Code transcripts row by row, for the tests of their reader."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from windowpane.sources.transcripts.formats.claude_code.reader import ClaudeCodeReader

sys.path.insert(0, str(Path(__file__).parent))

from reads import Json, Read, read_rows  # found once its folder is on the path

MODEL = "claude-sonnet-4-5"


class Transcript:
    """Builds rows and reads them."""

    def __init__(self, session: str = "s", version: str = "") -> None:
        self._session = session
        self._version = {"version": version} if version else {}
        self.rows: list[Json] = []

    def _row(self, kind: str, **more: Any) -> Transcript:
        number = len(self.rows)
        row = {
            "type": kind,
            "sessionId": self._session,
            "uuid": f"u{number}",
            "timestamp": f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z",
            **self._version,
        }
        self.rows.append(row | more)
        return self

    def user(self, content: Any, **more: Any) -> Transcript:
        return self._row("user", message={"role": "user", "content": content}, **more)

    def result(self, call_id: str, output: Any = "done", **more: Any) -> Transcript:
        return self.user([{"type": "tool_result", "tool_use_id": call_id, "content": output}], **more)

    def reply(self, message_id: str, *blocks: Json, stop: str | None = None, **more: Any) -> Transcript:
        model = more.pop("model", MODEL)
        usage = more.pop("usage", {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 5})
        message = {
            "id": message_id,
            "role": "assistant",
            "model": model,
            "content": list(blocks),
            "usage": usage,
            "stop_reason": stop,
        }
        return self._row("assistant", message=message, **more)

    def system(self, subtype: str, **more: Any) -> Transcript:
        return self._row("system", subtype=subtype, **more)

    def other(self, kind: str, **more: Any) -> Transcript:
        return self._row(kind, **more)

    def read(self, tmp_path: Path, *, complete: bool = True, tail: bytes = b"") -> Read:
        return read_rows(ClaudeCodeReader(complete=complete), tmp_path, self.rows, tail=tail)


@pytest.fixture
def transcript() -> type[Transcript]:
    """An empty transcript of a session, to be written with its methods."""
    return Transcript


@pytest.fixture
def read_transcript() -> Callable[[Path], Read]:
    """Reads a finished file of Claude Code's."""
    return lambda path: Read(ClaudeCodeReader(complete=True), path)
