"""Child processes: their ends, which may run no `atexit` handlers, and the records of what they did not store.

A child of `multiprocessing` ends by `os._exit` after the finalizers of `multiprocessing.util`, and a worker of
a pool by SIGTERM, often while it finishes. Nothing here imports `multiprocessing`: a process that does not use
it has no such children.

A child that is killed, or that ends by `os._exit`, cannot report what it loses. So it counts in a file of 32
bytes beside the store that is mapped into its memory, and holds a lock on the file that its end releases. Its
parent compares the counts of children that have ended; those of a parent that has ended too, the next process.
"""

from __future__ import annotations

import logging
import mmap
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import Any, Final, Protocol

from windowpane.effects.private_files import MODE_FILE, create_folder
from windowpane.effects.processes import is_running
from windowpane.effects.worker import ProgressCounter, run_within
from windowpane.metrics.internal import CountDrops

if sys.platform != "win32":
    import fcntl

TERMINATION_SECONDS: Final = 3.0
"""The longest that a terminated worker takes to store its events."""
_LAST: Final = -1_000_000
"""The priority of a finalizer that runs after the others."""
_PAUSES_SECONDS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 1.0)
"""Between the interruptions of a main thread that has not handled a signal."""
_NUMBER: Final = Struct("<Q")
_NUMBERS: Final = Struct("<4Q")
_wakeups: Final[set[int]] = set()
"""Descriptors of ours to which Python writes the signals that come."""
_log = logging.getLogger("windowpane")


def follow_child(owner: object, finish: Callable[[Any], object]) -> None:
    """Call *finish* with *owner* at the end of this forked child, if `multiprocessing` is about to run it."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None:  # which discards the finalizers of the parent first
        util.register_after_fork(owner, lambda one: finish_at_end(lambda: finish(one)))


def parent() -> int | None:
    """Return the process that started this one through `multiprocessing`; None for another process."""
    process = sys.modules.get("multiprocessing.process")
    started_by = None if process is None else process.parent_process()
    return None if started_by is None else int(started_by.pid)


def finish_at_end(finish: Callable[[], object]) -> None:
    """Call *finish* at the end of this child, and before SIGTERM ends it unless the program handles that."""
    end = _End(finish)
    sys.modules["multiprocessing.util"].Finalize(None, end.finish, exitpriority=_LAST)
    if sys.platform != "win32" and threading.current_thread() is threading.main_thread():
        _handle_termination(end)


class _End:
    """The end of a child: by itself, by SIGTERM, or by SIGTERM while it ends by itself."""

    def __init__(self, finish: Callable[[], object]) -> None:
        self._finish = finish
        self._is_finishing = False
        self._is_finished = False
        self.signal: int | None = None
        """The signal whose handler has run."""

    def finish(self) -> None:
        """Finish on this thread; a signal that came meanwhile ends the process afterwards."""
        if self._is_finishing:
            return
        self._is_finishing = True
        self._finish()
        self._is_finished = True
        if self.signal is not None:
            _die(self.signal)

    def terminate(self, number: int, _frame: object) -> None:
        """Finish, then end by the signal. The handler of SIGTERM."""
        self.signal = number
        if self._is_finishing and not self._is_finished:
            return  # this thread may be the one that finishes: it can go on only after the handler
        if not self._is_finished:
            self._is_finishing = True
            run_within(TERMINATION_SECONDS, self._finish)  # on another thread: this one may hold any lock
        _die(number)

    def ignore(self, _number: int, _frame: object) -> None:
        """Do nothing: the signal interrupts a wait. The handler of SIGURG."""


if sys.platform != "win32":

    def _handle_termination(end: _End) -> None:
        """Let *end* handle SIGTERM, unless the program itself handles it, or what wakes the main thread."""
        if not (_is_free(signal.SIGTERM) and _is_free(signal.SIGURG)):
            return
        signals, wakeup = os.pipe()
        os.set_blocking(wakeup, False)
        earlier = signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        if earlier not in {-1, *_wakeups}:
            signal.set_wakeup_fd(earlier)
            os.close(signals)
            os.close(wakeup)
            return
        _wakeups.add(wakeup)
        arguments = (end, signals, threading.get_ident())
        threading.Thread(target=_wake, args=arguments, name="windowpane-signals", daemon=True).start()
        signal.signal(signal.SIGURG, end.ignore)
        signal.signal(signal.SIGTERM, end.terminate)

    def _is_free(number: int) -> bool:
        """Return whether a signal has no handler, or the one that this process's parent installed here."""
        handler = signal.getsignal(number)
        return handler is signal.SIG_DFL or isinstance(getattr(handler, "__self__", None), _End)

    def _wake(end: _End, signals: int, main_thread: int) -> None:
        """Wake the main thread at every SIGTERM. *signals* yields the numbers of the signals that come.

        Python runs a handler between two instructions of the main thread. A signal that comes after the last of
        them, but before the wait that it leads to, interrupts nothing: the worker of a pool would wait for its
        next task without end, and the pool for the worker.
        """
        while numbers := os.read(signals, 64):
            if signal.SIGTERM in numbers:
                _interrupt(end, main_thread)

    def _interrupt(end: _End, main_thread: int) -> None:
        """Interrupt what the main thread waits for until it has handled SIGTERM; SIGURG does nothing else."""
        for pause_seconds in _PAUSES_SECONDS:
            time.sleep(pause_seconds)
            if end.signal is not None:
                return
            signal.pthread_kill(main_thread, signal.SIGURG)


