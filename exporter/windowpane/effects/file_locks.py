"""Locks of files between processes, released when the file is closed or the process ends."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    import msvcrt
    import time

    _RETRY_SECONDS = 0.05

    def try_lock(descriptor: int) -> None:
        """Lock a file. Raises `BlockingIOError` if another process has locked it."""
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(error.errno, "another process has locked the file") from error

    def lock(descriptor: int) -> None:
        """Lock a file as soon as no other process has locked it."""
        while True:
            try:
                return try_lock(descriptor)
            except BlockingIOError:
                time.sleep(_RETRY_SECONDS)

else:
    import fcntl

    def try_lock(descriptor: int) -> None:
        """Lock a file. Raises `BlockingIOError` if another process has locked it."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def lock(descriptor: int) -> None:
        """Lock a file as soon as no other process has locked it."""
        fcntl.flock(descriptor, fcntl.LOCK_EX)
