"""Recordings to replay: a scripted loop as a file, and real ones if available."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from windowpane.evaluation.replay import FileSource, PreparedRecording, find_recordings

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "manager")]

WriteLoop = Callable[..., FileSource]


def loop(rounds: int, *, words: int = 600, again: int | None = None) -> list[dict[str, Any]]:
    """An agent that reads one file per turn; *again* is a round whose file the last turn reads once more."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You are a careful engineer."},
        {"role": "user", "content": "Find out why the service does not start."},
    ]
    numbers = [*range(rounds), *([] if again is None else [again])]
    for at, number in enumerate(numbers):
        call = {
            "id": f"call_{at}",
            "type": "function",
            "function": {"name": "read", "arguments": json.dumps({"part": number})},
        }
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        text = f"part {number} of helper_module_{number}.py: " + f"word{number} " * words
        messages.append({"role": "tool", "tool_call_id": f"call_{at}", "content": text})
    messages.append({"role": "assistant", "content": "Done."})
    return messages


@pytest.fixture
def write_loop(tmp_path: Path) -> WriteLoop:
    """Write a scripted conversation and return its source."""

    def write(rounds: int, *, name: str = "loop.json", **options: Any) -> FileSource:
        path = tmp_path / name
        path.write_text(json.dumps(loop(rounds, **options)), encoding="utf-8")
        (source,) = find_recordings([path])
        return source

    return write


@pytest.fixture
def prepared(write_loop: WriteLoop) -> PreparedRecording:
    """Forty rounds of about 1,200 tokens."""
    return PreparedRecording(write_loop(40).load())
