"""The report of dropped events."""

from __future__ import annotations

from windowpane.core.events import Event, EventContext, TelemetryDropped, TurnStarted
from windowpane.outputs.runtime.sink_runner import DropReport


def event(n: int, stream: str = "s") -> Event:
    return Event(EventContext("s", "a", "m", 1, 1, "live", stream), n, 1.0, TurnStarted())


def test_consecutive_drops_of_a_stream_are_reported_as_one_gap_and_only_once() -> None:
    dropped = DropReport("queue_full")
    dropped.add([event(3), event(4)])
    dropped.add([event(5)])
    dropped.add([event(9, "other")])

    (report,) = dropped.take("s")

    assert (report.n, report.data) == (5, TelemetryDropped(3, 5, "queue_full"))
    assert dropped.take("s") == []
    assert [other.n for other in dropped.take_all()] == [9]
    assert not dropped


def test_a_dropped_report_is_included_in_the_next_one() -> None:
    dropped = DropReport("sink_failed")
    dropped.add([event(3)])

    dropped.add([*dropped.take("s"), event(4)])

    (report,) = dropped.take("s")
    assert report.data == TelemetryDropped(3, 4, "sink_failed")
