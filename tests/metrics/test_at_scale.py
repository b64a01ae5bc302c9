"""Many sessions, hostile names and several threads: metrics stay bounded, consistent and equal to the tracker."""

from __future__ import annotations

import re
import subprocess
import threading
import urllib.request

import pytest
from prometheus_client import generate_latest

from windowpane.core.events import (
    BlocksEvicted,
    ContentCompressed,
    Event,
    EventContext,
    EvictedBlock,
    PressureMeasured,
    SessionEnded,
    TurnEnded,
    Usage,
)
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking.tracker import SessionInfo, SessionTracker
from windowpane.metrics.fold import MetricState, StateSource
from windowpane.metrics.prometheus import registry_of
from windowpane.outputs.http.http_server import start_http_server
from windowpane.outputs.http.routes import Routes


def pressure(used: int) -> PressureMeasured:
    return PressureMeasured(
        used, {"message_history": used}, "usage", 10_000, utilization=used / 10_000, phase="final"
    )


def turn(session: str, agent: str, used: int) -> list[Event]:
    context = EventContext(session, agent, "gpt-5", 1, 1, "live", session)
    return [
        Event(context, 0, 1_000.0, TurnEnded(Usage(used), "usage", 0.5)),
        Event(context, 1, 1_000.0, pressure(used)),
    ]


def test_ten_thousand_sessions_of_many_agents_make_51_label_sets() -> None:
    state = MetricState()
    for index in range(10_000):
        state.write(turn(f"session-{index}", f"agent {index % 700}\n", index))
    text = generate_latest(registry_of(StateSource(state, clock=lambda: 1_000.0))).decode()
    used = [
        float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if line.startswith("context_window_used_tokens{") and 'component="message_history"' in line
    ]

    assert state.open_sessions == 10_000
    assert len(used) == 51
    assert sum(used) == sum(range(10_000))
    assert len(text.splitlines()) < 51 * 250


HOSTILE = ('"}\n', "\\", "\x00\x1b[31m", "\u202e", "😀" * 40, "a" * 9_000, "{{ $labels }}", "..", "\ud800")


def test_a_scrape_of_hostile_names_over_http_is_valid_and_bounded(require_server) -> None:
    """promtool accepts the metrics of 10,000 sessions with hostile names; gauges of ended sessions are absent."""
    state = MetricState()
    sessions = [f"session {index} {HOSTILE[index % len(HOSTILE)]}" for index in range(10_000)]
    for index, session in enumerate(sessions):
        state.write(turn(session, f"{HOSTILE[index % len(HOSTILE)]}{index % 300}", index))
    registry = registry_of(StateSource(state, clock=lambda: 1_000.0, top_sessions=3))
    with start_http_server(Routes(registry), port=0) as server:

        def scraped() -> str:
            with urllib.request.urlopen(server.url, timeout=60) as answer:
                return str(answer.read().decode())

        full = scraped()
        for session in sessions:
            context = EventContext(session, "x", "gpt-5", 1, 1, "live", session)
            state.write([Event(context, 2, 1_000.0, SessionEnded("done"))])
        empty = scraped()
    checked = subprocess.run(
        [require_server("promtool"), "check", "metrics"],
        input=full,
        check=False,
        text=True,
        capture_output=True,
        timeout=60,
    )

    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert len(full.splitlines()) < 52 * 250
    assert all(
        re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", agent) for agent in re.findall(r'agent="((?:[^"\\]|\\.)*)"', full)
    )
    assert len(re.findall(r"^context_window_session_utilization_ratio\{", full, re.MULTILINE)) == 3
    for gauge in ("utilization_ratio", "session_utilization_ratio", "sessions", "used_tokens"):
        assert f"\ncontext_window_{gauge}{{" in full
        assert f"\ncontext_window_{gauge}{{" not in empty


def test_a_scrape_during_the_fold_sees_whole_batches(value_of) -> None:
    state = MetricState()
    batches = 400
    worker = threading.Thread(
        target=lambda: [state.write(turn(f"s{index % 20}", "reviewer", 100)) for index in range(batches)]
    )
    worker.start()
    seen = [0.0]
    while worker.is_alive():
        families = state.collect(now=1_000.0)
        turns = value_of(families, "context_window_turns_total") or 0.0
        tokens = value_of(families, "context_window_model_tokens_total", type="input") or 0.0
        cost = value_of(families, "context_window_cost_dollars_total") or 0.0
        assert (tokens, cost) == (turns * 100, turns * 0.5)
        seen.append(turns)
    worker.join()

    assert seen == sorted(seen)
    assert value_of(state.collect(now=1_000.0), "context_window_turns_total") == batches


def test_counters_equal_the_trackers_trend_report(value_of) -> None:
    state = MetricState()
    tracker = SessionTracker(
        SessionInfo("s", "reviewer", "gpt-5", "live", "stream"),
        emit=state.write,
        digest=lambda text: text,
        limits=WindowLimits.of(32_000, "given"),
        clock=lambda: 1_000.0,
    )
    tracker.start()
    for index in range(12):
        block = tracker.add("tool_result", f"result {index % 7}", 1_500, tool_call_id=f"c{index}")
        tracker.add("assistant_response", f"reply {index}", 200)
        last = tracker.end_turn(None, cost_dollars=0.25)
        if index % 3 == 2:
            remaining = EvictedBlock(block.id, "tool_result", block.tokens, "drop", "old")
            tracker.evict(BlocksEvicted("hybrid", (remaining,), block.tokens, block.tokens))
        if index == 10:
            tracker.compress(ContentCompressed("compaction", "threshold", "accepted", 900, 100))
    before = state.collect(now=1_000.0)
    report = tracker.end("done")
    families = state.collect(now=1_000.0)

    assert value_of(families, "context_window_turns_total") == report.turns == 12
    assert value_of(families, "context_window_cost_dollars_total") == pytest.approx(report.cost_dollars)
    assert (
        value_of(families, "context_window_evicted_blocks_total", policy="hybrid", content_type="tool_result")
        == report.evicted_blocks
        == 4
    )
    assert (
        value_of(families, "context_window_compressions_total", strategy="compaction", outcome="accepted")
        == report.compressions
        == 1
    )
    assert value_of(families, "context_window_regrets_total", cause="eviction") == report.regrets > 0
    assert value_of(before, "context_window_utilization_ratio") == last.utilization
    assert value_of(before, "context_window_velocity_tokens_per_turn") == last.velocity
    assert value_of(families, "context_window_utilization_ratio") is None
