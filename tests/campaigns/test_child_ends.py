"""Campaign: child processes that end in every usual way; their turns are stored, or the parent reports a gap."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.campaigns.conftest import Campaign

from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import SessionFilter

TURNS = 6
KINDS = ("process", "pool", "executor", "exit", "kill")

_PROGRAM = """
import importlib, json, multiprocessing, os, signal, sys, threading
from concurrent.futures import ProcessPoolExecutor
import windowpane
from windowpane.core.events import Event, EventContext, SessionStarted, TurnEnded, Usage

path, kind, method, turns = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])

def start():
    return windowpane.start(port=0, store=path, notify=[])

def work(number):
    name = f"session-{number}"
    context = EventContext(name, "worker", "gpt-4o", 1, 1, "live", name)
    ended = TurnEnded(Usage(7), "usage")
    start().emit([Event(context, 0, 1.0, SessionStarted()), Event(context, 1, 2.0, ended)])
    if kind == "exit":
        os._exit(0)
    if kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)

def run(context):
    if kind == "pool":
        with context.Pool(2) as pool:  # which ends its workers by SIGTERM
            pool.map(work, range(turns), 1)
        return
    if kind == "executor":
        with ProcessPoolExecutor(2, mp_context=context) as executor:
            list(executor.map(work, range(turns)))
        return
    processes = [context.Process(target=work, args=(number,)) for number in range(turns)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()

def import_again(ended):
    while not ended.is_set():
        for name in ("colorsys", "wave", "chunk", "this_module_is_missing"):
            sys.modules.pop(name, None)
            try:
                importlib.import_module(name)
            except (ImportError, KeyError):  # the other thread imports the same module
                pass

if __name__ == "__main__":
    running, ended = start(), threading.Event()
    importers = [threading.Thread(target=import_again, args=(ended,)) for _ in range(2)]
    for thread in importers:
        thread.start()
    run(multiprocessing.get_context(method))
    ended.set()
    for thread in importers:
        thread.join()
    print(json.dumps([running.flush(), running.flush()]))
"""


class Outcome(NamedTuple):
    """The turns that are stored, and what two calls of the parent's `flush()` returned."""

    stored: int
    flushed: bool
    flushed_again: bool

    def holds(self) -> bool:
        """Return True if nothing is missing, or the gap was reported once."""
        return self.flushed_again and self.flushed == (self.stored == TURNS)


@pytest.mark.matrix  # tests/outputs/runtime/test_child_ends.py has one of each kind
def test_ends_of_child_processes(campaign: Campaign, tmp_path: Path) -> None:
    methods = multiprocessing.get_all_start_methods() if campaign.whole else ["fork"]
    rounds = campaign.attempts(sample=1, whole=4)
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM)
    for kind in KINDS:
        outcomes = [
            _outcome(program, tmp_path / f"{kind}-{method}-{number}.db", kind, method)
            for method in methods
            for number in range(rounds)
        ]
        stored, made = sum(outcome.stored for outcome in outcomes), TURNS * len(outcomes)
        is_killed = kind in ("exit", "kill")
        held = sum(outcome.holds() and (is_killed or outcome.flushed) for outcome in outcomes)
        gaps = sum(not outcome.flushed for outcome in outcomes)
        campaign.record(
            f"children that end: {kind}", tried=len(outcomes), held=held, lost=0 if is_killed else made - stored,
            note=f"{stored} of {made} turns stored, {gaps} gaps reported; {', '.join(methods)}",
        )  # fmt: skip
        assert held == len(outcomes), (kind, outcomes)


def _outcome(program: Path, store: Path, kind: str, method: str) -> Outcome:
    command = [sys.executable, str(program), str(store), kind, method, str(TURNS)]
    ran = subprocess.run(command, check=True, timeout=120, capture_output=True, text=True)
    with closing(SqliteStore(store)) as opened:
        stored = sum(row.turns for row in opened.sessions(SessionFilter()))
    return Outcome(stored, *json.loads(ran.stdout))
