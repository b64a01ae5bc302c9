"""The reads behind the pages on PostgreSQL, against those of SQLite on the same store in the same run.

    python benchmarks/bench_postgres_reads.py [--events 200000] [--sessions 400] [--turns 4000] [--rounds 15]
        [--captured 400] [--keep FOLDER]

Fills a SQLite store, copies it into a database of a server started from Debian's binaries, and runs each read of
the fleet and session pages on both in turn. The median of the rounds counts. A page's value is the sum of its
reads; the reads of the audit page and of search are printed beside them. With `--keep` both stores stay in the
folder, and a further run reads those. Ten million events take an hour to fill and copy:

    python benchmarks/bench_postgres_reads.py --events 10000000 --sessions 20000 --captured 400 --keep FOLDER
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import psycopg
from dashboard_store import LONGEST, fill
from tests.servers.postgres import PostgresServer, binaries

from windowpane.core.times import live_since
from windowpane.store.copying import Progress, copy_store
from windowpane.store.filters import AlertFilter, EventFilter
from windowpane.store.open import open_reader, open_store
from windowpane.store.reads.reader import Reader
from windowpane.store.search.content import ContentFilter
from windowpane_dashboard.queries.filters import FleetFilters
from windowpane_dashboard.queries.fleet import read_fleet
from windowpane_dashboard.queries.timeline import read_timeline
from windowpane_dashboard.queries.window import removed_blocks, window_frame

PAGE_RATIO = 1.5
PAGES = ("fleet", "session")
MEMORY = "1GB"
FLEET_ROWS = 500
DATABASE = "reads"
COMPLETE = "copied, compared and analyzed"

Read = Callable[[Reader], object]


def reads(turns: int) -> dict[str, Read]:
    """Each read of a page, by `page: what`."""
    now = time.time()
    since = live_since(now)
    fleet = FleetFilters().to_store(limit=FLEET_ROWS, live_first_since=since)
    middle = turns // 2
    return {
        "fleet: list and alerts": lambda store: read_fleet(store, fleet, since),
        "fleet: filters": lambda store: store.facets(),
        "fleet: leaderboard": lambda store: store.tool_leaderboard(),
        "fleet: trends": lambda store: store.trends(days=30),
        "fleet: version": lambda store: store.version(),
        "session: row and notes": lambda store: (store.session(LONGEST), store.notes(LONGEST)),
        "session: timeline": lambda store: read_timeline(store, LONGEST),
        "session: window at a turn": lambda store: window_frame(store.blocks_at(LONGEST, middle)),
        "session: removed blocks": lambda store: removed_blocks(store, LONGEST, middle),
        "session: events of a turn": lambda store: store.events(
            EventFilter(session_id=LONGEST, turn_from=middle, turn_to=middle)
        ),
        "session: tools": lambda store: store.tool_use(LONGEST),
        "session: alerts": lambda store: store.alerts(AlertFilter(session_id=LONGEST)),
        "audit: the newest events": lambda store: store.events(EventFilter(limit=101, newest_first=True)),
        "audit: a rare word": lambda store: store.events(EventFilter(text="evicted", limit=101)),
        "audit: a common word": lambda store: store.events(EventFilter(text="tool_result", limit=101)),
        "search: a word of a text": lambda store: store.find_content(ContentFilter("ledger_77")),
    }


def timed(read: Read, store: Reader) -> float:
    started = time.perf_counter()
    read(store)
    return 1_000 * (time.perf_counter() - started)


def measure(sqlite: Reader, postgres: Reader, *, turns: int, rounds: int) -> bool:
    sums = dict.fromkeys(PAGES, (0.0, 0.0))
    print(f"{'milliseconds, median of ' + str(rounds):34} {'SQLite':>9} {'PostgreSQL':>11} {'ratio':>6}")
    for name, read in reads(turns).items():
        for store in (sqlite, postgres):
            read(store)
        times = [(timed(read, sqlite), timed(read, postgres)) for _ in range(rounds)]
        lite, full = (median(column) for column in zip(*times, strict=True))
        print(f"{name:34} {lite:9.2f} {full:11.2f} {full / lite:6.2f}")
        page = name.partition(":")[0]
        if page in sums:
            sums[page] = (sums[page][0] + lite, sums[page][1] + full)
    met = True
    for page, (lite, full) in sums.items():
        met &= full <= PAGE_RATIO * lite
        verdict = "met" if full <= PAGE_RATIO * lite else "MISSED"
        ratio = f"{full / lite:.2f} times (at most {PAGE_RATIO}: {verdict})"
        print(f"{page} page: {full:.1f} ms against {lite:.1f} ms, {ratio}")
    return met


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--events", type=int, default=200_000)
    options.add_argument("--sessions", type=int, default=400)
    options.add_argument("--turns", type=int, default=4_000, help="turns of the longest session")
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--captured", type=int, help="sessions whose texts are captured; all by default")
    options.add_argument("--keep", type=Path, metavar="FOLDER", help="keep both stores here and read them again")
    given = options.parse_args()
    programs = binaries()
    if programs is None:
        raise SystemExit("PostgreSQL's server is not installed")
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "windowpane.db"
        if not path.exists():
            fill(path, events=given.events, sessions=given.sessions, turns=given.turns, captured=given.captured)
        server = PostgresServer(programs, memory=MEMORY, folder=folder / "server" if given.keep else None)
        try:
            server.start()
            url = copied(path, server)
            with closing(open_reader(path)) as sqlite, closing(open_reader(url)) as postgres:
                met = measure(sqlite, postgres, turns=given.turns, rounds=given.rounds)
        finally:
            if given.keep:
                server.stop()
            else:
                server.delete()
    raise SystemExit(not met)


def copied(path: Path, server: PostgresServer) -> str:
    """Return the address of the copy of a store, which an earlier run has made or started."""
    url = server.url(DATABASE)
    if not server.has_database(DATABASE):
        server.create_database(DATABASE)
    elif is_complete(url):
        return url
    started = time.perf_counter()
    with closing(open_reader(path)) as source, closing(open_store(url)) as target:
        outcome = copy_store(source, target, on_progress=show())
        print(f"copied {outcome.events:,} events in {time.perf_counter() - started:,.0f} s")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")  # as autovacuum does within minutes
        connection.execute(f"COMMENT ON TABLE copied_from IS '{COMPLETE}'")
    return url


def is_complete(url: str) -> bool:
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT obj_description(to_regclass('copied_from'))").fetchone()
    return found == (COMPLETE,)


def show() -> Callable[[Progress], None]:
    """Return a function that prints each part of a copy with the seconds since its start."""
    started = time.perf_counter()
    parts: list[str] = []

    def show_part(progress: Progress) -> None:
        if progress.part not in parts:
            parts.append(progress.part)
            print(f"{time.perf_counter() - started:8,.1f} s: {progress.part}", flush=True)

    return show_part


if __name__ == "__main__":
    main()