def _die(number: int) -> None:
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


class Progress:
    """Two numbers that only grow: how much was accepted, and how much of it is done."""

    def __init__(self, memory: bytearray | mmap.mmap | None = None, offset: int = 0) -> None:
        self._memory = bytearray(_NUMBERS.size) if memory is None else memory
        self._offset = offset

    def accept(self, number: int) -> None:
        """State how much was accepted so far."""
        _NUMBER.pack_into(self._memory, self._offset, number)

    def finish(self, number: int) -> None:
        """State how much of it is done."""
        _NUMBER.pack_into(self._memory, self._offset + _NUMBER.size, number)


class ChildRecord:
    """The counts of this process, a child of *parent*, while it runs. Raises `OSError` without a file."""

    def __init__(self, store: Path, parent: int) -> None:
        create_folder(store.parent)
        self._path = store.with_name(f"{_prefix(store)}{parent}-{os.getpid()}")
        new = self._path.with_name(f"{store.name}.new-{self._path.name}")
        self._descriptor = os.open(new, os.O_RDWR | os.O_CREAT | os.O_TRUNC, MODE_FILE)
        os.ftruncate(self._descriptor, _NUMBERS.size)
        _lock(self._descriptor)
        memory = mmap.mmap(self._descriptor, _NUMBERS.size)
        new.rename(self._path)  # with its lock: never seen without
        self.events = Progress(memory)
        """The events of the pipeline."""
        self.tasks = Progress(memory, 2 * _NUMBER.size)
        """Observed calls, which become events."""

    def remove(self) -> None:
        """Remove the file: what was not stored is spooled, or in this process's log."""
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


class Counted(Protocol):
    """A queue that states its progress."""

    progress: ProgressCounter | None


class ChildRecords:
    """The record of this process, if it is a child, and those of its children."""

    def __init__(self, store: Path, count_drops: CountDrops) -> None:
        self._store = store
        self._count_drops = count_drops
        self._own: ChildRecord | None = None

    def start(self, parent: int | None, events: Counted, tasks: Counted) -> None:
        """Count for *parent*, if there is one, what this process has not stored."""
        self._own = None
        if parent is None or sys.platform == "win32":
            return
        with suppress(OSError):
            self._own = ChildRecord(self._store, parent)
            events.progress, tasks.progress = self._own.events, self._own.tasks

    def end(self) -> None:
        """Remove the record of this process, which has finished."""
        own, self._own = self._own, None
        if own is not None:
            own.remove()

    def report(self) -> bool:
        """Return True unless children have ended without storing everything, which is counted and logged."""
        lost = 0 if sys.platform == "win32" else _take_unstored(self._store)
        if lost:
            self._count_drops("store", "child_ended", lost)
            _log.error("child processes ended before up to %d of their events were stored", lost)
        return not lost


def _take_unstored(store: Path) -> int:
    """Return what ended children of this process, or of one that has ended, did not store, and forget them."""
    prefix, unstored = _prefix(store), 0
    with suppress(OSError), os.scandir(store.parent) as entries:
        for entry in entries:
            parent, _, child = entry.name.removeprefix(prefix).partition("-")
            if not (entry.name.startswith(prefix) and parent.isdecimal() and child.isdecimal()):
                continue
            if int(child) != os.getpid() and (int(parent) == os.getpid() or not is_running(int(parent))):
                unstored += _take(Path(entry.path))
    return unstored


def _take(path: Path) -> int:
    with suppress(OSError), path.open("r+b") as file:
        _lock(file.fileno())
        if not os.fstat(file.fileno()).st_nlink:
            return 0  # another process was faster
        content = file.read()
        path.unlink()
        if len(content) == _NUMBERS.size:
            events, stored, tasks, done = _NUMBERS.unpack(content)
            return int(max(0, events - stored) + max(0, tasks - done))
    return 0


def _lock(descriptor: int) -> None:
    """Lock a file until this process closes it or ends. Raises `OSError` while another process holds the lock."""
    if sys.platform != "win32":  # where no child has a record: a mapped file cannot be locked there
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _prefix(store: Path) -> str:
    return f"{store.name}.child-"
