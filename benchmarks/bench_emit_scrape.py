"""Latency of emitting a turn while metrics are scraped without a pause, against an equally busy thread.

Two threads share one interpreter whatever they do, so the floor is the same emitting beside a thread that does
the same work on the same number of sessions and shares nothing with us: it scrapes a twin of the state that
receives no writes. Allocation, garbage collection and the times at which it lets go of the interpreter are
alike; what is above the floor is waiting for a lock, or for data that two threads touch. A second comparison,
not judged, is a thread that only renders as many samples made beforehand.

A turn is emitted in tenths of a millisecond, and one in some hundred meets the interpreter's switch interval of
5 ms or is put aside by the machine: a p99 of few turns is a lottery. So the three take turns in blocks of 50
within each run, over one pipeline, and each has a thousand samples a run or more. The ratio is the median of
nine runs, with its spread; pooled is over all runs together. Run: `python benchmarks/bench_emit_scrape.py
[--sessions N] [--turns N]`.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric as PrometheusFamily
from prometheus_client.registry import Collector

from windowpane.core.digests import keyed_digester
from windowpane.core.events import Event, EventContext, PressureMeasured, SessionStarted, Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.metrics.fold import MetricState, StateSource
from windowpane.metrics.prometheus import registry_of
from windowpane.outputs.runtime.pipeline import Pipeline

RUNS = 9
TURNS = 1_000
BLOCK = 50
BUDGET = 1.2
PAUSE_SECONDS = 0.0005
"""Between turns, as an agent has it: otherwise the queue and not the scrape would be measured."""

Busy = Callable[[], object]


class Premade(Collector):
    def __init__(self, families: list[PrometheusFamily]) -> None:
        self._families = families

    def collect(self) -> Iterator[PrometheusFamily]:
        yield from self._families


class Agent:
    """One tracked session whose events go through a pipeline into *state*."""

    def __init__(self, state: MetricState, name: str) -> None:
        self.pipeline = Pipeline({"metrics": state})
        self._turn = 0
        self._tracker = SessionTracker(
            SessionInfo(name, "agent-1", "gpt-5", "live", name),
            emit=self.pipeline.put,
            digest=keyed_digester(b"benchmark"),
            limits=WindowLimits.of(400_000_000, "given"),
            clock=time.time,
        )
        self._tracker.start()

    def emit(self) -> float:
        """Emit a turn of three blocks; returns the seconds it kept the agent waiting."""
        turn, tracker = self._turn, self._tracker
        self._turn += 1
        started = time.perf_counter()
        for block in range(3):
            tracker.add("tool_result", f"{turn} {block} some text", 50)
        tracker.end_turn(Usage(1_000 + turn, 50))
        tracker.flush()
        return time.perf_counter() - started


def live_state(sessions: int) -> MetricState:
    state = MetricState()
    for index in range(sessions):
        context = EventContext(f"s{index}", f"agent-{index % 10}", "gpt-5", 1, 1, "live", f"s{index}")
        used = 1_000 + index
        pressure = PressureMeasured(
            used, {"message_history": used}, "usage", 128_000, utilization=0.1, phase="final"
        )
        state.write([Event(context, 0, time.time(), SessionStarted()), Event(context, 1, time.time(), pressure)])
    return state


def block(agent: Agent, busy: Busy) -> list[float]:
    """Latencies of a block of turns while another thread does *busy* over and over, except the first two."""
    ending = threading.Event()

    def run() -> None:
        while not ending.is_set():
            busy()

    thread = threading.Thread(target=run)
    thread.start()
    taken: list[float] = []
    for _ in range(BLOCK + 2):
        taken.append(agent.emit())
        time.sleep(PAUSE_SECONDS)
    ending.set()
    thread.join()
    return taken[2:]


def measured(state: MetricState, threads: Mapping[str, Busy], *, turns: int, name: str) -> dict[str, list[float]]:
    """Latencies beside each of the busy threads, in alternating blocks."""
    agent = Agent(state, name)
    taken: dict[str, list[float]] = {kind: [] for kind in threads}
    kinds = list(threads)
    for number in range(max(1, turns // BLOCK)):
        shift = number % len(kinds)
        for kind in kinds[shift:] + kinds[:shift]:
            gc.collect()
            taken[kind] += block(agent, threads[kind])
    agent.pipeline.close()
    return taken


def p99(taken: Sequence[float]) -> float:
    return sorted(taken)[int(len(taken) * 0.99)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sessions", type=int, default=1_000)
    parser.add_argument("--turns", type=int, default=TURNS, help="a run, beside each thread")
    given = parser.parse_args()
    state, twin = live_state(given.sessions), live_state(given.sessions)
    registry, aside = (registry_of(StateSource(one, clock=time.time)) for one in (state, twin))
    premade = CollectorRegistry(auto_describe=False)
    premade.register(Premade(list(registry.collect())))
    threads: dict[str, Busy] = {
        "scraped": lambda: generate_latest(registry),
        "twin": lambda: generate_latest(aside),
        "rendered": lambda: generate_latest(premade),
    }
    runs = [measured(state, threads, turns=given.turns, name=f"run-{run}") for run in range(RUNS)]
    pooled = {kind: [one for run in runs for one in run[kind]] for kind in threads}
    print(f"emit under scrape: {given.sessions} live sessions, {RUNS} runs of {given.turns} turns beside each")
    for kind, taken in pooled.items():
        print(f"beside {kind:<8}  p50 {statistics.median(taken) * 1e3:5.2f} ms  p99 {p99(taken) * 1e3:5.2f} ms")
    for floor, budget in (("twin", BUDGET), ("rendered", None)):
        ratios = sorted(p99(run["scraped"]) / p99(run[floor]) for run in runs)
        ratio = statistics.median(ratios)
        verdict = "" if budget is None else f", at most {budget}: {'met' if ratio <= budget else 'MISSED'}"
        print(
            f"p99 beside scraped / {floor}: median {ratio:.2f} (from {ratios[0]:.2f} to {ratios[-1]:.2f}), "
            f"pooled {p99(pooled['scraped']) / p99(pooled[floor]):.2f}{verdict}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
