"""Forks while other threads import: a child can import the same modules."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from windowpane.effects import forks
from windowpane.outputs.runtime import start

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")

_FORK_DURING_IMPORT = """
import os, sys, threading, time
sys.path.insert(0, sys.argv[1])
import windowpane.effects.forks
threading.Thread(target=__import__, args=("slow_module",), daemon=True).start()
while "slow_module" not in sys.modules:
    time.sleep(0.001)
child = os.fork()
if child == 0:
    import signal
    signal.alarm(10)
    import slow_module
    os._exit(0 if slow_module.complete else 1)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
os._exit(0 if code == 0 else 1)
"""

_FORK_WITHIN_LONG_IMPORT = """
import os, sys, threading, time
sys.path.insert(0, sys.argv[1])
import windowpane.effects.forks as forks
forks.IMPORT_SECONDS = 0.3
threading.Thread(target=__import__, args=("slow_module",), daemon=True).start()
while "slow_module" not in sys.modules:
    time.sleep(0.001)
for _ in range(4):
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
os._exit(0)
"""

_FORK_WHILE_ANOTHER_THREAD_REGISTERS_HOOKS = """
import os, threading
from windowpane.effects import forks

class Work:
    def before_fork(self):
        thread = threading.Thread(target=__import__, args=("concurrent.futures.thread",))
        thread.start()
        thread.join()
    def after_fork_in_parent(self):
        pass
    def after_fork(self):
        pass

forks.follow_forks([Work()])
child = os.fork()
if child == 0:
    os._exit(0)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

_SLOW_MODULE = """
import time
from windowpane.core.decoders import json_decoder
time.sleep({seconds})
decoder = json_decoder(list[int])
complete = True
"""


def run(script: str, folder: Path, *, import_seconds: float) -> float:
    (folder / "slow_module.py").write_text(_SLOW_MODULE.format(seconds=import_seconds))
    started = time.monotonic()
    command = [sys.executable, "-c", script, str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    return time.monotonic() - started


def test_a_child_imports_what_another_thread_imported_during_the_fork(tmp_path: Path) -> None:
    """The fork waits for the import, whose lock no thread of the child would ever release."""
    run(_FORK_DURING_IMPORT, tmp_path, import_seconds=0.5)


def test_forks_wait_once_for_a_thread_that_never_ends_its_import(tmp_path: Path) -> None:
    assert run(_FORK_WITHIN_LONG_IMPORT, tmp_path, import_seconds=30) < 5


def test_a_fork_that_waits_for_a_thread_that_loads_a_thread_pool_reports_nothing(tmp_path: Path) -> None:
    """The module registers a pair of hooks, of which the second would run without the first, and complain."""
    run(_FORK_WHILE_ANOTHER_THREAD_REGISTERS_HOOKS, tmp_path, import_seconds=0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_locks_of_other_threads_are_free_in_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that holds one does not exist in the child, which would wait for it forever."""
    monkeypatch.setattr(forks, "FORK_SECONDS", 0.1)
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with start._starting:
            held.set()
            release.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    child = os.fork()
    if child == 0:
        signal.alarm(5)
        with start._starting:
            os._exit(0)
    release.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
