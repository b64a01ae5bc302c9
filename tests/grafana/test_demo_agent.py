"""The demo agent: real sessions again and again, in a store that stays small."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from windowpane.cli.demonstration import live
from windowpane.outputs.runtime import start as runtimes
from windowpane.store.filters import SessionFilter


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[runtimes.Runtime]:
    """Outputs of this process on a store of the test."""
    with runtimes.start(store=tmp_path / "demo.db", port=0) as started:
        yield started


@pytest.fixture(scope="module")
def agents() -> dict[str, live.Worker]:
    return {worker.agent: worker for worker in live.workers()}


def test_it_manages_three_windows_and_observes_every_format(agents: dict[str, live.Worker]) -> None:
    """Labels in Prometheus differ by size and by source."""
    managed = {worker.limit_tokens for worker in agents.values() if worker.limit_tokens}

    assert managed == {8_192, 32_768, 131_072}
    assert {"claude_code", "pi", "swe_agent", "tau_bench"} <= set(agents)


def test_the_same_recording_is_another_session_each_time(
    runtime: runtimes.Runtime, agents: dict[str, live.Worker]
) -> None:
    started = time.time()
    live.work(agents["tau_bench"], runtime, threading.Event(), pace_seconds=0, sessions=2)
    assert runtime.flush()
    assert runtime.store is not None
    rows = runtime.store.sessions(SessionFilter(limit=10))

    assert len({row.session_id for row in rows}) == 2
    assert len({row.turns for row in rows}) == 1
    assert {(row.agent, row.source) for row in rows} == {("tau_bench", "live")}
    assert all((row.last_at or 0) >= started for row in rows)
    assert runtime.store.verify().intact


def test_old_sessions_are_deleted(
    runtime: runtimes.Runtime, agents: dict[str, live.Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    live.work(agents["tau_bench"], runtime, threading.Event(), pace_seconds=0, sessions=2)
    assert runtime.flush()

    assert live.prune_store(runtime) == 0
    monkeypatch.setattr(live, "RETAINED_BYTES", 1)
    assert live.prune_store(runtime) == 2


def test_it_stops_in_the_middle(runtime: runtimes.Runtime, agents: dict[str, live.Worker]) -> None:
    stop = threading.Event()
    stop.set()
    live.work(agents["worker-8k"], runtime, stop, pace_seconds=60, sessions=0)
    assert runtime.flush()
    assert runtime.store is not None

    assert [row.turns for row in runtime.store.sessions(SessionFilter(limit=10))] == [1]
