"""The ends of child processes, which may run no `atexit` handlers.

A child of `multiprocessing` ends by `os._exit` after the finalizers of `multiprocessing.util`, and a worker of
a pool by SIGTERM, often while it finishes. Nothing here imports `multiprocessing`: a process that does not use
it has no such children.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any, Final

from windowpane.effects.time_limit import run_within

TERMINATION_SECONDS: Final = 3.0
"""The longest that a terminated worker takes to store its events."""
_LAST: Final = -1_000_000
"""The priority of a finalizer that runs after the others."""


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
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, end.terminate)


class _End:
    """The end of a child: by itself, by SIGTERM, or by SIGTERM while it ends by itself."""

    def __init__(self, finish: Callable[[], object]) -> None:
        self._finish = finish
        self._is_finishing = False
        self._signal: int | None = None
        """The signal that came while the child was finishing."""

    def finish(self) -> None:
        """Finish on this thread; a signal that came meanwhile ends the process afterwards."""
        if self._is_finishing:
            return
        self._is_finishing = True
        self._finish()
        if self._signal is not None:
            _die(self._signal)

    def terminate(self, number: int, _frame: object) -> None:
        """Finish, then end by the signal. The handler of SIGTERM."""
        if self._is_finishing:
            self._signal = number  # this thread may be the one that finishes: it can go on only after the handler
            return
        self._is_finishing = True
        run_within(TERMINATION_SECONDS, self._finish)  # on another thread: this one may hold any lock
        _die(number)


def _die(number: int) -> None:
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
