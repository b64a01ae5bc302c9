"""The session of a call is the one that its program records meanwhile, where the call states none."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from windowpane.sources.proxy.recorded_sessions import RecordedSessions

NOW = 1_767_261_600.0
MAIN, OTHER, CHILD = (f"0a1b2c3d-0000-4000-8000-00000000000{number}" for number in (1, 2, 3))


class Gemini:
    """The folder of Gemini CLI's recordings of one project."""

    def __init__(self, folder: Path) -> None:
        self.work = folder / "work"
        self.work.mkdir()
        self.chats = folder / ".gemini" / "tmp" / "work" / "chats"
        self.chats.mkdir(parents=True)
        (self.chats.parent / ".project_root").write_text(str(self.work))

    def write(self, session: str, prompt: str, *, at: float = NOW, below: str = "", start: str = "10:00") -> None:
        kind = "subagent" if below else "main"
        rows: list[dict[str, Any]] = [
            {"sessionId": session, "startTime": f"2026-01-01T{start}:00Z", "kind": kind},
            {"id": "1", "type": "user", "content": [{"text": prompt}]},
        ]
        path = self.chats / below / f"session-{session}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(path, (at, at))

    def session_of(self, *texts: str, folder: Path | None = None) -> tuple[str, str] | None:
        return RecordedSessions(folder or self.work, since=NOW - 60).of("gemini-cli", texts)


@pytest.fixture
def gemini(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gemini:
    monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path))
    return Gemini(tmp_path)


def test_a_call_is_in_the_session_that_was_written_to_since(gemini: Gemini) -> None:
    gemini.write(OTHER, "Yesterday.", at=NOW - 86_400)
    assert gemini.session_of("Go.") is None
    gemini.write(MAIN, "Go.")

    assert gemini.session_of("<context>", "Go.") == (MAIN, "")
    assert gemini.session_of("A summary of what was done.") == (MAIN, "")
    assert gemini.session_of("Go.", folder=gemini.chats) is None


def test_a_sub_agent_starts_with_the_task_of_its_recording(gemini: Gemini) -> None:
    gemini.write(MAIN, "Go.")
    gemini.write(CHILD, "Count the lines.", below=MAIN)

    assert gemini.session_of("Count the lines.") == (CHILD, MAIN)
    assert gemini.session_of("<context>", "Go.") == (MAIN, "")


@pytest.mark.parametrize(("start", "session"), [("09:00", None), ("10:30", (OTHER, ""))])
def test_of_two_sessions_that_go_on_neither_is_taken(
    gemini: Gemini, start: str, session: tuple[str, str] | None
) -> None:
    """One that started after the other one had ended is the next session of the same program."""
    gemini.write(MAIN, "Go.", at=NOW - 10)
    gemini.write(OTHER, "Go.", start=start)

    assert gemini.session_of("Go.") == session


def test_a_resumed_session_is_the_one_that_starts_as_the_call_does(gemini: Gemini) -> None:
    """A command that compacts is not in the recording before its call."""
    gemini.write(MAIN, "Go.", at=NOW - 86_400)
    gemini.write(OTHER, "Stay.", at=NOW - 3_600)
    recorded = RecordedSessions(gemini.work, since=NOW)

    assert recorded.of("gemini-cli", ["<context>", "Go."], resumes=True) == (MAIN, "")
    assert recorded.of("gemini-cli", ["Go."]) is None
    assert recorded.of("gemini-cli", ["Run."], resumes=True) is None


def test_other_programs_have_no_recordings(gemini: Gemini) -> None:
    gemini.write(MAIN, "Go.")

    assert RecordedSessions(gemini.work, since=NOW).of("codex", ["Go."]) is None
