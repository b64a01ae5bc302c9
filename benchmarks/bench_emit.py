"""Cost of emitting one turn of 20 new blocks from the agent's thread, no tokenization.

Floor: constructing and appending 20 slotted instances of three fields. Also compares histories of 10 and 100,000
blocks. Prints ratios; accepts `--json`.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections import deque

from windowpane.core.digests import keyed_digester
from windowpane.core.events import Event, Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking import SessionInfo, SessionTracker

BLOCKS = 20
ROUNDS = 15
TURNS = 40
TEXT = "The quick brown fox jumps over the lazy dog, then reads src/app/main.py line 42 again. " * 2


class Floor:
    __slots__ = ("a", "b", "c")

    def __init__(self, a: int, b: int, c: str) -> None:
        self.a = a
        self.b = b
        self.c = c


def make_tracker(history: int) -> SessionTracker:
    queue: deque[list[Event]] = deque(maxlen=100)  # a worker that keeps up
    tracker = SessionTracker(
        SessionInfo("session", "agent", "gpt-5", "live", "stream"),
        emit=queue.append,
        digest=keyed_digester(b"benchmark"),
        limits=WindowLimits.of(400_000_000, "given"),
        clock=time.time,
    )
    tracker.start()
    for number in range(history):
        tracker.add("tool_result", f"{number} {TEXT}", 50)
        if number % BLOCKS == BLOCKS - 1:
            tracker.end_turn(None)
    return tracker


def floor_seconds() -> float:
    started = time.perf_counter()
    for _ in range(TURNS):
        made: list[Floor] = []
        for number in range(BLOCKS):
            made.append(Floor(number, number, TEXT))  # noqa: PERF401  # the floor is construct and append
    return (time.perf_counter() - started) / TURNS


def emit_seconds(tracker: SessionTracker, texts: list[str]) -> float:
    usage = Usage(1000, 50)
    started = time.perf_counter()
    for turn in range(TURNS):
        for text in texts[turn * BLOCKS : (turn + 1) * BLOCKS]:
            tracker.add("tool_result", text, 50)
        tracker.end_turn(usage)
    return (time.perf_counter() - started) / TURNS


def main() -> None:
    small, large = make_tracker(10), make_tracker(100_000)
    results: dict[str, list[float]] = {"floor": [], "10": [], "100000": []}
    for round_number in range(ROUNDS):
        texts = [f"{round_number} {number} {TEXT}" for number in range(TURNS * BLOCKS)]
        results["floor"].append(floor_seconds())
        results["10"].append(emit_seconds(small, [f"s{text}" for text in texts]))
        results["100000"].append(emit_seconds(large, [f"l{text}" for text in texts]))
        if round_number == 0:
            small = make_tracker(10)
    medians = {name: statistics.median(values) for name, values in results.items()}
    values = {
        "floor_microseconds": medians["floor"] * 1e6,
        "turn_microseconds_at_10_blocks": medians["10"] * 1e6,
        "turn_microseconds_at_100000_blocks": medians["100000"] * 1e6,
        "ratio_to_floor": medians["10"] / medians["floor"],
        "ratio_of_histories": medians["100000"] / medians["10"],
    }
    if "--json" in sys.argv:
        print(json.dumps(values))
        return
    print(f"floor: 20 slotted instances      {values['floor_microseconds']:8.1f} µs")
    print(f"turn of 20 blocks, 10 before     {values['turn_microseconds_at_10_blocks']:8.1f} µs"
          f"   {values['ratio_to_floor']:5.1f} × floor (target at most 40)")  # fmt: skip
    print(f"turn of 20 blocks, 100,000 before{values['turn_microseconds_at_100000_blocks']:8.1f} µs"
          f"   {values['ratio_of_histories']:5.2f} × the same with 10 (target at most 1.2)")  # fmt: skip


if __name__ == "__main__":
    main()
