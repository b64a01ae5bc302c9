"""A PostgreSQL store against a bare COPY of the same rows, and SQLite beside it.

Run it with `python benchmarks/bench_postgres.py`; it starts a server from Debian's binaries. The floor copies the
very rows that the store wrote (events and projections), already made, into tables with the same indexes, in the
same batches with as many commits; the store starts from `Event` objects and so encodes, hashes and projects as
well. The rounds alternate and the best of each counts, so that a busy machine does not decide.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import closing
from pathlib import Path

import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench_store import ARRIVAL, BATCH_EVENTS, Measure, batches, session, settle, timed
from tests.servers.postgres import PostgresServer, binaries

from windowpane.core.digests import keyed_digester
from windowpane.core.events import Event
from windowpane.store.open import open_store
from windowpane.store.postgres.values import adapt
from windowpane.store.store import Store

FLOOR_RATIO = 0.50
ROUNDS = 5
CASES = ((10, 5_000), (100, 300), (500, 60), (2_000, 15))
"""Sessions, and events of each."""
WRITTEN = ARRIVAL | {"session_days": "session, day", "call_ids": "session, call", "heads": "id"}
"""The tables that the store writes, and the order in which their rows come up."""


def appended(store: Store, events: list[Event]) -> float:
    """Return the seconds that the store takes for all events."""
    made = batches(events)

    def run() -> None:
        for batch in made:
            store.append(batch)

    return timed(run)


def copied(server: PostgresServer, source: str, tables: tuple[str, ...]) -> float:
    """Return the seconds that COPY takes for the rows of the store at *source*."""
    url = server.create_database()
    open_store(url).close()
    with psycopg.connect(source) as reading, psycopg.connect(url, autocommit=True) as target:
        adapt(target)
        inserts = []
        for table in tables:
            cursor = reading.execute(f"SELECT * FROM {table} ORDER BY {WRITTEN[table]}")
            columns = ", ".join(f'"{column.name}"' for column in cursor.description or ())
            types = [column.type_code for column in cursor.description or ()]
            inserts.append((f"COPY {table} ({columns}) FROM STDIN (FORMAT BINARY)", types, cursor.fetchall()))
        commits = -(-len(inserts[0][2]) // BATCH_EVENTS)

        def run() -> None:
            for number in range(commits):
                with target.transaction():
                    for sql, types, rows in inserts:
                        size = -(-len(rows) // commits)
                        with target.cursor().copy(sql) as copy:
                            copy.set_types(types)
                            for row in rows[number * size : (number + 1) * size]:
                                copy.write_row(row)

        return timed(run)


def measure(server: PostgresServer, folder: Path, *, sessions: int, per_session: int) -> list[Measure]:
    digest = keyed_digester(b"0" * 32)
    events = [event for number in range(sessions) for event in session(f"s{number}", per_session, digest)]
    settle()
    full, bare, bare_events, lite = [], [], [], []
    for number in range(ROUNDS):
        url = server.create_database()
        with closing(open_store(url)) as store:
            full.append(appended(store, events))
        bare.append(copied(server, url, tuple(WRITTEN)))
        bare_events.append(copied(server, url, ("events",)))
        server.drop_database(url)
        with closing(open_store(folder / f"{sessions}-{number}.db")) as store:
            lite.append(appended(store, events))
    ratio = min(bare) / min(full)
    measured = {"full": full, "bare": bare, "events": bare_events, "lite": lite}
    per_second = {name: f"{len(events) / min(times):,.0f}/s" for name, times in measured.items()}
    what = f"{sessions} sessions, {len(events):,} events"
    return [
        Measure(f"{what}: PostgreSQL, full path", per_second["full"], "", met=True),
        Measure(f"{what}: COPY of the same rows", per_second["bare"], "", met=True),
        Measure(f"{what}: COPY of the events alone", per_second["events"], "", met=True),
        Measure(
            f"{what}: full path / COPY of the same rows",
            f"{ratio:.2f}",
            f">= {FLOOR_RATIO}",
            ratio >= FLOOR_RATIO,
        ),
        Measure(f"{what}: SQLite, full path", per_second["lite"], "", met=True),
    ]


def main() -> None:
    """Print the measures; exit with 1 when the target is missed."""
    programs = binaries()
    if programs is None:
        raise SystemExit("PostgreSQL's server is not installed")
    server = PostgresServer(programs)
    try:
        server.start()
        with tempfile.TemporaryDirectory() as folder:
            measures = [
                one
                for sessions, per_session in CASES
                for one in measure(server, Path(folder), sessions=sessions, per_session=per_session)
            ]
    finally:
        server.delete()
    for one in measures:
        print(f"{one.what:<68} {one.value:>12}  {one.target}")
    if not all(one.met for one in measures):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
