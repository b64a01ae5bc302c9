"""Campaign: agents, their server and its database are killed; what was acknowledged is stored, once."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.campaigns.conftest import Campaign
from tests.campaigns.ingest_server import IngestServer, fill, is_intact, stored_numbers, stored_types

PATIENCE_SECONDS = 120.0
AGENTS = """
import os, signal, sys, threading, time
import windowpane
from windowpane.core.events import Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking import SessionInfo, SessionTracker
url, name, agents, turns = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
running = windowpane.start(port=0, store=url, notify=[])
stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
emitted = {}
def emit(batch):
    session = batch[0].context.session_id
    running.emit(list(batch))
    emitted[session] = batch[-1].n + 1
def report():
    counts = dict(emitted)
    if running.flush(5.0):
        print(" ".join(f"{session}={count}" for session, count in counts.items()), flush=True)
        return True
    time.sleep(0.2)
    return False
trackers = []
limits = WindowLimits.of(128_000, "given")
for number in range(agents):
    session = f"{name}-{number}"
    info = SessionInfo(session, "simulated", "gpt-4o", "live", f"{session}/stream")
    trackers.append(SessionTracker(info, emit=emit, digest=running.digest, limits=limits))
for tracker in trackers:
    tracker.start(time.time())
for turn in range(turns):
    for tracker in trackers:
        at = time.time()
        tracker.add("user_message", f"message {turn}", 20, at=at)
        tracker.add("assistant_response", f"reply {turn}", 30, at=at)
        tracker.end_turn(Usage(input_tokens=tracker.window.tokens + 100, output_tokens=30), at=at)
        while running.pipeline.queued_events > 20_000:
            time.sleep(0.01)
    report()
    print("turn", flush=True)
    if stopped:
        break
for tracker in trackers:
    tracker.end("completed", time.time())
deadline = time.monotonic() + 300
while not report() and time.monotonic() < deadline:
    pass
