"""Folding one turn of three blocks into every metric, against as many bare attribute increments.

The work of one turn is what its events change: the benchmark counts the counters, buckets, sums and gauges that
differ or are set again, and increments that many attributes of a slotted object as the floor. Run:
`python benchmarks/bench_fold.py [turns]`.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

from windowpane.events import Event, Usage
from windowpane.settings import WindowLimits
from windowpane.state import MetricState
from windowpane.tracking.tracker import SessionInfo, SessionTracker

BUDGET = 10.0


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


def main() -> int:
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 3_000
    lists = turns_of_events(turns)
    state = MetricState()
    state.write(lists[0])
    floor = increments(updates_of(lists[-1]))
    folded: list[float] = []
    bare: list[float] = []
    for batch in lists[1:]:
        began = time.perf_counter()
        state.write(batch)
        middle = time.perf_counter()
        floor()
        folded.append(middle - began)
        bare.append(time.perf_counter() - middle)
    ours, least = statistics.median(folded), statistics.median(bare)
    ratio = ours / least
    print(
        f"fold: one turn of {len(lists[-1])} events, {updates_of(lists[-1])} updates: {ours * 1e6:.1f} µs; "
        f"as many bare increments {least * 1e6:.2f} µs; ratio {ratio:.1f}, at most {BUDGET:.0f}: "
        f"{'met' if ratio <= BUDGET else 'MISSED'}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
