"""A tracked session that collects its events, for the tests of the tracker."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from windowpane.core.events import (
    BlocksEvicted,
    ContentCompressed,
    Event,
    EvictedBlock,
    PressureMeasured,
    Usage,
)
from windowpane.core.limits import TrackerSettings, WindowLimits
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.core.window.blocks import Block

P = TypeVar("P")


class Session:
    """One tracker, the events it emitted, and shortcuts for facts about it."""

    def __init__(
        self,
        limits: WindowLimits | None,
        *,
        clock: Callable[[], float] | None = None,
        next_limit: Callable[[int], int | None] | None = None,
        settings: TrackerSettings | None = None,
        make_tracker: Callable[..., SessionTracker] = SessionTracker,
    ) -> None:
        self.emitted: list[Event] = []
        self.batches = 0
        self.tracker = make_tracker(
            SessionInfo("s", "agent", "model", "test", "stream"),
            emit=self._take,
            digest=lambda text: f"d:{text}",
            limits=limits,
            settings=settings,
            clock=clock,
            next_limit=next_limit,
        )

    def _take(self, batch: list[Event]) -> None:
        assert batch
        self.batches += 1
        self.emitted += batch

    @property
    def events(self) -> list[Event]:
        """All events so far, those still buffered included."""
        self.tracker.flush()
        return self.emitted

    def of(self, kind: type[P]) -> list[P]:
        """The payloads of one kind."""
        return [event.data for event in self.events if isinstance(event.data, kind)]

    def phases(self, phase: str) -> list[PressureMeasured]:
        """The measurements of one phase."""
        return [measured for measured in self.of(PressureMeasured) if measured.phase == phase]

    def add_user(self, tokens: int, **fields: Any) -> Block:
        """Add a user message."""
        return self.tracker.add("user_message", None, tokens, **fields)

    def turn(self, user: int = 0, reply: int = 0, *, total: int | None = None) -> PressureMeasured:
        """A whole turn: a message, a reply, and the provider's total where there is one."""
        if user:
            self.add_user(user)
        if reply:
            self.tracker.add("assistant_response", None, reply)
        return self.tracker.end_turn(None if total is None else Usage(input_tokens=total))

    def call(self, call_id: str, arguments: str, *, tokens: int = 5) -> Block:
        """Add a tool call."""
        return self.tracker.add("tool_call", arguments, tokens, tool_call_id=call_id, tool_name="read")

    def result(self, call_id: str, text: str, *, tokens: int = 100) -> Block:
        """Add the result of a tool call."""
        return self.tracker.add("tool_result", text, tokens, tool_call_id=call_id, tool_name="read")

    def evict(self, *blocks: Block, form: str = "drop", placeholders: tuple[Block, ...] = ()) -> Event:
        """A policy evicted blocks."""
        evicted = tuple(
            EvictedBlock(block.id, block.content_type, block.tokens, form, "test")  # type: ignore[arg-type]
            for block in blocks
        )
        tokens = sum(block.tokens for block in blocks)
        return self.tracker.evict(BlocksEvicted("test", evicted, tokens, tokens), placeholders)

    def compact(
        self,
        *blocks: Block,
        result: int,
        scope: str = "window",
        after: int | None = None,
        stated: int | None = None,
    ) -> Event:
        """Replace blocks by a summary."""
        summary = self.tracker.make_replacement(
            "summary", "so far", result, replaces=blocks[0].id if blocks else None
        )
        compression = ContentCompressed(
            "compaction",
            "auto",
            "accepted",
            0,
            0,
            scope,
            tuple(block.id for block in blocks),
            (summary.id,),  # type: ignore[arg-type]
        )
        return self.tracker.compress(compression, (summary,), window_tokens=after, window_tokens_before=stated)

    def kinds(self) -> list[str]:
        """The names of all events."""
        return [event.type for event in self.events]


@pytest.fixture
def session() -> Callable[..., Session]:
    """Make a tracked session; a bare number is a limit with neither reserve nor margin, given by the user."""

    def make(limit: int | WindowLimits | None = None, **options: Any) -> Session:
        limits = WindowLimits(limit, "given", 0, 0) if isinstance(limit, int) else limit
        return Session(limits, **options)

    return make
