"""Folding one turn of three blocks into every metric, against as many bare attribute increments.

The work of one turn is what its events change: the benchmark counts the counters, buckets, sums and gauges that
differ or are set again, and increments that many attributes of a slotted object as the floor. With OTLP on the
same turns are also queued as log records for a receiver that takes everything at once; when the sender's thread
has caught up is printed beside it. Run: `python benchmarks/bench_fold.py [turns]`.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Sequence

from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExportResult
from opentelemetry.sdk.resources import Resource

from windowpane.core.events import Event, Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking.tracker import SessionInfo, SessionTracker
from windowpane.metrics.fold import MetricState
from windowpane.outputs.otlp.logs import EventLogs

BUDGET = 10.0
OTLP_BUDGET = 2.0


def turns_of_events(turns: int) -> list[list[Event]]:
    """The event lists of a session's turns, each of a user message, a tool call and its result."""
    lists: list[list[Event]] = []
    tracker = SessionTracker(
        SessionInfo("session", "reviewer", "gpt-5", "live", "stream"),
        emit=lists.append,
        digest=lambda text: text,
        limits=WindowLimits.of(400_000, "catalogue"),
        clock=lambda: 1_000.0,
    )
    used = 0
    for turn in range(turns):
        tracker.add("tool_result", f"result {turn}", 30, tool_call_id=f"call-{turn}")
        tracker.add("user_message", f"message {turn}", 20)
        tracker.measure("before")
        tracker.add("tool_call", f"call {turn}", 10, tool_call_id=f"call-{turn + 1}")
        used += 60
        tracker.end_turn(Usage(used, 30, 100, 0, 10), cost_dollars=0.01)
    return lists


def updates_of(events: list[Event]) -> int:
    """Single numbers that these events set or increase."""
    updates = 0
    for event in events:
        data = event.data
        if data.type == "block.added":
            updates += 2  # a bucket and the sum
        elif data.type == "turn.ended":
            updates += 1 + 1 + 5 + 4  # turns, cost, five kinds of tokens, two observations of token usage
        elif data.type == "pressure.measured":
            updates += 27  # gauges
            if data.phase == "final":
                updates += len(data.added_by_component) + 3 + 2 + 1  # added, carried, utilization, its error
        updates += 1  # the time of the session's last event
    return updates


class Bare:
    """One attribute, nothing else."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


def increments(count: int) -> Callable[[], None]:
    """A function that increments an attribute *count* times, with no loop around it."""
    scope: dict[str, Callable[[], None]] = {}
    body = "\n    ".join(["bare.value += 1"] * count)
    exec(f"def run(bare=bare):\n    {body}", {"bare": Bare()}, scope)
    return scope["run"]


class TakesAll:
    """A receiver without a network."""

    def __init__(self) -> None:
        self.records = 0

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        self.records += len(encode_logs(batch).resource_logs[0].scope_logs[0].log_records)
        return LogRecordExportResult.SUCCESS

    def force_flush(self, timeout_millis: int = 0) -> bool:
        return timeout_millis >= 0

    def shutdown(self) -> None:
        """Nothing is held."""


def with_otlp(lists: list[list[Event]]) -> None:
    """Fold with and without log records by turns, then let the sender catch up."""
    plain, pushed, taker = MetricState(), MetricState(), TakesAll()
    logs = EventLogs(taker, resource=Resource({}), queue_events=10**9)  # type: ignore[arg-type]  # the exporter's shape
    alone: list[float] = []
    beside: list[float] = []
    for batch in lists:
        started = time.perf_counter()
        plain.write(batch)
        middle = time.perf_counter()
        pushed.write(batch)
        logs.write(batch)
        beside.append(time.perf_counter() - middle)
        alone.append(middle - started)
    started = time.perf_counter()
    logs.close(120)
    ratio = statistics.median(beside) / statistics.median(alone)
    events = sum(len(batch) for batch in lists)
    print(
        f"fold with OTLP on: {statistics.median(beside) * 1e6:.1f} µs, "
        f"{statistics.median(alone) * 1e6:.1f} µs alone; "
        f"ratio {ratio:.2f}, at most {OTLP_BUDGET:.0f}: {'met' if ratio <= OTLP_BUDGET else 'MISSED'}; "
        f"{taker.records} of {events} records sent, the last of them {time.perf_counter() - started:.2f} s later"
    )


def main() -> int:
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 3_000
    lists = turns_of_events(turns)
    state = MetricState()
    state.write(lists[0])
    floor = increments(updates_of(lists[-1]))
    folded: list[float] = []
    bare: list[float] = []
    for batch in lists[1:]:
        started = time.perf_counter()
        state.write(batch)
        middle = time.perf_counter()
        floor()
        folded.append(middle - started)
        bare.append(time.perf_counter() - middle)
    ours, least = statistics.median(folded), statistics.median(bare)
    ratio = ours / least
    print(
        f"fold: one turn of {len(lists[-1])} events, {updates_of(lists[-1])} updates: {ours * 1e6:.1f} µs; "
        f"as many bare increments {least * 1e6:.2f} µs; ratio {ratio:.1f}, at most {BUDGET:.0f}: "
        f"{'met' if ratio <= BUDGET else 'MISSED'}"
    )
    with_otlp(lists)
    return 0


if __name__ == "__main__":
    sys.exit(main())
