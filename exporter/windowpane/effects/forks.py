"""Forks of the process: locks that a fork waits for, and objects that follow every fork."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from types import TracebackType
from typing import Final, Protocol

FORK_SECONDS: Final = 2.0
"""Longest wait of a fork for work in progress: a child forked during a write cannot use SQLite."""


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
        self._lock = threading.RLock()
        self._forking: set[int] = set()
        """Threads that hold the lock because they fork."""

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    def before_fork(self) -> None:
        """Wait at most `FORK_SECONDS` for the lock, and keep it until the fork is done."""
        if self._lock.acquire(timeout=FORK_SECONDS):
            self._forking.add(threading.get_ident())

    def after_fork_in_parent(self) -> None:
        """Undo `before_fork` of the same thread."""
        if threading.get_ident() in self._forking:
            self._forking.discard(threading.get_ident())
            self._lock.release()


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
