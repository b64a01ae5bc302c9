"""The time that the agent's thread spends in `Pipeline.put`, with an idle and with a busy worker.

The floor is `queue.SimpleQueue.put` of the same lists with a thread that takes them, in the same run. The busy
worker judges alerts and folds metrics of everything that is put, at the rate of an agent that calls back to back.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from queue import SimpleQueue
from statistics import quantiles

from windowpane.alerts.engine import AlertEngine
from windowpane.core.events import Event, EventContext, PressureMeasured, TurnEnded, TurnStarted
from windowpane.core.vocabulary import COMPONENTS
from windowpane.metrics.fold import MetricState
from windowpane.outputs.runtime.pipeline import Pipeline

PUTS = 20_000
EVENTS_A_TURN = 24
PAUSE_SECONDS = 0.0002
"""Between two puts, so that the worker has its turn as it has beside a real agent."""


class Nothing:
    """A sink that costs nothing."""

    def write(self, batch: Sequence[Event]) -> None:
        """Take the batch and forget it."""


def turns(count: int) -> list[list[Event]]:
    base = EventContext("s", "agent", "gpt-4o", 0, 1, "live", "s")
    made: list[list[Event]] = []
    n = 0
    for turn in range(count):
        context = replace(base, turn=turn)
        payloads = [TurnStarted()] * (EVENTS_A_TURN - 2) + [TurnEnded(None, "estimate"), pressure(turn)]
        made.append([Event(context, n + i, 1.0, payload) for i, payload in enumerate(payloads)])
        n += EVENTS_A_TURN
    return made


def pressure(turn: int) -> PressureMeasured:
    used = 1_000 * (turn % 120)
    return PressureMeasured(
        used, dict.fromkeys(COMPONENTS, 0), "usage", limit_tokens=128_000, utilization=used / 128_000,
        zone="green", red_tokens=115_200, phase="final",
    )  # fmt: skip


def measure(put: Callable[[list[Event]], None], batches: list[list[Event]]) -> tuple[float, float]:
    """Microseconds a put at the median and at the 99th percentile."""
    clock = time.perf_counter_ns
    taken: list[int] = []
    for batch in batches:
        started = clock()
        put(batch)
        taken.append(clock() - started)
        until = clock() + int(PAUSE_SECONDS * 1e9)
        while clock() < until:
            pass
        if len(taken) % 50 == 0:
            time.sleep(PAUSE_SECONDS)
    cuts = quantiles(taken, n=100)
    return cuts[49] / 1_000, cuts[98] / 1_000


def floor(batches: list[list[Event]]) -> tuple[float, float]:
    queue: SimpleQueue[list[Event] | None] = SimpleQueue()

    def take() -> None:
        while queue.get() is not None:
            pass

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    seconds = measure(queue.put, batches)
    queue.put(None)
    thread.join()
    return seconds


def through(pipeline: Pipeline, batches: list[list[Event]]) -> tuple[float, float]:
    seconds = measure(pipeline.put, batches)
    assert pipeline.flush(60)
    pipeline.close()
    return seconds


def main() -> int:
    batches = turns(PUTS)
    rows = {
        "SimpleQueue.put": floor(batches),
        "put, worker idle": through(Pipeline({"nothing": Nothing()}, capacity_events=10**9), batches),
        "put, worker busy": through(
            Pipeline({"metrics": MetricState()}, engine=AlertEngine(), capacity_events=10**9), batches
        ),
    }
    base = rows["SimpleQueue.put"]
    print(f"{PUTS:,} puts of {EVENTS_A_TURN} events")
    for name, (median, high) in rows.items():
        print(
            f"{name:18} p50 {median:6.2f} us ({median / base[0]:.2f} x floor)"
            f"   p99 {high:7.2f} us ({high / base[1]:.2f} x floor)"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
