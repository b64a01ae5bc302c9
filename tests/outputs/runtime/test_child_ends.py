"""Processes whose end runs no `atexit` handlers, or other handlers after ours: their turns are stored."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.sampling import sampled

from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import SessionFilter

_EMIT = """
import atexit, faulthandler, multiprocessing, os, signal, sys, threading, time, urllib.request
from concurrent.futures import ProcessPoolExecutor
import windowpane
from windowpane.core.events import Event, EventContext, SessionStarted, TurnEnded, Usage

faulthandler.enable()  # SIGABRT writes what each thread of each process waits for

def start():
    return windowpane.start(port=0, store=sys.argv[1], notify=[])

def work(number):
    name = f"session-{number}"
    context = EventContext(name, "worker", "gpt-4o", 1, 1, "live", name)
    ended = TurnEnded(Usage(7), "usage")
    start().emit([Event(context, 0, 1.0, SessionStarted()), Event(context, 1, 2.0, ended)])
"""

_PROCESSES = """
if __name__ == "__main__":
    running = start()
    context = multiprocessing.get_context(sys.argv[2])
    processes = [context.Process(target=work, args=(number,)) for number in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    with ProcessPoolExecutor(1, mp_context=context) as executor:
        list(executor.map(work, (2, 3)))
"""

_POOL = """
if __name__ == "__main__":
    running = start()
    with multiprocessing.get_context(sys.argv[2]).Pool(2) as pool:
        pool.map(work, range(4), 1)
"""

_UNNOTICED = """
def wait():
    lock = multiprocessing.Lock()
    while True:
        lock.acquire()

def end_unnoticed(main):
    # Another thread receives the signal, so it interrupts the main thread as little as one just before the wait.
    while sys._current_frames()[main].f_code is not wait.__code__:
        time.sleep(0.01)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

def work_and_wait():
    work(0)
    threading.Thread(target=end_unnoticed, args=(threading.get_ident(),)).start()
    wait()

if __name__ == "__main__":
    running = start()
    process = multiprocessing.get_context(sys.argv[2]).Process(target=work_and_wait)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGTERM, process.exitcode
"""

_KILLED = """
def end(number):
    work(number)
    if number == 0:
        start().flush()
    os._exit(0)

if __name__ == "__main__":
    running = start()
    context = multiprocessing.get_context(sys.argv[2])
    for number in range(2):
        process = context.Process(target=end, args=(number,))
        process.start()
        process.join()
        assert running.flush() == (number == 0), number
        assert running.flush()
    with urllib.request.urlopen(running.url) as page:
        assert 'windowpane_dropped_events_total{reason="child_ended",sink="store"} 2.0' in page.read().decode()
"""

_EARLIER_HANDLER = """
atexit.register(lambda: running.emit(late))
running = start()
work(0)
context = EventContext("late", "worker", "gpt-4o", 1, 1, "live", "late")
late = [Event(context, 0, 1.0, SessionStarted()), Event(context, 1, 2.0, TurnEnded(Usage(7), "usage"))]
"""


def run(*command: str) -> None:
    """Run a program; if it hangs, fail with the stack of every thread of its processes."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        _, errors = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGABRT)
        _, errors = process.communicate()
    assert process.returncode == 0, errors


def sessions(tmp_path: Path, script: str, *arguments: str) -> set[str]:
    program = tmp_path / "program.py"
    program.write_text(_EMIT + script)
    path = tmp_path / "windowpane.db"
    run(sys.executable, str(program), str(path), *arguments)
    with closing(SqliteStore(path)) as store:
        return {row.session_id for row in store.sessions(SessionFilter()) if row.turns}


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_children_of_multiprocessing_store_their_turns(tmp_path: Path, method: str) -> None:
    assert sessions(tmp_path, _PROCESSES, method) == {f"session-{number}" for number in range(4)}


@pytest.mark.parametrize("method", sampled(multiprocessing.get_all_start_methods(), 1))
def test_workers_of_a_pool_store_their_turns(tmp_path: Path, method: str) -> None:
    assert sessions(tmp_path, _POOL, method) == {f"session-{number}" for number in range(4)}


@pytest.mark.skipif(sys.platform == "win32", reason="a terminated process runs nothing")
@pytest.mark.parametrize("method", sampled(multiprocessing.get_all_start_methods(), 1))
def test_a_signal_that_interrupts_no_wait_ends_the_child(tmp_path: Path, method: str) -> None:
    assert sessions(tmp_path, _UNNOTICED, method) == {"session-0"}


@pytest.mark.parametrize("method", sampled(multiprocessing.get_all_start_methods(), 1))
def test_events_of_a_killed_child_are_reported_once(tmp_path: Path, method: str) -> None:
    assert sessions(tmp_path, _KILLED, method) == {"session-0"}
    assert not list(tmp_path.glob("windowpane.db.child-*"))


def test_handlers_registered_before_start_store_their_turns(tmp_path: Path) -> None:
    assert sessions(tmp_path, _EARLIER_HANDLER) == {"session-0", "late"}
