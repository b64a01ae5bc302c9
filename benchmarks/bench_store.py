"""The store against a bare sqlite3 batch insert, and the reads of the pages.

Run it with `python benchmarks/bench_store.py`. The floor inserts the very rows that the store wrote (events and
projections), already made, into tables with the same indexes, by `executemany` in the same batches; the
store starts from `Event` objects and so encodes, hashes and projects as well. Both commit every batch (WAL,
synchronous=NORMAL). Times are the best of several rounds, so that a busy machine does not decide.
"""

from __future__ import annotations

import gc
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from windowpane.core.codec import encode
from windowpane.core.events import Event, EventContext, Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.core.vocabulary import CountSource
from windowpane.sources.imports.importer import import_paths
from windowpane.sources.transcripts.discovery import all_readers
from windowpane.sources.transcripts.playback_settings import PlaybackSettings
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import AlertFilter, EventFilter, SessionFilter
from windowpane.store.keys import link_with
from windowpane.store.sqlite.engine import open_writer
from windowpane.store.writes.chain import genesis

ARRIVAL = {"events": "seq", "blocks": "event_seq", "turns": "first_seq", "sessions": "key", "late_events": "seq"}
"""The tables the store writes, and the order in which their rows come up."""
TABLES = tuple(ARRIVAL)
BATCH_EVENTS = 1_000
FLOOR_RATIO = 0.60
RATE = ">= 10,000/s"
ROUNDS = 7


class Measure(NamedTuple):
    what: str
    value: str
    target: str
    met: bool


def session(session_id: str, events: int, digest: Callable[[str], str]) -> list[Event]:
    """Yield a coding agent's session: a user message, then calls and results, one model call per turn."""
    made: list[Event] = []
    info = SessionInfo(session_id, "reviewer", "gpt-5", "live", f"{session_id}-stream")
    tracker = SessionTracker(info, emit=made.extend, digest=digest, limits=WindowLimits.of(400_000, "catalogue"))
    at = 1.7e9
    tracker.start(at)
    tracker.add("system_prompt", "You mend things.", 900, at=at)
    tracker.add("user_message", "Please mend the service.", 60, at=at)
    turn = 0
    while len(made) < events:
        turn += 1
        at += 3.217843
        tracker.add("thinking", f"thought {turn}", 120, at=at)
        tracker.add("assistant_response", f"I shall look at {turn}.", 30, at=at)
        for call in range(4):
            key = f"call_{session_id}_{turn}_{call}"
            tracker.add("tool_call", f"read {turn} {call}", 40, tool_call_id=key, tool_name="read_file", at=at)
        tracker.end_turn(
            Usage(input_tokens=80, output_tokens=310, cache_read_tokens=tracker.window.tokens + 700),
            cost_dollars=0.0123, latency_seconds=2.5, stop_reason="tool_use", at=at,
        )  # fmt: skip
        for call in range(4):
            key = f"call_{session_id}_{turn}_{call}"
            tracker.add("tool_result", f"text {turn} {call}", 350, tool_call_id=key, tool_name="read_file", at=at)
    tracker.end("done", at)
    return made


def batches(events: list[Event]) -> list[list[Event]]:
    walk = iter(events)
    return list(iter(lambda: list(islice(walk, BATCH_EVENTS)), []))


def timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def full_path(folder: Path, events: list[Event], *, key: bytes | None = None) -> tuple[float, SqliteStore]:
    store = SqliteStore(folder / f"store-{time.monotonic_ns()}.db", audit_key=key)
    made = batches(events)

    def run() -> None:
        for batch in made:
            store.append(batch)

    return timed(run), store


