"""Records of what a child process has not stored yet, in a file beside the store that its end does not erase.

A child that is killed, or that ends by `os._exit`, cannot report what it loses. So it counts in a file of 32
bytes that is mapped into its memory, and holds a lock on the file that its end releases. Its parent compares the
counts of children that have ended; those of a parent that has ended too, the next process.
"""

from __future__ import annotations

import logging
import mmap
import os
import sys
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import Final, Protocol

from windowpane.effects.private_files import MODE_FILE, create_folder
from windowpane.effects.worker import ProgressCounter
from windowpane.metrics.internal import CountDrops

if sys.platform != "win32":
    import fcntl

_NUMBER: Final = Struct("<Q")
_NUMBERS: Final = Struct("<4Q")
_log = logging.getLogger("windowpane")


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
            if int(child) != os.getpid() and (int(parent) == os.getpid() or not _runs(int(parent))):
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
    if sys.platform == "win32":
        raise OSError("Windows releases no memory of a file while it is locked")
    fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _prefix(store: Path) -> str:
    return f"{store.name}.child-"
