"""Campaign: a writer is killed at any moment; what `flush()` acknowledged is in the store."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

from tests.campaigns.conftest import Campaign
from tests.campaigns.faulted_agent import stored_numbers

from windowpane.store.embedded import SqliteStore

_WRITER = """
import sys
import windowpane
from windowpane.core.events import Event, EventContext, SessionStarted, TurnStarted
running = windowpane.start(port=0, store=sys.argv[1], notify=[])
context = EventContext(sys.argv[2], "killed", "gpt-4o", 1, 1, "live", sys.argv[2])
n = 0
while True:
    running.emit([Event(context, m, 1.0 + m, TurnStarted() if m else SessionStarted()) for m in range(n, n + 20)])
    n += 20
    if running.flush():
        print(n, flush=True)
"""


def test_killed_writers(campaign: Campaign, tmp_path: Path) -> None:
    store, chance = tmp_path / "w.db", random.Random(11)
    tried, held, lost = campaign.attempts(sample=2, whole=200), 0, 0
    for number in range(tried):
        session = f"killed-{number}"
        acknowledged = _acknowledged(store, session, chance)
        numbers = stored_numbers(store, session)
        missing = len(set(range(acknowledged)) - set(numbers))
        with closing(SqliteStore(store)) as opened:
            intact = opened.verify(session, projections=False).intact
        lost += missing
        held += not missing and numbers == list(range(len(numbers))) and intact

    campaign.record(
        "kill -9 of a writer", tried=tried, held=held, lost=lost, note="acknowledged: flush() is True"
    )
    assert held == tried
    assert lost == 0


def _acknowledged(store: Path, session: str, chance: random.Random) -> int:
    """Kill a writer at a random moment and return the number of events that it reported as stored."""
    writer = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(store), session], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    lines = [writer.stdout.readline() for _ in range(chance.randrange(1, 20))]
    killer = threading.Timer(chance.random() * 0.02, os.kill, (writer.pid, signal.SIGKILL))
    killer.start()
    lines += writer.stdout.readlines()
    killer.join()
    writer.wait(30)
    writer.stdout.close()
    return max(int(line) for line in lines if line.endswith("\n"))
