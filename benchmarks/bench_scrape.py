"""Scrape of many live sessions, against rendering as many samples plus one maximum of every gauge.

The floor is `generate_latest` of a registry of native metrics with as many samples, plus a copy of every
session's gauges and the maximum of each: what an exporter with this many series and sessions must at least do.
A collector that hands over samples made beforehand is printed beside it. With `named` the fullest sessions have
their own label. Run: `python benchmarks/bench_scrape.py [sessions]`.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, disable_created_metrics, generate_latest
from prometheus_client.metrics_core import Metric as PrometheusFamily
from prometheus_client.registry import Collector

from windowpane.core.events import (
    BlockAdded,
    ContentCompressed,
    Event,
    EventContext,
    FidelityEvaluated,
    PressureMeasured,
    SessionStarted,
    TurnEnded,
    Usage,
)
from windowpane.core.window.blocks import Block
from windowpane.metrics.fold import MetricState, StateSource
from windowpane.metrics.gauges import GAUGE_COLUMNS
from windowpane.metrics.labels import LabelPolicy
from windowpane.metrics.prometheus import registry_of

BUDGET = 2.5
NOW = 1_000.0


def session(index: int, label_sets: int) -> list[Event]:
    agents = min(label_sets, 50)
    slot = index % label_sets
    context = EventContext(
        f"session-{index}", f"agent-{slot % agents}", f"model-{slot // agents}", 1, 1, "live", f"s{index}"
    )
    used = 1_000 + 37 * index % 90_000
    pressure = PressureMeasured(
        used, {"message_history": used // 2, "tool_results": used - used // 2}, "usage", 128_000,
        "catalogue", 115_000, used / 128_000, used / 115_000, "green", 110_000, 500,
        {"message_history": 200, "tool_results": 300}, 450.0, 30.0, 20.0, 45.0, 430.0, 60.0,
        {"message_history": 0.4, "tool_results": 0.9}, 0.5, 0.05, 0.2, 100, 300, 0.4, -0.03, 0.8, 40,
        phase="final",
    )  # fmt: skip
    payloads = (
        SessionStarted(128_000, "catalogue"),
        BlockAdded(Block("b1", "user_message", 120, 1, "g1", 1, "d1", 500, "exact", None)),
        BlockAdded(Block("b2", "tool_result", 900, 1, "g2", 1, "d2", 4_000, "exact", None)),
        TurnEnded(Usage(used, 300, 100, 50, 20), "usage", 0.01),
        ContentCompressed("compaction", "threshold", "accepted", 9_000, 2_000, duration_seconds=0.3),
        FidelityEvaluated("probe", 0.9, 1.0),
        pressure,
    )
    return [Event(context, n, NOW, data) for n, data in enumerate(payloads)]


def live_state(sessions: int, label_sets: int) -> MetricState:
    state = MetricState(labels=LabelPolicy(model=lambda model: model))
    for index in range(sessions):
        state.write(session(index, label_sets))
    return state


class Premade(Collector):
    """Hands over families that were made before the clock started."""

    def __init__(self, families: list[PrometheusFamily]) -> None:
        self._families = families

    def collect(self) -> Iterator[PrometheusFamily]:
        yield from self._families

    def describe(self) -> list[PrometheusFamily]:
        return []


def native_registry(families: list[PrometheusFamily]) -> CollectorRegistry:
    """Native gauges and counters with the very names and labels of *families*."""
    registry = CollectorRegistry()
    by_name: dict[str, Gauge | Counter] = {}
    for family in families:
        for sample in family.samples:
            metric = by_name.get(sample.name)
            if metric is None:
                kind = Counter if sample.name.endswith("_total") else Gauge
                name = f"{sample.name.removesuffix('_total')}"
                metric = by_name[sample.name] = kind(
                    name, family.documentation, sorted(sample.labels), registry=registry
                )
            child = metric.labels(**sample.labels)
            child.inc(sample.value)
    return registry


def interleaved(repeats: int, *runs: Callable[[], object]) -> list[float]:
    """Median seconds of each run, taken in turns so that a slow moment hits all alike."""
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(repeats):
        for run, taken in zip(runs, times, strict=True):
            started = time.perf_counter()
            run()
            taken.append(time.perf_counter() - started)
    return [statistics.median(taken) for taken in times]


def bench(sessions: int, label_sets: int, repeats: int, *, top_sessions: int = 0) -> float:
    state = live_state(sessions, label_sets)
    registry = registry_of(StateSource(state, clock=lambda: NOW, top_sessions=top_sessions))
    families = list(registry.collect())
    samples = sum(len(family.samples) for family in families)
    native, premade = native_registry(families), CollectorRegistry(auto_describe=False)
    premade.register(Premade(families))
    numbers = random.Random(0)
    gauges = [[numbers.random() for _ in GAUGE_COLUMNS] for _ in range(sessions)]
    ours, collect, floor, rendering, maximum = interleaved(
        repeats,
        lambda: generate_latest(registry),
        lambda: state.collect(now=NOW, top_sessions=top_sessions),
        lambda: generate_latest(native),
        lambda: generate_latest(premade),
        lambda: list(map(max, zip(*[values.copy() for values in gauges], strict=True))),
    )
    ratio = ours / (floor + maximum)
    print(
        f"{sessions:>6} sessions, {label_sets:>3} label sets, {top_sessions:>4} named, {samples:>6} samples: "
        f"{ours * 1e3:8.2f} ms; "
        f"native floor {floor * 1e3:8.2f} + maximum {maximum * 1e3:.3f} ms; ratio {ratio:.2f}; "
        f"beside premade samples {ours / (rendering + maximum):.2f}; state alone {collect * 1e3:.2f} ms"
    )
    return ratio


def main() -> int:
    disable_created_metrics()  # the floor would otherwise render more samples than we do
    if len(sys.argv) > 1:
        sizes: tuple[int, ...] = (int(sys.argv[1]),)
    else:
        sizes = (100, 1_000, 10_000)
    worst = 0.0
    for sessions in sizes:
        worst = max(worst, bench(sessions, 1, 100), bench(sessions, 500, 9))
        worst = max(worst, bench(sessions, 1, 30, top_sessions=1_000))
    print(f"scrape: worst ratio {worst:.2f}, at most {BUDGET}: {'met' if worst <= BUDGET else 'MISSED'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
