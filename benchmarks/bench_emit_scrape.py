"""Latency of emitting a turn while metrics are scraped without a pause, against an equally busy thread.

Two threads share one interpreter whatever they do; the floor is therefore the same emitting beside a thread that
is as busy and shares nothing with us: it renders as many samples, made beforehand, with the same library. What is
above the floor would be waiting for a lock. The p99 of each run, taken in turns; the ratio is the median of nine,
with its spread. Run: `python benchmarks/bench_emit_scrape.py [sessions]`.
"""

from __future__ import annotations

import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric as PrometheusFamily
from prometheus_client.registry import Collector

from windowpane.digests import keyed_digester
from windowpane.events import Event, EventContext, PressureMeasured, SessionStarted, Usage
from windowpane.metrics.prometheus import StateSource, registry_of
from windowpane.pipeline import Pipeline
from windowpane.settings import WindowLimits
from windowpane.state import MetricState
from windowpane.tracking import SessionInfo, SessionTracker

RUNS = 9
TURNS = 400
BUDGET = 1.2
PAUSE_SECONDS = 0.0005
"""Between turns, as an agent has it: otherwise the queue and not the scrape would be measured."""


class Premade(Collector):
    def __init__(self, families: list[PrometheusFamily]) -> None:
        self._families = families

    def collect(self) -> Iterator[PrometheusFamily]:
        yield from self._families


def live_state(sessions: int) -> MetricState:
    state = MetricState()
    for index in range(sessions):
        context = EventContext(f"s{index}", f"agent-{index % 10}", "gpt-5", 1, 1, "live", f"s{index}")
        used = 1_000 + index
        pressure = PressureMeasured("final", used, {"message_history": used}, "usage", 128_000, utilization=0.1)
        state.write([Event(context, 0, time.time(), SessionStarted()), Event(context, 1, time.time(), pressure)])
    return state


def emitted_beside(busy: Callable[[], object], state: MetricState, name: str) -> float:
    """The p99 of emitting a turn of three blocks, seconds, while another thread does *busy* over and over."""
    pipeline = Pipeline({"metrics": state})
    tracker = SessionTracker(
        SessionInfo(name, "agent-1", "gpt-5", "live", name),
        emit=pipeline.put,
        digest=keyed_digester(b"benchmark"),
        limits=WindowLimits.of(400_000_000, "given"),
        clock=time.time,
    )
    tracker.start()
    ending = threading.Event()

    def run() -> None:
        while not ending.is_set():
            busy()

    thread = threading.Thread(target=run)
    thread.start()
    taken: list[float] = []
    for turn in range(TURNS):
        began = time.perf_counter()
        for block in range(3):
            tracker.add("tool_result", f"{turn} {block} some text", 50)
        tracker.end_turn(Usage(1_000 + turn, 50))
        tracker.flush()
        taken.append(time.perf_counter() - began)
        time.sleep(PAUSE_SECONDS)
    ending.set()
    thread.join()
    pipeline.close()
    taken.sort()
    return taken[int(len(taken) * 0.99)]


def main() -> int:
    sessions = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    state = live_state(sessions)
    registry = registry_of(StateSource(state, clock=time.time))
    premade = CollectorRegistry(auto_describe=False)
    premade.register(Premade(list(registry.collect())))
    ratios: list[float] = []
    scraped: list[float] = []
    floor: list[float] = []
    for run in range(RUNS):
        floor.append(emitted_beside(lambda: generate_latest(premade), state, f"floor-{run}"))
        scraped.append(emitted_beside(lambda: generate_latest(registry), state, f"scraped-{run}"))
        ratios.append(scraped[-1] / floor[-1])
    ratio = statistics.median(ratios)
    print(
        f"emit under scrape: {sessions} live sessions, p99 {statistics.median(scraped) * 1e3:.2f} ms beside "
        f"scraping, {statistics.median(floor) * 1e3:.2f} ms beside an equally busy thread; ratio {ratio:.2f} "
        f"(from {min(ratios):.2f} to {max(ratios):.2f}), at most {BUDGET}: "
        f"{'met' if ratio <= BUDGET else 'MISSED'}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
