"""Several processes on one store, and processes killed while they write."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from windowpane.store.filters import EventFilter, SessionFilter

WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from conftest import make_tracker, play
from windowpane.store.open import open_store

store = open_store(sys.argv[2])
name, sessions, shared = sys.argv[3], int(sys.argv[4]), sys.argv[5] == "shared"
print("ready", flush=True)
for number in range(sessions):
    session = "shared" if shared else f"{name}-{number}"
    tracker = make_tracker(session, store.append)
    if shared:
        emitter = tracker.conclusions.emitter
        emitter.info = type(tracker.info)(session, "reviewer", "gpt-5", "demo", f"{name}-{number}")
        emitter.renew_context()
    play(tracker, 6)
    if sys.argv[5] == "acknowledge":
        store.flush()
        print(store.session(session).events, flush=True)
store.close()
"""


def start_writer(store: str, name: str, sessions: int, mode: str = "own") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(Path(__file__).parents[1]), store, name, str(sessions), mode]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("mode", ["own", "shared"])
def test_processes_may_write_at_the_same_time(stores, make_session, mode):
    stores.open().close()
    writers = [start_writer(stores.name, f"p{number}", 5, mode) for number in range(3)]
    for writer in writers:
        writer.communicate(timeout=120)
        assert writer.returncode == 0

    reader = stores.open()
    stored = [item for batch in reader.scan() for item in batch]
    assert [item.seq for item in stored] == list(range(1, reader.size().events + 1))
    own = [item for item in stored if item.event.type != "session.continued"]
    assert len(own) == 3 * 5 * len(make_session(turns=6))
    assert reader.verify().intact
    sessions = reader.sessions(SessionFilter())
    assert len(sessions) == (1 if mode == "shared" else 15)
    for row in sessions:
        turns = reader.turns(row.session_id)
        assert [turn.turn for turn in turns] == list(range(1, len(turns) + 1))
        assert sum(turn.input_tokens is not None for turn in turns) == row.turns
    reader.close()


def test_flushed_events_survive_a_kill(stores, make_session):
    per_session = len(make_session(turns=6))
    chance = random.Random(4)
    for round_number in range(6):
        writer = start_writer(stores.name, f"r{round_number}", 10_000, "acknowledge")
        assert writer.stdout is not None
        wanted = chance.randrange(1, 6)
        acknowledged = [writer.stdout.readline() for _ in range(wanted)]
        timer = threading.Timer(chance.random() * 0.02, os.kill, (writer.pid, signal.SIGKILL))
        timer.start()
        acknowledged += writer.stdout.readlines()
        timer.join()
        writer.communicate(timeout=30)
        whole = [line for line in acknowledged if line.endswith("\n")]

        store = stores.open()
        for number in range(len(whole)):
            row = store.session(f"r{round_number}-{number}")
            assert row is not None
            assert (row.events, row.ended) == (per_session, True)
        assert store.verify().intact
        store.close()


def test_a_reader_is_never_blocked_and_sees_whole_batches(stores, make_session):
    stores.open().close()
    reader = stores.read()
    writer = start_writer(stores.name, "p", 30)
    reads = 0
    while writer.poll() is None:
        for row in reader.sessions(SessionFilter(order="recent", limit=3)):
            assert reader.session(row.session_id).events >= row.events
            assert len(reader.events(EventFilter(session_id=row.session_id, limit=10_000))) >= row.events
        reads += 1
    writer.communicate()

    assert reads > 1
    assert len(reader.sessions(SessionFilter())) == 30
    reader.close()


def test_threads_share_one_store(store, make_session):
    failures: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for number in range(5):
                store.append(make_session(f"{name}-{number}", turns=2))
                assert store.session(f"{name}-{number}").turns == 2
                assert store.turns(f"{name}-{number}")
        except BaseException as error:  # noqa: BLE001  # handed to the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=work, args=(f"t{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not failures
    assert len(store.sessions(SessionFilter())) == 20
    assert store.verify().intact


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
def test_a_forked_child_writes_through_its_own_connection(store, make_session):
    store.append(make_session("before", turns=2))
    child = os.fork()
    if child == 0:
        try:
            store.append(make_session("child", turns=2))
            store.flush()
            os._exit(0 if store.session("child") else 1)
        except BaseException:  # noqa: BLE001  # the child must not return into the test run
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    store.append(make_session("parent", turns=2))

    assert {row.session_id for row in store.sessions(SessionFilter())} == {"before", "child", "parent"}
    assert store.verify().intact