print("done", flush=True)
windowpane.stop()
"""


class Agents:
    """A process with simulated agents."""

    def __init__(self, server: IngestServer, name: str, *, agents: int, turns: int, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", AGENTS, server.url, name, str(agents), str(turns)],
            env=os.environ | {"XDG_DATA_HOME": str(folder)}, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.acknowledged: dict[str, int] = {}
        """The number of events of each session for which a flush returned True."""
        self.is_done = False
        self._has_reported = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if not line.endswith("\n"):
                return
            self.is_done = self.is_done or line == "done\n"
            for session, _, count in (part.partition("=") for part in line.split() if "=" in part):
                self.acknowledged[session] = int(count)
            if "=" in line or self.is_done:
                self._has_reported.set()

    def wait_for_report(self) -> None:
        """Return when further events were acknowledged, or all of them."""
        if not self.is_done:
            self._has_reported.clear()
        assert self._has_reported.wait(PATIENCE_SECONDS), "nothing was acknowledged"

    def finish(self) -> None:
        """End the sessions after the current turn, and wait for that."""
        self.process.terminate()
        self.wait()

    def wait(self, seconds: float = 900) -> None:
        self.process.wait(seconds)
        self._reader.join(10)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.wait()


class Result(NamedTuple):
    """The acknowledged events, compared with the stored ones."""

    acknowledged: int
    lost: int
    repeated: int
    out_of_order: int
    is_intact: bool

    @property
    def holds(self) -> bool:
        return not self.lost and not self.repeated and not self.out_of_order and self.is_intact


class Examined:
    """A store after the faults, read once."""

    def __init__(self, store: str) -> None:
        self._numbers = stored_numbers(store)
        self._is_intact = is_intact(store)

    def compare(self, *processes: Agents) -> Result:
        """Compare what these processes were acknowledged with what is stored of their sessions."""
        acknowledged = {session: count for one in processes for session, count in one.acknowledged.items()}
        stored = [self._numbers[session] for session in acknowledged]
        lost = sum(len(set(range(count)) - set(self._numbers[one])) for one, count in acknowledged.items())
        repeated = sum(len(numbers) - len(set(numbers)) for numbers in stored)
        out_of_order = sum(numbers != sorted(numbers) for numbers in stored)
        return Result(sum(acknowledged.values()), lost, repeated, out_of_order, self._is_intact)


StartServer = Callable[[str], IngestServer]
StartAgents = Callable[..., Agents]


@pytest.fixture
def start_agents() -> Iterator[StartAgents]:
    """Starts processes with agents, and ends them with the test."""
    started: list[Agents] = []

    def start(server: IngestServer, name: str, **options: Any) -> Agents:
        started.append(Agents(server, name, **options))
        return started[-1]

    yield start
    for agents in started:
        agents.kill()


@pytest.fixture
def start_server(tmp_path: Path, free_port) -> Iterator[StartServer]:
    """Starts a server over a store, and ends it with the test."""
    started: list[IngestServer] = []

    def start(store: str) -> IngestServer:
        server = IngestServer(store, free_port(), tmp_path / "server.log")
        started.append(server)
        server.start()
        return server

    yield start
    for server in started:
        server.kill()


def test_killed_agents(
    campaign: Campaign, tmp_path: Path, start_server: StartServer, start_agents: StartAgents
) -> None:
    server, chance = start_server(str(tmp_path / "w.db")), random.Random(3)
    tried, killed = campaign.attempts(sample=1, whole=60), list[Agents]()
    for number in range(tried):
        agents = start_agents(server, f"killed{number}", agents=10, turns=10_000, folder=tmp_path / "data")
        agents.wait_for_report()
        time.sleep(chance.random() * 0.3)
        agents.kill()
        killed.append(agents)
    examined = Examined(server.store)
    results = [examined.compare(agents) for agents in killed]
    held, lost = sum(result.holds for result in results), sum(result.lost for result in results)

    campaign.record("kill -9 of an agent that sends to a server", tried=tried, held=held, lost=lost,
                    note="acknowledged: flush() is True")  # fmt: skip
    assert (held, lost) == (tried, 0)


def test_killed_servers(
    campaign: Campaign, tmp_path: Path, start_server: StartServer, start_agents: StartAgents
) -> None:
    server, chance = start_server(str(tmp_path / "w.db")), random.Random(4)
    tried = campaign.attempts(sample=1, whole=40)
    agents = start_agents(server, "outlives", agents=10, turns=100_000, folder=tmp_path / "data")
    for _ in range(tried):
        agents.wait_for_report()
        time.sleep(chance.random() * 0.5)
        server.kill()
        server.start()
    agents.finish()
    result = Examined(server.store).compare(agents)

    campaign.record("kill -9 of the server that agents send to", tried=tried, held=tried if result.holds else 0,
                    lost=result.lost, note=f"{result.acknowledged:,} events acknowledged")  # fmt: skip
    assert agents.is_done
    assert result.holds, result


def test_servers_killed_while_they_fold(
    campaign: Campaign, tmp_path: Path, start_server: StartServer, start_agents: StartAgents
) -> None:
    store, chance = tmp_path / "w.db", random.Random(5)
    fill(store, sessions=campaign.attempts(sample=10, whole=1_000))
    stored_before = len(stored_types(store))
    tried, held, early = campaign.attempts(sample=1, whole=20), 0, 0
    server, turns = start_server(str(store)), 0.0
    agents = start_agents(server, "outlives", agents=10, turns=100_000, folder=tmp_path / "data")
    for _ in range(tried):
        agents.wait_for_report()
        early += server.turns_counted() is None
        time.sleep(chance.random() * campaign.attempts(sample=0, whole=30))  # about as long as a fold
        counted = server.turns_counted()
        held += counted is None or counted >= turns
        turns = counted or turns
        server.kill()
        server.start()
    agents.finish()
    result = Examined(server.store).compare(agents)
    ended = stored_types(store).count("turn.ended")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (counted := server.turns_counted()) != ended and time.monotonic() < deadline:
        time.sleep(0.1)

    campaign.record(
        "kill -9 of a server that folds its stored events", tried=tried, held=held if result.holds else 0,
        lost=result.lost,
        note=f"{stored_before:,} events stored before, {result.acknowledged:,} acknowledged meanwhile, "
        f"{early} times before /metrics appeared; no counter fell, each turn counted once",
    )  # fmt: skip
    assert (held, counted) == (tried, ended)
    assert agents.is_done
    assert result.holds, result


def test_restarted_databases(
    campaign: Campaign, tmp_path: Path, start_server: StartServer, start_agents: StartAgents, new_postgres_server
) -> None:
    database = new_postgres_server()
    server = start_server(database.create_database())
    processes, agents = campaign.attempts(sample=1, whole=4), campaign.attempts(sample=10, whole=500)
    restarts, turns = campaign.attempts(sample=1, whole=2), campaign.attempts(sample=10, whole=6)
    started = time.monotonic()
    running = [
        start_agents(server, f"p{number}", agents=agents, turns=turns, folder=tmp_path / f"data{number}")
        for number in range(processes)
    ]
    for _ in range(restarts):
        for one in running:
            one.wait_for_report()
        database.stop()
        time.sleep(campaign.attempts(sample=0, whole=5))  # how long it is away
        database.start()
    for one in running:
        one.wait()
    took = time.monotonic() - started
    result = Examined(server.store).compare(*running)

    campaign.record(
        "restart of the database behind the server", tried=restarts, held=restarts if result.holds else 0,
        lost=result.lost,
        note=f"{processes * agents:,} agents of {processes} processes, {result.acknowledged:,} events "
        f"acknowledged in {took:.0f} s",
    )  # fmt: skip
    assert all(one.is_done for one in running)
    assert result.holds, result
