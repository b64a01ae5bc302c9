"""An observer on an in-memory tracker, and the messages an agent sends."""

from __future__ import annotations

import sys
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from windowpane.core.limits import WindowLimits
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.models.wire.calls import Shape, parse_call, read_whole
from windowpane.sources.conversations.diff import ModelProfile
from windowpane.sources.conversations.observer import WindowObserver
from windowpane.testing import CharacterCounter, RecordingSink

sys.path.insert(0, str(Path(__file__).parent))

Messages = list[dict[str, Any]]


def digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest()


class Agent:
    """An agent that keeps its own message list and is watched."""

    def __init__(self, *, shape: Shape = "chat", limit: int | None = 100_000, session_id: str = "s") -> None:
        self.sink = RecordingSink()
        self.shape: Shape = shape
        limits = None if limit is None else WindowLimits.of(limit, "given")
        self.tracker = SessionTracker(
            SessionInfo(session_id, "a", "m", "live", f"stream/{session_id}"),
            emit=self.sink.write,
            digest=digest,
            limits=limits,
        )
        self.tracker.start()
        self.observer = WindowObserver(
            self.tracker, lambda _: ModelProfile(CharacterCounter(), limits, media_tokens=100), digest=digest
        )
        self.body: dict[str, Any] = {"model": "m"}

    def send(self, messages: Any, reply: object | None = None, **body: Any) -> None:
        """One call with its reply; without one the call stays under way."""
        name = {"responses": "input", "gemini": "contents"}.get(self.shape, "messages")
        call = parse_call(self.shape, {**self.body, **body, name: messages})
        self.observer.record_call(call)
        if reply is not None:
            self.observer.record_reply(read_whole(reply, self.shape))

    def window(self) -> list[tuple[str, str | None]]:
        """Return the content of the window: content types and texts in order."""
        self.tracker.flush()
        return [(block.content_type, block.text) for block in self.tracker.window]


@pytest.fixture
def agent() -> Agent:
    return Agent()


@pytest.fixture
def agent_of() -> Callable[..., Agent]:
    return Agent
