"""ClickHouse: trends and leaderboards over generated turns, and the speed of the copy.

    python benchmarks/bench_clickhouse.py [--turns 5_000_000] [--rounds 5] [--sessions 300]

The engine of the tests serves its HTTP interface to the official client. It generates the turns of sessions over
a year (40 turns each, five agents, three models) with the tools that they used, and the copier's own statements
derive the sums by day. Prints the time of each read (median of rounds), of the sums that a batch of the copier
makes anew, and the copied events per second of a store of scripted sessions.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.providers.environments import CHDB, environment
from tests.servers.clickhouse import ClickHouseServer

from windowpane.core.events import Event, Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.store.clickhouse.connection import ClickHouse
from windowpane.store.clickhouse.derived import UpdatedDays, sum_days
from windowpane.store.clickhouse.reads import ClickHouseReader
from windowpane.store.clickhouse.schema import Schema
from windowpane.store.clickhouse.store_copy import StoreCopy
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import EventFilter

FIRST_DAY, DAYS = 20_000, 365
TURNS_OF_A_SESSION, TOOLS_OF_A_SESSION = 40, 8
CHUNK_TURNS = 1_000_000
LARGEST_SECONDS = 1.0

TURNS = """INSERT INTO turns (session_id, revision, day, agent, model, release, turn, window_id, at,
    used_final, limit_tokens, utilization, input_tokens, output_tokens, cache_read_tokens, cost_dollars, version,
    removed)
SELECT 's' || toString(intDiv(number, 40)) AS session, 1, toDate32(20000 + intDiv(number, 40) % 365),
    'agent-' || toString(cityHash64(session) % 5), 'model-' || toString(intDiv(cityHash64(session), 5) % 3),
    'v' || toString(intDiv(intDiv(number, 40) % 365, 30)), number % 40 + 1, 1,
    86400. * (20000 + intDiv(number, 40) % 365) + number % 40, 2000 * (number % 40) + rand() % 1000, 200000,
    0.01 * (number % 40) + 0.0001 * (rand() % 100), 2000 * (number % 40) + rand() % 1000, rand() % 900,
    1900 * (number % 40), 0.001 * (rand() % 60), 1, false
FROM numbers({first}, {count})"""
SESSION_DAYS = """INSERT INTO session_days (session_id, revision, day, agent, model, release, calls,
    input_tokens, output_tokens, cache_read_tokens, cost_micros, sessions, peaks, peak_sum_millis,
    red_sessions, version, removed)
SELECT session_id, 1, day, agent, model, release, count(), sum(input_tokens), sum(output_tokens),
    sum(cache_read_tokens), toInt64(sum(round(cost_dollars * 1e6))), 1, 1, toInt64(max(utilization) * 1000),
    max(utilization) >= 0.9, 1, false
FROM turns WHERE toYYYYMM(day) = {month} GROUP BY session_id, day, agent, model, release"""
TOOL_USE = """INSERT INTO tool_use (session_id, revision, day, tool, target, blocks, tokens, carried_tokens,
    dollars, version, removed)
SELECT 's' || toString(intDiv(number, 8)), 1, toDate32(20000 + intDiv(number, 8) % 365),
    'tool-' || toString(number % 8), 'src/file' || toString(cityHash64(number) % 5000) || '.py', 3, rand() % 4000,
    rand() % 90000, 0.0001 * (rand() % 900), 1, false
