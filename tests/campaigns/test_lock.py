"""Campaign: another process holds the lock of the store, and that of the agent's checkpoints."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.campaigns.conftest import Campaign
from tests.campaigns.faulted_agent import LONGEST_HOOK_MS, TimedAgent, is_complete

import windowpane
from windowpane.store.writes.spool import waiting_files

_HOLDER = """
import fcntl, os, sqlite3, sys
store = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=20)
store.execute("BEGIN IMMEDIATE")
os.makedirs(os.path.dirname(sys.argv[2]), exist_ok=True)
fcntl.flock(os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT), fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held_by_another_process(store: Path, checkpoint: Path) -> Iterator[None]:
    """Have another process hold the write lock of the store and the lock of a checkpoint."""
    lock = checkpoint.with_name(f".{checkpoint.name}.lock")
    holder = subprocess.Popen(
        [sys.executable, "-S", "-c", _HOLDER, str(store), str(lock)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert holder.stdin is not None
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    try:
        yield
    finally:
        holder.communicate()


@pytest.fixture(autouse=True)
def stopped() -> Iterator[None]:
    """No outputs run after a test."""
    yield
    windowpane.stop()


def test_locks_for_a_while(campaign: Campaign, tmp_path: Path) -> None:
    tried, held = campaign.attempts(sample=1, whole=40), 0
    during, without = [], []
    for number in range(tried):
        store, data, session = tmp_path / f"{number}.db", tmp_path / "data", f"locked-{number}"
        running = windowpane.start(port=0, store=store, notify=[])
        agent = TimedAgent(data, session)
        without.append(agent.longest_hook_ms(12))
        before = running.flush(20)
        with held_by_another_process(store, data / "checkpoints" / f"{session}.json"):
            during.append(agent.longest_hook_ms(12))
            was_reported = not running.flush(0.5)
        recovered = running.flush(20)
        agent.close()
        at_end = running.flush(20)
        running.close()
        held += before and was_reported and recovered and at_end and is_complete(store, session)

    campaign.record(
        "store and checkpoint locked by another process", tried=tried, held=held, hook_ms=max(during),
        hook_ms_without=max(without), note="flush() False meanwhile, True with every event afterwards",
    )  # fmt: skip
    assert held == tried
    assert max(during) < LONGEST_HOOK_MS


def test_processes_that_end_while_the_store_is_locked(campaign: Campaign, tmp_path: Path) -> None:
    tried, held, longest = campaign.attempts(sample=1, whole=20), 0, 0.0
    for number in range(tried):
        store, data, session = tmp_path / f"{number}.db", tmp_path / "data", f"ended-{number}"
        running = windowpane.start(port=0, store=store, notify=[])
        agent = TimedAgent(data, session)
        running.flush(20)
        with held_by_another_process(store, data / "other.json"):
            agent.longest_hook_ms(12)
            agent.close()
            started = time.perf_counter()
            running.close(3)
            longest = max(longest, time.perf_counter() - started)
        spooled = bool(waiting_files(store))
        windowpane.start(port=0, store=store, notify=[]).close()
        held += spooled and not waiting_files(store) and longest < 4 and is_complete(store, session)

    campaign.record(
        "end of a process while the store is locked", tried=tried, held=held,
        note=f"spooled and taken in at the next start; longest {longest:.1f} s of 3 s",
    )  # fmt: skip
    assert held == tried
