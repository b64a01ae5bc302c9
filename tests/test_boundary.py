"""The line no exception crosses, and the account of what was dropped."""

from __future__ import annotations

import logging

import pytest

from windowpane.core.events import Event, EventContext, TelemetryDropped, TurnStarted
from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.runtime.sink_runner import DropReport


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_an_exception_is_contained_and_told() -> None:
    """The body ends, what is to be done on failure is done, and the caller goes on."""
    done: list[str] = []

    with ErrorBoundary(logging.getLogger("test")).contain("work", failed=lambda: done.append("failed")):
        raise ValueError("broken")

    assert done == ["failed"]


def test_what_ends_the_program_passes() -> None:
    """An interrupt or an exit is not ours to hold back."""
    with pytest.raises(KeyboardInterrupt), ErrorBoundary(logging.getLogger("test")).contain("work"):
        raise KeyboardInterrupt


def test_each_kind_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """Repetitions are counted instead of logged; another kind is logged at once."""
    clock = Clock()
    boundary = ErrorBoundary(logging.getLogger("test"), clock=clock)

    for _ in range(5):
        boundary.log_failure("sink store", OSError("full"))
    boundary.log_failure("sink store", ValueError("bad"))
    clock.now = 61.0
    boundary.log_failure("sink store", OSError("full"))

    assert [record.message for record in caplog.records] == [
        "sink store failed: OSError: full",
        "sink store failed: ValueError: bad",
        "sink store failed: OSError: full",
        "4 similar messages since the last one",
    ]


def event(n: int, stream: str = "s") -> Event:
    return Event(EventContext("s", "a", "m", 1, 1, "live", stream), n, 1.0, TurnStarted())


def test_a_gap_is_told_once_with_its_whole_extent() -> None:
    """Drops of one stream that follow one another are one gap; telling about it ends it."""
    report = DropReport("queue_full")
    report.add([event(3), event(4)])
    report.add([event(5)])
    report.add([event(9, "other")])

    (told,) = report.take("s")

    assert (told.n, told.data) == (5, TelemetryDropped(3, 5, "queue_full"))
    assert report.take("s") == []
    assert [found.n for found in report.take_all()] == [9]
    assert not report


def test_an_account_that_is_lost_itself_is_carried_over() -> None:
    """Dropping the event that explains a gap keeps the gap's beginning."""
    report = DropReport("sink_failed")
    report.add([event(3)])

    report.add([*report.take("s"), event(4)])

    (told,) = report.take("s")
    assert told.data == TelemetryDropped(3, 4, "sink_failed")