def bare_path(folder: Path, source: SqliteStore, tables: tuple[str, ...]) -> float:
    """Insert the same rows, made before, with the same indexes and as many commits."""
    reading = sqlite3.connect(source.path)
    target = open_writer(folder / f"bare-{time.monotonic_ns()}.db")
    for kind in ("table", "index"):
        for table, sql in reading.execute("SELECT tbl_name, sql FROM sqlite_master WHERE type = ?", (kind,)):
            if table in tables and sql:
                target.execute(sql)
    rows = {
        table: reading.execute(f"SELECT * FROM {table} ORDER BY {ARRIVAL[table]}").fetchall() for table in tables
    }
    commits = -(-len(rows["events"]) // BATCH_EVENTS)
    plan = []
    for number in range(commits):
        for table, all_rows in rows.items():
            size = -(-len(all_rows) // commits)
            part = all_rows[number * size : (number + 1) * size]
            if part:
                plan.append((number, f"INSERT INTO {table} VALUES ({', '.join('?' * len(part[0]))})", part))

    def run() -> None:
        last = None
        for number, sql, part in plan:
            if number != last:
                if last is not None:
                    target.execute("COMMIT")
                target.execute("BEGIN IMMEDIATE")
                last = number
            target.executemany(sql, part)
        target.execute("COMMIT")

    taken = timed(run)
    target.close()
    reading.close()
    return taken


def settle() -> None:
    """Exclude the prepared events from garbage collection, since no live agent holds them."""
    gc.collect()
    gc.freeze()


def recorded_rates(folder: Path) -> list[Measure]:
    """Measure the same ratio over recorded sessions, which measure more often and add fewer blocks per turn."""
    named = os.environ.get("WINDOWPANE_SESSIONS_DIR")
    if not named:
        return [Measure("recorded sessions", "WINDOWPANE_SESSIONS_DIR is not set", "", met=True)]
    store = SqliteStore(folder / "recorded.db")
    playback = PlaybackSettings(
        digest=store.digester(), counter_for=lambda _model: Quarters(), limit_tokens=200_000
    )
    import_paths([Path(named)], store, playback=playback, readers=all_readers(complete=True))
    shared: dict[EventContext, EventContext] = {}
    events = [
        item.event._replace(context=shared.setdefault(item.event.context, item.event.context))
        for batch in store.scan()
        for item in batch
    ]
    store.close()
    settle()
    full, bare = [], []
    for _ in range(ROUNDS):
        taken, store = full_path(folder, events)
        full.append(taken)
        bare.append(bare_path(folder, store, TABLES))
        store.close()
    rate, ratio = len(events) / min(full), min(bare) / min(full)
    return [
        Measure("recorded sessions: events, full path", f"{len(events):,}, {rate:,.0f}/s", RATE, met=rate >= 1e4),
        Measure("recorded sessions: full / bare, same rows", f"{ratio:.2f}", "", met=True),
    ]


class Quarters:
    """Counts a quarter of a token per character: counting is not measured here."""

    source: CountSource = "estimate"

    def count(self, text: str) -> int:
        return len(text) // 4


def write_rates(folder: Path) -> list[Measure]:
    with_key = SqliteStore(folder / "digest.db")
    digest = with_key.digester()
    events = [event for number in range(10) for event in session(f"s{number}", 5_000, digest)]
    json_bytes = sum(len(encode(event)) for event in events)
    settle()
    full, keyed, bare_all, bare_events = [], [], [], []
    for _ in range(ROUNDS):
        taken, store = full_path(folder, events)
        full.append(taken)
        bare_all.append(bare_path(folder, store, TABLES))
        bare_events.append(bare_path(folder, store, ("events",)))
        store.close()
        taken, store = full_path(folder, events, key=os.urandom(32))
        keyed.append(taken)
        store.close()
    mean = json_bytes / len(events)
    rate = {
        name: len(events) / min(times)
        for name, times in (
            ("full", full), ("keyed", keyed), ("all", bare_all), ("events", bare_events),
        )
    }  # fmt: skip
    ratio = rate["full"] / rate["all"]
    encoding = timed(lambda: [encode(event) for event in events]) / len(events) * 1e6
    link, body = link_with(None), encode(events[5])
    hashing = timed(lambda: [link(genesis("s", 1), body) for _ in range(50_000)]) / 50_000 * 1e6
    return [
        Measure("events in the run, mean JSON bytes", f"{len(events):,}, {mean:.0f}", "", met=True),
        Measure("full path: encode, hash, project", f"{rate['full']:,.0f}/s", RATE, met=rate["full"] >= 1e4),
        Measure("the same with an audit key", f"{rate['keyed']:,.0f}/s", ">= 10,000/s", rate["keyed"] >= 1e4),
        Measure("bare insert of the same rows", f"{rate['all']:,.0f}/s", "", met=True),
        Measure("bare insert of the event rows alone", f"{rate['events']:,.0f}/s", "", met=True),
        Measure("full / bare, same rows", f"{ratio:.2f}", f">= {FLOOR_RATIO}", ratio >= FLOOR_RATIO),
        Measure("full / bare, event rows alone", f"{rate['full'] / rate['events']:.2f}", "", met=True),
        Measure("of it encoding, hashing", f"{encoding:.1f} us, {hashing:.1f} us an event", "", met=True),
    ]  # fmt: skip


def size_ratio(folder: Path) -> list[Measure]:
    store = SqliteStore(folder / "size.db")
    events = [event for number in range(10) for event in session(f"s{number}", 5_000, store.digester())]
    for batch in batches(events):
        store.append(batch)
    while store.index_text():
        pass
    json_bytes = sum(len(encode(event)) for event in events)
    store.close()
    connection = sqlite3.connect(store.path)
    sizes: dict[str, int] = {}
    try:
        rows = connection.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name").fetchall()
    except sqlite3.OperationalError:
        return [Measure("bytes by table", "this SQLite has no dbstat", "", met=True)]
    for name, used in rows:
        part = (
            "events"
            if name in ("events", "events_session", "events_type")
            else ("text index" if name.startswith("events_text") else "projections")
        )
        sizes[part] = sizes.get(part, 0) + used
    ratio = sizes["events"] / json_bytes
    return [
        Measure("events and indexes / JSON bytes", f"{ratio:.3f}", "<= 1.3", ratio <= 1.3),
        Measure("projections / JSON bytes", f"{sizes['projections'] / json_bytes:.3f}", "", met=True),
        Measure("text index / JSON bytes", f"{sizes.get('text index', 0) / json_bytes:.3f}", "", met=True),
    ]


def read_times(folder: Path) -> list[Measure]:
    store = SqliteStore(folder / "reads.db")
    for number in range(1_000):
        store.append(session(f"small{number:04}", 30, store.digester()))
    opened = session("opened", 1_000, store.digester())
    long = session("long", 20_000, store.digester())
    for batch in (*batches(opened), *batches(long)):
        store.append(batch)
    turns = store.session("opened").turns

    def open_session() -> None:
        store.session("opened")
        store.turns("opened")
        store.blocks_at("opened", turns)
        store.removed_blocks("opened", turns)
        store.events(EventFilter(session_id="opened", limit=1_000))
        store.alerts(AlertFilter(session_id="opened"))

    def best(work: Callable[[], object]) -> float:
        return min(timed(work) for _ in range(15)) * 1e3

    listing = best(lambda: store.sessions(SessionFilter(limit=100)))
    opening = best(open_session)
    page = best(lambda: store.events(EventFilter(session_id="long", limit=100, newest_first=True)))
    window = best(lambda: store.blocks_at("long", 5))
    verify = timed(store.verify)
    events = store.size().events
    store.close()
    return [
        Measure("list 100 of 1,002 sessions", f"{listing:.1f} ms", "<= 10 ms", listing <= 10),
        Measure("open a session of 1,000 events, all of it", f"{opening:.1f} ms", "<= 50 ms", opening <= 50),
        Measure("newest 100 events of 20,000", f"{page:.1f} ms", "", met=True),
        Measure("the window at turn 5 of a session of 20,000 events", f"{window:.1f} ms", "", met=True),
        Measure("verify the chain", f"{events / verify:,.0f} events/s", "", met=True),
    ]


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measures = [*write_rates(folder), *recorded_rates(folder), *size_ratio(folder), *read_times(folder)]
    width = max(len(measure.what) for measure in measures)
    for measure in measures:
        verdict = "" if not measure.target else ("  ok" if measure.met else "  MISSED")
        print(f"{measure.what:<{width}}  {measure.value:>24}  {measure.target}{verdict}")


if __name__ == "__main__":
    main()
