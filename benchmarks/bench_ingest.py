"""Events a second that a core of `serve --ingest` stores, and the time until they are acknowledged.

A hundred agents send a batch of 50 events each second for some seconds, so 5,000 events a second arrive at a real
server process, which stores them durably in SQLite and folds them into its metrics. Its CPU time gives the events
a second of one core. The floor is a bare HTTP server that only reads the bodies, under the same load in the same
run. Where PostgreSQL's server is installed the events are stored there, too: as in the tests, and with fsync, so
that each acknowledgement waits for the disk.
"""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench_store import session
from tests.servers.postgres import PostgresServer, binaries

from windowpane.core.digests import keyed_digester
from windowpane.outputs.remote.batches import CONTENT_TYPE, PATH, compressed, event_records
from windowpane.store.open import open_reader

AGENTS = 100
EVENTS_A_BATCH = 50
BATCHES_AN_AGENT = 10
GOAL = 5_000
"""Events a second of one core."""
GOAL_P99_MS = 100
SENDERS = 32
"""Threads that send; each waits for its acknowledgement."""
HEADERS = {"Content-Type": CONTENT_TYPE, "Content-Encoding": "gzip"}

BARE = """
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
    def log_message(self, *_):
        pass
class Server(ThreadingHTTPServer):
    request_queue_size = 128
server = Server(("127.0.0.1", 0), Handler)
print(f"metrics on http://127.0.0.1:{server.server_port}/metrics", flush=True)
server.serve_forever()
"""


class Load(NamedTuple):
    """The result of one run."""

    cpu_seconds: float
    wall_seconds: float
    milliseconds: list[float]

    def percentile(self, share: float) -> float:
        ordered = sorted(self.milliseconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def bodies() -> list[bytes]:
    """Return the batches of all agents, in the order in which they are sent."""
    digest = keyed_digester(b"bench")
    made = [session(f"agent-{number}", EVENTS_A_BATCH * BATCHES_AN_AGENT, digest) for number in range(AGENTS)]
    return [
        compressed(list(event_records(events[start : start + EVENTS_A_BATCH])))
        for start in range(0, EVENTS_A_BATCH * BATCHES_AN_AGENT, EVENTS_A_BATCH)
        for events in made
    ]


def cpu_seconds(process: subprocess.Popen[str]) -> float:
    """Return the CPU time of a process so far."""
    fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def under_load(command: list[str], sent: list[bytes]) -> Load:
    """Start a server, send every body at its time, and stop the server."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = next(line for line in process.stdout if line.startswith("metrics on"))
        port = int(line.rsplit(":", 1)[1].split("/")[0])
        send(port, sent[:1])  # what is loaded once
        before = cpu_seconds(process)
        started = time.monotonic()
        milliseconds = send(port, sent[1:])
        wall = time.monotonic() - started
        time.sleep(1.5)  # the metrics follow the store
        return Load(cpu_seconds(process) - before, wall, milliseconds)
    finally:
        process.terminate()
        process.wait(30)


def send(port: int, sent: list[bytes]) -> list[float]:
    """Send the bodies evenly over time from several threads; return the milliseconds of each."""
    waiting: SimpleQueue[tuple[float, bytes]] = SimpleQueue()
    start = time.monotonic()
    for number, body in enumerate(sent):
        waiting.put((start + number / AGENTS, body))
    milliseconds: list[float] = []

    def work() -> None:
        while True:
            try:
                due, body = waiting.get_nowait()
            except Empty:
                return
            time.sleep(max(0.0, due - time.monotonic()))
            begun = time.perf_counter()
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            connection.request("POST", PATH, body=body, headers=HEADERS)
            status = connection.getresponse().status
            connection.close()
            milliseconds.append(1_000 * (time.perf_counter() - begun))
            if status != 200:
                sys.exit(f"status {status}")

    threads = [threading.Thread(target=work) for _ in range(SENDERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return milliseconds


def stored(store: str) -> int:
    """Return the number of events in a store."""
    with closing(open_reader(store)) as reader:
        return reader.size().events


def stores(folder: Path, stack: ExitStack) -> Iterator[tuple[str, str]]:
    """Yield the name and address of each new store; a server runs while its store is measured."""
    yield "SQLite", str(folder / "windowpane.db")
    programs = binaries()
    for name, settings in (("PostgreSQL", ()), ("PostgreSQL, fsync", ("fsync=on", "full_page_writes=on"))):
        if programs is not None:
            server = PostgresServer(programs, memory="256MB", settings=settings)
            stack.callback(server.delete)
            server.start()
            yield name, server.create_database()
            server.stop()


def main() -> None:
    """Print the rates and times of the floor and of each store."""
    sent = bodies()
    events = len(sent) * EVENTS_A_BATCH
    size = sum(map(len, sent)) / events
    print(f"{events:,} events in {len(sent):,} batches, {size:.0f} bytes each when compressed")
    print("\n| server | events a second of one core | acknowledged p50 | p99 |\n| --- | --- | --- | --- |")
    failed = False
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        floor = under_load([sys.executable, "-c", BARE], sent)
        print(row("floor: reads the body", events, floor))
        for name, store in stores(Path(folder), stack):
            serve = ["serve", "--ingest", "--port", "0", "--store", store]
            load = under_load([sys.executable, "-u", "-m", "windowpane", *serve], sent)
            if stored(store) != events:
                sys.exit(f"{events:,} events were acknowledged and {stored(store):,} are stored")
            print(row(name, events, load))
            rate = events / load.cpu_seconds
            failed = failed or rate < GOAL or load.percentile(0.99) > GOAL_P99_MS
    outcome = "missed" if failed else "met"
    print(f"\nGoal: {GOAL:,} events a second of one core, p99 under {GOAL_P99_MS} ms: {outcome}.")
    if failed:
        sys.exit(1)


def row(name: str, events: int, load: Load) -> str:
    rate = events / load.cpu_seconds
    return f"| {name} | {rate:,.0f} | {load.percentile(0.5):.1f} ms | {load.percentile(0.99):.1f} ms |"


if __name__ == "__main__":
    main()
