"""Campaign: agents and the PostgreSQL server of their store are killed; nothing is lost or stored twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO

import pytest
from tests.campaigns.conftest import Campaign
from tests.servers.postgres import PostgresServer

from windowpane.store.filters import EventFilter
from windowpane.store.open import open_store
from windowpane.store.records import intact_events

PATIENCE_SECONDS = 60.0
_WRITER = """
import signal, sys
import windowpane
from windowpane.core.events import Event, EventContext, SessionStarted, TurnStarted
running = windowpane.start(port=0, store=sys.argv[1], notify=[])
context = EventContext(sys.argv[2], "killed", "gpt-4o", 1, 1, "live", sys.argv[2])
stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
n = 0
while not stopped:
    running.emit([Event(context, m, 1.0 + m, TurnStarted() if m else SessionStarted()) for m in range(n, n + 20)])
    n += 20
    while not stopped and not running.flush():
        pass
    if not stopped:
        print(n, flush=True)
windowpane.stop()
"""


@pytest.fixture(scope="module")
def own_server(new_postgres_server: Callable[[], PostgresServer]) -> PostgresServer:
    """A server that the tests here may kill."""
    return new_postgres_server()


def test_killed_writers_of_a_server(campaign: Campaign, own_server: PostgresServer, tmp_path: Path) -> None:
    url, chance = own_server.create_database(), random.Random(16)
    tried, held, lost = campaign.attempts(sample=1, whole=100), 0, 0
    for number in range(tried):
        session = f"killed-{number}"
        with running_writer(url, session, tmp_path) as (writer, lines):
            for _ in range(chance.randrange(1, 20)):
                lines.readline()
            time.sleep(chance.random() * 0.02)
            writer.kill()
            acknowledged = last_number(lines.readlines())
        outcome = examined(url, session, acknowledged)
        lost += outcome.lost
        held += outcome.held

    campaign.record("kill -9 of a writer to PostgreSQL", tried=tried, held=held, lost=lost)
    assert (held, lost) == (tried, 0)


def test_killed_servers(campaign: Campaign, own_server: PostgresServer, tmp_path: Path) -> None:
    url, chance = own_server.create_database(), random.Random(61)
    tried, held, lost = campaign.attempts(sample=2, whole=60), 0, 0
    for number in range(tried):
        session = f"crashed-{number}"
        ends_without_server = number % 3 == 1
        with running_writer(url, session, tmp_path) as (writer, lines):
            for _ in range(chance.randrange(2, 30)):
                lines.readline()
            time.sleep(chance.random() * 0.02)
            own_server.kill()
            time.sleep(chance.random() * 0.2)
            if not ends_without_server:
                own_server.start()
                for _ in range(3):
                    lines.readline()
            writer.send_signal(signal.SIGTERM)
            acknowledged = last_number(lines.readlines())
            writer.wait(PATIENCE_SECONDS)
        if ends_without_server:
            own_server.start()
            with running_writer(url, f"next-{number}", tmp_path) as (writer, lines):  # takes in what was spooled
                lines.readline()
                writer.send_signal(signal.SIGTERM)
                lines.readlines()
                writer.wait(PATIENCE_SECONDS)
        outcome = examined(url, session, acknowledged)
        lost += outcome.lost
        held += outcome.held

    campaign.record("crash of the PostgreSQL server", tried=tried, held=held, lost=lost)
    assert (held, lost) == (tried, 0)


class Outcome:
    """The state of a session in the store after a fault."""

    def __init__(self, *, held: bool, lost: int) -> None:
        self.held = held
        self.lost = lost


def examined(url: str, session: str, acknowledged: int) -> Outcome:
    """Compare what is stored of a session with what was acknowledged to its writer."""
    with closing(open_store(url)) as store:
        events = intact_events(store.events_or_damage(EventFilter(session_id=session, limit=1_000_000)))
        intact = store.verify(session).intact
    numbers = [one.event.n for one in events if one.event.context.stream_id == session]
    lost = len(set(range(acknowledged)) - set(numbers))
    return Outcome(held=not lost and numbers == list(range(len(numbers))) and intact, lost=lost)


@contextmanager
def running_writer(url: str, session: str, folder: Path) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """Start an agent that writes until it is stopped and prints how many events are stored."""
    writer = subprocess.Popen(
        [sys.executable, "-c", _WRITER, url, session], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "XDG_DATA_HOME": str(folder)},
    )  # fmt: skip
    assert writer.stdout is not None
    watchdog = threading.Timer(PATIENCE_SECONDS, writer.kill)
    watchdog.start()
    try:
        yield writer, writer.stdout
    finally:
        watchdog.cancel()
        writer.kill()
        writer.wait(PATIENCE_SECONDS)
        writer.stdout.close()


def last_number(lines: list[str]) -> int:
    """Return the last number of the lines that were written whole."""
    return max((int(line) for line in lines if line.endswith("\n")), default=0)
