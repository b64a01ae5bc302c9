"""Kinds of files that cannot be read to their end, and the endings of the files beside a SQLite database."""

from __future__ import annotations

import stat
from typing import Final

WAL: Final = "-wal"
"""Suffix of a database's write-ahead log."""
SHARED_MEMORY: Final = "-shm"
"""Suffix of the log's index."""
A_DEVICE: Final = "a device"
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, A_DEVICE),
    (stat.S_ISBLK, A_DEVICE),
)


def irregular_kind(mode: int) -> str:
    """Return the kind of a file that is not a regular one, `a pipe` for example; empty for a regular file."""
    if stat.S_ISREG(mode):
        return ""
    return next((kind for is_kind, kind in _KINDS if is_kind(mode)), "not a regular file")
