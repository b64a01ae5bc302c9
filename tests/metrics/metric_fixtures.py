"""Fixtures for tests of metrics in any room: events of made-up sessions, and the values of families."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Protocol

import pytest

from windowpane.core.agents import AgentProgram
from windowpane.core.events import Event, EventContext, Payload, PressureMeasured, Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking.tracker import SessionInfo, SessionTracker
from windowpane.metrics.families import Family
from windowpane.metrics.fold import MetricState

Value = Callable[..., "float | None"]


class MakeEvent(Protocol):
    """An event of a session that needs nothing but its payload."""

    def __call__(
        self,
        data: Payload,
        *,
        session: str = "s1",
        agent: str = "reviewer",
        model: str = "gpt-5",
        at: float | None = 1_000.0,
    ) -> Event: ...


@pytest.fixture
def make_event() -> MakeEvent:
    """Wrap a payload in an envelope; every call is the next event of its session's stream."""
    numbers = count()

    def make(
        data: Payload,
        *,
        session: str = "s1",
        agent: str = "reviewer",
        model: str = "gpt-5",
        at: float | None = 1_000.0,
        turn: int = 1,
    ) -> Event:
        context = EventContext(session, agent, model, turn, 1, "live", f"stream-{session}")
        return Event(context, next(numbers), at, data)

    return make


@pytest.fixture
def measured() -> Callable[..., PressureMeasured]:
    """A final measurement of 1,000 used tokens, with what a test cares about replaced."""

    def make(**fields: object) -> PressureMeasured:
        given: dict[str, object] = {
            "phase": "final",
            "used_tokens": 1_000,
            "used_by_component": {"message_history": 1_000},
            "count_source": "usage",
        }
        return PressureMeasured(**(given | fields))  # type: ignore[arg-type]

    return make


@pytest.fixture
def value_of() -> Value:
    """The value of one series of some families, or None where there is none."""

    def value(families: list[Family], name: str, **labels: str) -> float | None:
        for family in families:
            if family.metric.name != name:
                continue
            for point in family.points:
                labels_of_point = dict(zip(family.metric.labels, point.labels, strict=True))
                if labels.items() <= labels_of_point.items():
                    return point.value
        return None

    return value


@pytest.fixture
def scripted_state() -> MetricState:
    """The fold of a small real session: six turns that fill an 8K window, with one duplicate result."""
    state = MetricState()
    tracker = SessionTracker(
        SessionInfo("scripted", "reviewer", "gpt-5", "live", "stream"),
        emit=state.write,
        digest=lambda text: text,
        limits=WindowLimits.of(8_192, "given"),
        clock=lambda: 1_000.0,
        program=AgentProgram("reviewer", compaction_tokens=7_000),
    )
    tracker.start(task="Migrate user-service")
    used = 0
    for turn in range(1, 7):
        tracker.add("user_message", f"message {turn}", 600)
        tracker.add("tool_result", f"result {turn % 5}", 300, tool_call_id=f"call-{turn}")
        used += 900
        tracker.end_turn(Usage(used - 100, 40, cache_read_tokens=100, reasoning_tokens=5), cost_dollars=0.25)
    return state
