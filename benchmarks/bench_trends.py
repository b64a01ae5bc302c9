"""The trends, also of one project, at 100 and at 10,000 sessions a day: the same rows read, so the same time.

    python benchmarks/bench_trends.py [--days 30] [--rounds 9]

Two stores hold one scripted session, repeated for each session of each day as rows of `sessions` and
`session_days`; the triggers of the database sum them up. Prints the time of the page's script on both (median of
rounds that take turns), of the read below it, and the ratios.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

from streamlit.testing.v1 import AppTest

from windowpane.core.events import Event, SessionDescribed, Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.store.embedded import SqliteStore
from windowpane_dashboard.server.launch import APP

FEW, MANY = 100, 10_000
LARGEST_RATIO = 1.2
FIRST_DAY = 20_000
PROJECT = "shop"


def scripted() -> list[Event]:
    """Return the events of one session with a tool."""
    events: list[Event] = []
    info = SessionInfo("scripted", "agent", "gpt-5", "live", "stream")
    limits = WindowLimits.of(200_000, "given")
    tracker = SessionTracker(info, emit=events.extend, digest=str, limits=limits)
    at = FIRST_DAY * 86_400.0
    tracker.start(at)
    tracker.record(SessionDescribed(project=PROJECT), at)
    for number in range(20):
        tracker.add("tool_call", '{"path": "a.py"}', 20, tool_call_id=f"c{number}", tool_name="read", at=at)
        tracker.add("tool_result", "text", 900, tool_call_id=f"c{number}", tool_name="read", at=at)
        tracker.end_turn(Usage(1_000 * (number + 1), 50), cost_dollars=0.01, at=at)
    tracker.end("done", at)
    return events


def filled(path: Path, *, per_day: int, days: int) -> SqliteStore:
    """Return a store with *per_day* sessions on each of *days*."""
    with_one = SqliteStore(path)
    with_one.append(scripted())
    with_one.close()
    with sqlite3.connect(path) as connection:
        names = [row[1] for row in connection.execute("PRAGMA table_info(sessions)") if row[1] != "key"]
        copied = ", ".join({"session_id": "'s' || n", "last_at": "last_at + n"}.get(name, name) for name in names)
        numbers = f"WITH numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {per_day * days})"
        connection.execute(
            f"INSERT INTO sessions ({', '.join(names)}) {numbers} SELECT {copied} FROM sessions, numbers"
        )
        names = [row[1] for row in connection.execute("PRAGMA table_info(session_days)")]
        changed = {"session": "n + 1", "day": f"day + n % {days}"}
        copied = ", ".join(changed.get(name, name) for name in names)
        connection.execute(
            f"INSERT INTO session_days {numbers} SELECT {copied} FROM session_days, numbers WHERE session = 1"
        )
    return SqliteStore(path)


def timed(action: Callable[[], object]) -> float:
    """Return the seconds that *action* takes on the processor."""
    started = time.process_time()
    action()
    return time.process_time() - started


def draw(store: SqliteStore) -> None:
    """Run the script of the trends page."""
    os.environ["WINDOWPANE_STORE"] = str(store.path)
    app = AppTest.from_file(str(APP), default_timeout=60).switch_page("views/trends.py").run()
    assert not app.exception, app.exception


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        few, many = (
            filled(Path(folder) / f"{per_day}.db", per_day=per_day, days=options.days) for per_day in (FEW, MANY)
        )
        for name, action in (
            ("the page's script", draw),
            ("the read of 90 days", lambda store: store.trends(days=90)),
            ("the read of 90 days of a project", lambda store: store.trends(days=90, projects=(PROJECT,))),
            ("the leaderboard", lambda store: store.tool_leaderboard()),
            ("the leaderboard of a project", lambda store: store.tool_leaderboard(projects=(PROJECT,))),
        ):
            action(few), action(many)
            rounds = [(timed(partial(action, few)), timed(partial(action, many))) for _ in range(options.rounds)]
            one, other = (median(side) for side in zip(*rounds, strict=True))
            print(
                f"{name}: {1_000 * one:.1f} ms at {FEW} sessions a day, {1_000 * other:.1f} ms at {MANY:,}: "
                f"{other / one:.2f} times (at most {LARGEST_RATIO})"
            )


if __name__ == "__main__":
    main()