FROM numbers({count})"""
MONTHS = "SELECT DISTINCT toYYYYMM(day) FROM turns"
FROM_TURNS = (
    "SELECT day, agent, model, sum(input_tokens), sum(cost_dollars) FROM turns GROUP BY day, agent, model"
)


def generate(clickhouse: ClickHouse, turns: int) -> None:
    """Fill the tables."""
    for first in range(0, turns, CHUNK_TURNS):
        clickhouse.execute(TURNS.format(first=first, count=min(CHUNK_TURNS, turns - first)))
    for (month,) in clickhouse.query(MONTHS):
        clickhouse.execute(SESSION_DAYS.format(month=month))
    clickhouse.execute(TOOL_USE.format(count=turns // TURNS_OF_A_SESSION * TOOLS_OF_A_SESSION))
    for day in range(FIRST_DAY, FIRST_DAY + DAYS, 10):
        days = set(range(day, min(day + 10, FIRST_DAY + DAYS)))
        sum_days(clickhouse, UpdatedDays(days, days), version=1)


def scripted(session_id: str) -> list[Event]:
    """Return the events of one session with a tool."""
    events: list[Event] = []
    tracker = SessionTracker(
        SessionInfo(session_id, "agent", "gpt-5", "live", f"{session_id}-stream"), emit=events.extend, digest=str,
        limits=WindowLimits.of(200_000, "given"),
    )  # fmt: skip
    at = FIRST_DAY * 86_400.0
    tracker.start(at)
    for number in range(TURNS_OF_A_SESSION):
        tracker.add("tool_call", '{"path": "a.py"}', 20, tool_call_id=f"c{number}", tool_name="read", at=at)
        tracker.add("tool_result", "text", 900, tool_call_id=f"c{number}", tool_name="read", at=at)
        tracker.end_turn(Usage(1_000 * (number + 1), 50), cost_dollars=0.01, at=at)
    tracker.end("done", at)
    return events


def seconds(action: Callable[[], object], rounds: int) -> float:
    """Return the median of the seconds that *action* takes, after a first time."""
    action()
    measured = []
    for _ in range(rounds):
        started = time.perf_counter()
        action()
        measured.append(time.perf_counter() - started)
    return median(measured)


def measure_reads(clickhouse: ClickHouse, turns: int, rounds: int) -> None:
    """Generate turns and print the time of reads over them."""
    started = time.perf_counter()
    generate(clickhouse, turns)
    ((stored,),) = clickhouse.query("SELECT sum(bytes_on_disk) FROM system.parts WHERE active")
    print(
        f"{turns:,} turns generated and summed in {time.perf_counter() - started:,.0f} s, {stored / 1e9:.2f} GB"
    )
    reader = ClickHouseReader(clickhouse)
    day = {FIRST_DAY + 100}
    reads: tuple[tuple[str, Callable[[], object], bool], ...] = (
        ("trends of a year", lambda: reader.trends(days=365), True),
        ("leaderboard of a year", lambda: reader.tool_leaderboard(days=365), True),
        ("trends from the turns themselves", lambda: clickhouse.query(FROM_TURNS), False),
        ("the sums of a day, made anew", lambda: sum_days(clickhouse, UpdatedDays(day, day), version=2), False),
    )
    for name, read, is_bounded in reads:
        bound = f" (at most {LARGEST_SECONDS:.0f} s)" if is_bounded else ""
        print(f"{name}: {1_000 * seconds(read, rounds):,.0f} ms{bound}")


def measure_copy(clickhouse: ClickHouse, sessions: int, rounds: int) -> None:
    """Copy a store and print the speed, and the time of a search in the copy."""
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "windowpane.db")
        for number in range(sessions):
            store.append(scripted(f"s{number}"))
        copy = StoreCopy(store, clickhouse, Schema(clickhouse.database))
        copy.open()
        started, cpu, events = time.perf_counter(), time.process_time(), 0
        while copied := copy.copy_batch():
            events += copied
        took, used = time.perf_counter() - started, time.process_time() - cpu
        store.close()
    print(f"copied {events:,} events: {events / took:,.0f} a second, {events / used:,.0f} a second of its CPU")
    reader = ClickHouseReader(clickhouse)
    query = EventFilter(text="turn.ended gpt", newest_first=True, limit=100)
    took = seconds(lambda: reader.events_or_damage(query), rounds)
    print(f"search of the newest 100 events by text: {1_000 * took:,.0f} ms")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sessions", type=int, default=300)
    options = parser.parse_args()
    server = ClickHouseServer(environment(CHDB), disk=True)
    server.start()
    try:
        generated, copied = server.connect(), server.connect()
        for connection in (generated, copied):
            for statement in Schema(connection.database).create():
                connection.define(statement)
        measure_copy(copied, options.sessions, options.rounds)
        measure_reads(generated, options.turns, options.rounds)
    finally:
        server.remove()


if __name__ == "__main__":
    main()
