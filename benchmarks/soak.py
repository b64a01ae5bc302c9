"""A day of agents in minutes: memory after the warm-up, and how many series there are.

Agents (100, with `--full` 1,000) make one turn a minute on a clock that is moved by hand; each session ends after
a while and another starts, under names that never come again. Everything that folds events runs: tracker, alert
engine, metrics, and a scrape every half hour. Memory is sampled each simulated hour, as blocks the interpreter
has allocated and as pages the system has given; their slope after the first quarter is reported beside it.
Run: `python benchmarks/soak.py [--full] [--hours N] [--agents N]`.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from prometheus_client import generate_latest

from windowpane.alerts.engine import AlertEngine
from windowpane.core.digests import keyed_digester
from windowpane.core.events import Event, Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.metrics.fold import MetricState, StateSource
from windowpane.metrics.prometheus import registry_of
from windowpane.testing import ManualClock

SESSION_TURNS = 45
LIMIT_TOKENS = 128_000
TOKENS_A_TURN = 2_500
TURN_SECONDS = 60.0
SCRAPE_MINUTES = 30
MODELS = 60
"""More than are admitted as labels, and few enough that every label set is met within the warm-up."""
SLOPE_BUDGET = 0.01
"""Growth over a whole day, as a share of the memory after the warm-up."""


class Sample(NamedTuple):
    hour: float
    allocated_blocks: int
    resident_bytes: int
    series: int


class Agent:
    """One agent: a session after another, each under its own hostile name."""

    def __init__(self, number: int, fleet: Fleet) -> None:
        self._number = number
        self._fleet = fleet
        self._session = 0
        self._turn = number % SESSION_TURNS  # so that they do not all end at once
        self._tracker = self._start()

    def turn(self) -> None:
        tracker, number = self._tracker, self._turn
        tracker.add("user_message", f"question {self._number} {number}", 200)
        tracker.add("tool_result", f"result {self._number} {number % 7}", TOKENS_A_TURN - 300)
        tracker.measure("before")
        tracker.add("assistant_response", f"answer {self._number} {number}", 100)
        tracker.end_turn(Usage(TOKENS_A_TURN * (1 + number % SESSION_TURNS), 100), cost_dollars=0.01)
        self._turn += 1
        if self._turn % SESSION_TURNS == 0:
            tracker.end("completed")
            self._tracker = self._start()

    def _start(self) -> SessionTracker:
        self._session += 1
        name = f"agent {self._number}\n{self._session}" + '"}{' * (self._session % 5)
        session = f"session-{self._number}-{self._session}"
        tracker = SessionTracker(
            SessionInfo(session, name, f"model {(self._number + self._session) % MODELS}", "live", session),
            emit=self._fleet.take,
            digest=self._fleet.digest,
            limits=WindowLimits.of(LIMIT_TOKENS, "given"),
            clock=self._fleet.clock,
        )
        tracker.start()
        return tracker


class Fleet:
    """The agents and all that their events go through."""

    def __init__(self, agents: int) -> None:
        self.clock = ManualClock()
        self.digest = keyed_digester(b"soak")
        self.state = MetricState()
        self.engine = AlertEngine(sessions=4 * agents)  # it remembers as many ended ones: full within the warm-up
        self.registry = registry_of(StateSource(self.state, clock=self.clock, top_sessions=20))
        self.agents = [Agent(number, self) for number in range(agents)]

    def take(self, batch: Sequence[Event]) -> None:
        events = list(batch)
        self.state.write([*events, *self.engine.evaluate(events)])

    def minute(self) -> int:
        """A simulated minute; returns the series a scrape gives at its end."""
        self.clock.advance(TURN_SECONDS)
        for agent in self.agents:
            agent.turn()
        return generate_latest(self.registry).count(b"\n")


def resident_bytes() -> int:
    """Memory of this process, where the system reports it."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0
    return pages * 4_096


def soak(*, agents: int, hours: float, samples: int) -> list[Sample]:
    """Run for *hours* of simulated time and sample memory and series *samples* times."""
    fleet = Fleet(agents)
    minutes = int(hours * 60)
    every = max(1, minutes // samples)
    taken: list[Sample] = []
    for minute in range(1, minutes + 1):
        series = fleet.minute() if minute % SCRAPE_MINUTES == 0 or minute % every == 0 else _silent(fleet)
        if minute % every == 0:
            gc.collect()
            taken.append(Sample(minute / 60, sys.getallocatedblocks(), resident_bytes(), series))
    return taken


def _silent(fleet: Fleet) -> int:
    fleet.clock.advance(TURN_SECONDS)
    for agent in fleet.agents:
        agent.turn()
    return 0


def slope(samples: Sequence[Sample], values: Sequence[int]) -> float:
    """Growth over a day as a share of the first value, by least squares."""
    if not values or not values[0]:
        return 0.0
    return float(np.polyfit([sample.hour for sample in samples], values, 1)[0]) * 24 / values[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--full", action="store_true", help="1,000 agents")
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--agents", type=int, default=0)
    given = parser.parse_args()
    agents = given.agents or (1_000 if given.full else 100)
    started = time.perf_counter()
    samples = soak(agents=agents, hours=given.hours, samples=24)
    warm = samples[len(samples) // 4 :]
    allocated = slope(warm, [sample.allocated_blocks for sample in warm])
    resident = slope(warm, [sample.resident_bytes for sample in warm])
    most = max(sample.series for sample in samples)
    took = time.perf_counter() - started
    print(
        f"soak: {agents} agents, {given.hours:g} simulated hours in {took:.0f} s; "
        f"{warm[0].allocated_blocks} blocks after the warm-up, {warm[-1].allocated_blocks} at the end, "
        f"slope {allocated:+.2%} a day; resident {warm[0].resident_bytes / 1e6:.0f} MB, then "
        f"{warm[-1].resident_bytes / 1e6:.0f} MB, slope {resident:+.2%}; at most {most} lines a scrape; "
        f"{'met' if allocated <= SLOPE_BUDGET else 'MISSED'}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
