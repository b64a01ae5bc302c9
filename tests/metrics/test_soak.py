"""Sessions with hostile names that start and end: memory and series do not grow."""

from __future__ import annotations

import gc
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from prometheus_client import generate_latest
from tests.sampling import EVERYTHING

from windowpane.alerts.engine import AlertEngine
from windowpane.core.events import Event, Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.metrics.fold import MetricState, StateSource
from windowpane.metrics.prometheus import registry_of
from windowpane.testing import ManualClock

SESSIONS = 2_000
WARM_UP = 1_000
"""As many as the fold remembers raw names, so that both measurements are of a full memory."""
HOSTILE = ('"}\n{', "\\", "\x00", "😀" * 40, "a" * 5_000, "", "../../etc", 'agent="x"')


def session(number: int, state: MetricState, engine: AlertEngine, clock: ManualClock) -> None:
    """A session of three turns in a full window, whose names were never seen before; one in ten never ends."""

    def take(batch: list[Event]) -> None:
        state.write([*batch, *engine.evaluate(batch)])

    name = f"{HOSTILE[number % len(HOSTILE)]}{number}"
    tracker = SessionTracker(
        SessionInfo(f"session-{name}", name, f"model-{name}", "live", f"stream-{number}"),
        emit=take,
        digest=lambda text: text,
        limits=WindowLimits.of(8_192, "given"),
        clock=clock,
    )
    tracker.start()
    for turn in range(3):
        tracker.add("user_message", f"message {turn}", 2_500)
        tracker.end_turn(Usage(2_500 * (turn + 1), 10), cost_dollars=0.01)
        clock.advance(20)
    if number % 10:
        tracker.end("completed")
    tracker.flush()


def test_hostile_sessions_do_not_leak() -> None:
    clock = ManualClock()
    state, engine = MetricState(maximum_sessions=50), AlertEngine(sessions=50)
    registry = registry_of(StateSource(state, clock=clock, top_sessions=10))

    def series() -> int:
        text = generate_latest(registry).decode()
        return sum(not line.startswith("#") for line in text.splitlines())

    for number in range(WARM_UP):
        session(number, state, engine, clock)
    gc.collect()
    blocks, lines = sys.getallocatedblocks(), series()
    for number in range(WARM_UP, SESSIONS):
        session(number, state, engine, clock)
    gc.collect()
    grown = sys.getallocatedblocks() - blocks

    assert grown < SESSIONS - WARM_UP, "blocks are kept for sessions that are gone"
    assert series() <= lines * 1.02
    assert state.open_sessions <= 50
    assert len(engine._sessions) <= 50
    clock.advance(3_600)
    assert "context_window_utilization_ratio{" not in generate_latest(registry).decode()


@pytest.fixture(scope="module")
def benchmark_soak() -> ModuleType:
    """`benchmarks/soak.py`: a day of agents on a clock that is moved by hand."""
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "soak.py"
    spec = importlib.util.spec_from_file_location("soak", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["soak"] = module  # its annotations are resolved by name
    spec.loader.exec_module(module)
    return module


@pytest.mark.timeout(3_600)
def test_a_day_of_agents_does_not_grow_memory_or_series(benchmark_soak: ModuleType) -> None:
    """60 agents for six hours, 1,000 for a day in `make test-all`: flat in the second half."""
    agents, hours = (1_000, 24.0) if EVERYTHING else (60, 6.0)
    samples = benchmark_soak.soak(agents=agents, hours=hours, samples=24)
    warm = samples[len(samples) // 2 :]
    allocated = [sample.allocated_blocks for sample in warm]
    series = [sample.series for sample in samples]

    assert len(samples) == 24
    assert benchmark_soak.slope(warm, allocated) <= 0.01
    assert max(allocated) <= allocated[0] * 1.02
    assert max(series) <= 101 * 260, "fifty admitted agents, and `other` with fifty admitted models and `other`"
    assert max(series[12:]) <= series[11] * 1.02
