"""The ends of processes that `multiprocessing` started: they run no `atexit` handlers.

Such a child ends by `os._exit` after the finalizers of `multiprocessing.util`, and a worker of a pool by SIGTERM.
Nothing here imports `multiprocessing`: a process that does not use it has no such children.
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


def is_child() -> bool:
    """Return True in a process that `multiprocessing` started, by whatever method."""
    process = sys.modules.get("multiprocessing.process")
    return process is not None and process.parent_process() is not None


def finish_at_end(finish: Callable[[], object]) -> None:
    """Call *finish* at the end of this child, and before SIGTERM ends it unless the program handles that."""
    sys.modules["multiprocessing.util"].Finalize(None, finish, exitpriority=_LAST)
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return

    def terminate(number: int, _frame: object) -> None:
        run_within(TERMINATION_SECONDS, finish)  # on another thread: this one may hold any lock
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    signal.signal(signal.SIGTERM, terminate)
