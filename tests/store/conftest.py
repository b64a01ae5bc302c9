"""Scripted sessions from the real tracker, and stores for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path

import pytest

from windowpane.core.events import BlocksEvicted, ContentCompressed, Event, EvictedBlock, Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.store.embedded import SqliteStore

START = 1_700_000_000.0

MakeSession = Callable[..., list[Event]]


def digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()


def make_tracker(
    session_id: str, emit: Callable[[list[Event]], None], *, agent: str = "reviewer"
) -> SessionTracker:
    info = SessionInfo(session_id, agent, "gpt-5", "demo", f"{session_id}-stream")
    return SessionTracker(info, emit=emit, digest=digest, limits=WindowLimits.of(32_768, "given"))


def play(tracker: SessionTracker, turns: int, *, end: bool = True, start: float = START) -> None:
    """Play a session with growth, an eviction with a placeholder, a compaction and usage in every turn."""
    at = start
    tracker.start(at, task="mend it")
    tracker.add("system_prompt", "be brief", 40, pinned=True, at=at)
    for number in range(turns):
        at += 1
        tracker.add("user_message", f"please {number}", 100 + number, at=at)
        tracker.add("assistant_response", f"certainly {number}", 50, at=at)
        call = tracker.add("tool_call", f"read {number}", 20, tool_call_id=f"c{number}", tool_name="read", at=at)
        total = tracker.window.tokens + 300
        tracker.end_turn(
            Usage(input_tokens=total, output_tokens=70), cost_dollars=0.01, latency_seconds=2.0, at=at
        )
        result = tracker.add(
            "tool_result", f"file {number}" * 9, 400, tool_call_id=f"c{number}", tool_name="read", at=at
        )
        tracker.mark_referenced((call.id,), result.id, at)
        if number == 3:
            mask(tracker, result.id, at)
        if number == 6:
            compact(tracker, at)
    if end:
        tracker.end("done", at)
    tracker.flush()


def mask(tracker: SessionTracker, block_id: str, at: float) -> None:
    """Replace a tool result by a placeholder."""
    old = tracker.window.slot(block_id).block
    stand_in = tracker.make_replacement("placeholder", "gone", 8, replaces=block_id)
    evicted = EvictedBlock(block_id, old.content_type, old.tokens, "mask", "older than 8 turns", 0.2)
    evicted = EvictedBlock(*[
        {"replacement": stand_in.id, "replacement_tokens": 8}.get(name, getattr(evicted, name))
        for name in EvictedBlock.__dataclass_fields__
    ])  # fmt: skip
    tracker.evict(BlocksEvicted("hybrid", (evicted,), old.tokens, old.tokens - 8), (stand_in,), at)


def compact(tracker: SessionTracker, at: float) -> None:
    """Replace the unpinned part of the window by a summary."""
    removed = [block for block in tracker.window if not block.pinned and block.content_type != "unattributed"]
    summary = tracker.make_replacement("summary", "what was said", 60, replaces=removed[0].id)
    tracker.compress(
        ContentCompressed(
            "compaction", "manual", "accepted", sum(block.tokens for block in removed), 60,
            removed=tuple(block.id for block in removed), results=(summary.id,), method="extractive",
        ),
        (summary,),
        at,
    )  # fmt: skip


@pytest.fixture
def make_session() -> MakeSession:
    """A function that returns a session's whole event sequence."""

    def make(session_id: str = "s1", turns: int = 8, *, end: bool = True, start: float = START) -> list[Event]:
        events: list[Event] = []
        play(make_tracker(session_id, events.extend), turns, end=end, start=start)
        return events

    return make


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    """An empty store."""
    opened = SqliteStore(tmp_path / "windowpane.db")
    yield opened
    opened.close()
