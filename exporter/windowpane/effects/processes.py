"""Processes of the machine, the own one too, and interpreters that never run the code of an opened project."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.process import BaseProcess

_SAFE_PATH: Final = "PYTHONSAFEPATH"
"""The variable for `-P`: multiprocessing has no option for it."""
MAXIMUM_PROCESSES: Final = 2**31
"""The numbers of processes are below it."""
NEW_OBJECTS: Final = 50_000
"""New objects after which cycles are looked for, instead of Python's 700."""


@contextmanager
def rare_collection() -> Iterator[None]:
    """Look for cycles of objects rarely until the block ends, and not among what is loaded before it.

    For programs in which nearly everything that is made is in use, and for the main program of a process only: it
    applies to all threads.
    """
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


@contextmanager
def without_current_folder() -> Iterator[None]:
    """Let interpreters that start in the block not import from the current folder, which may be any project."""
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


def worker_class(loaded: str) -> Callable[..., BaseProcess]:
    """Return the class of worker processes, none of which has this process's threads.

    On Linux they are copies of a process that starts to load the module *loaded* now, and ends with this one.
    """
    import multiprocessing  # not needed by an agent's own process

    if sys.platform != "linux":
        return multiprocessing.get_context("spawn").Process
    from multiprocessing.forkserver import ensure_running

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([loaded])
    with without_current_folder():
        ensure_running()
    return context.Process


def usable_cores() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def is_running(pid: int) -> bool:
    """Return whether a process of this machine has this number; none has one that is out of range."""
    if not 0 < pid < MAXIMUM_PROCESSES:
        return False
    if sys.platform == "win32":
        return _is_running_on_windows(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # alive, owned by another user
    return True


if sys.platform == "win32":  # where os.kill(pid, 0) sends Ctrl-C
    import ctypes
    from ctypes import wintypes

    _SYNCHRONIZE = 0x0010_0000
    _ACCESS_DENIED = 5
    _WAIT_TIMEOUT = 0x102

    def _is_running_on_windows(pid: int) -> bool:
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel.OpenProcess.restype = wintypes.HANDLE
        kernel.WaitForSingleObject.argtypes = (wintypes.HANDLE, wintypes.DWORD)
        kernel.CloseHandle.argtypes = (wintypes.HANDLE,)
        handle = kernel.OpenProcess(_SYNCHRONIZE, 0, pid)
        if not handle:
            return ctypes.get_last_error() == _ACCESS_DENIED
        try:
            return bool(kernel.WaitForSingleObject(handle, 0) == _WAIT_TIMEOUT)
        finally:
            kernel.CloseHandle(handle)
