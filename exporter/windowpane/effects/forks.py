"""Forks of the process: what a fork waits for, and objects that follow every fork."""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401  # registers hooks in pairs: not on another thread while a fork waits
import os
import sys
import threading
import time
from collections.abc import Iterable
from types import FrameType, TracebackType
from typing import Final, Protocol

from windowpane.core.decoders import preparing

FORK_SECONDS: Final = 2.0
"""Longest wait of a fork for work in progress: a child forked during a write cannot use SQLite."""
IMPORT_SECONDS: Final = 2.0
"""Longest wait of a fork for another thread's imports, for each thread once."""
_IMPORT_PAUSE_SECONDS: Final = 0.002
_IMPORT_SYSTEM: Final = "<frozen importlib._bootstrap>"


class ForkAware(Protocol):
    """An object with state that a forked child must not inherit as it is."""

    def before_fork(self) -> None:
        """Wait for work in progress, and start no other until the fork is done."""
        ...

    def after_fork_in_parent(self) -> None:
        """Go on."""
        ...

    def after_fork(self) -> None:
        """Start over in the forked child."""
        ...


class ForkLock:
    """A reentrant lock that a thread also holds while it forks; a forked child needs a new one."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        """The lock itself, for a block of statements."""
        self._forking: set[int] = set()
        """Threads that hold the lock because they fork."""

    def acquire(self, seconds: float) -> bool:
        """Return True if the lock is held after at most *seconds*."""
        return self.lock.acquire(timeout=seconds)

    def release(self) -> None:
        """Release the lock once."""
        self.lock.release()

    def __enter__(self) -> None:
        self.lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.lock.release()

    def before_fork(self) -> None:
        """Wait at most `FORK_SECONDS` for the lock, and keep it until the fork is done."""
        if self.acquire(FORK_SECONDS):
            self._forking.add(threading.get_ident())

    def after_fork_in_parent(self) -> None:
        """Undo `before_fork` of the same thread."""
        if threading.get_ident() in self._forking:
            self._forking.discard(threading.get_ident())
            self.lock.release()

    def after_fork(self) -> None:
        """Be free in the forked child."""
        self.__init__()  # type: ignore[misc]


def follow_forks(objects: Iterable[ForkAware]) -> None:
    """Call the methods of *objects*, as they are at that time, around every fork from now on."""

    def before() -> None:
        for one in list(objects):
            one.before_fork()

    def after_in_parent() -> None:
        for one in list(objects):
            one.after_fork_in_parent()

    def after_in_child() -> None:
        for one in list(objects):
            one.after_fork()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=before, after_in_parent=after_in_parent, after_in_child=after_in_child)


_long_importers: Final[set[int]] = set()
"""Threads that no fork waits for again: a program may run inside an import without end."""


def _wait_for_imports() -> None:
    """Wait until no other thread imports: a child that needs a module half imported would wait for it forever."""
    until = time.monotonic() + IMPORT_SECONDS
    while importers := _importing_threads() - _long_importers:
        if time.monotonic() > until:
            _long_importers.update(importers)
            return
        time.sleep(_IMPORT_PAUSE_SECONDS)


def _importing_threads() -> set[int]:
    own = threading.get_ident()
    return {ident for ident, frame in sys._current_frames().items() if ident != own and _is_importing(frame)}


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == _IMPORT_SYSTEM:
            return True
        frame = frame.f_back
    return False


if hasattr(os, "register_at_fork"):
    # Hooks run in the reverse order before a fork: those of the objects that use this module, then the wait for
    # imports, which may prepare types, and the lock last.
    os.register_at_fork(
        before=preparing.acquire, after_in_parent=preparing.release, after_in_child=preparing.release
    )
    os.register_at_fork(before=_wait_for_imports)
