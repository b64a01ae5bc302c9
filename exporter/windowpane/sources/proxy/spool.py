"""The file in which calls wait to be read: a ring of messages that one process writes and another reads.

The first page holds two counters, the bytes written and the bytes read so far, which both processes map into
memory. The file has no name: it disappears with the last process that has it open, and so does what was not read.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from pathlib import Path
from typing import Final, Self

LENGTH_BYTES: Final = 4
"""Size of the length before each message."""
SHRINK_BYTES: Final = 16 << 20
"""Bytes whose room is given back to the disk as soon as all of them are read."""
_WRITTEN, _READ = 0, 1
"""Indexes of the counters. Each is set by one process only."""


class Spool:
    """One process's view of the file."""

    def __init__(self, descriptor: int, capacity: int) -> None:
        self.descriptor: Final = descriptor
        self.capacity: Final = capacity
        """Bytes that can wait at a time."""
        self._counters = memoryview(mmap.mmap(descriptor, mmap.PAGESIZE)).cast("Q")
        self._shrunk_at = 0
        """Bytes that were written when the file was last cut."""

    @classmethod
    def create(cls, folder: Path | None, capacity: int) -> Self:
        """Return a new, empty one; its file is in *folder*, by default that of temporary files.

        Raises `OSError` if the file cannot be made.
        """
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            descriptor = os.dup(file.fileno())
        os.pwrite(descriptor, bytes(mmap.PAGESIZE), 0)
        return cls(descriptor, capacity)

    @property
    def waiting_bytes(self) -> int:
        """Bytes that are written and not read."""
        return self._counters[_WRITTEN] - self._counters[_READ]

    def write(self, message: bytes) -> bool:
        """Append a message; returns False if it finds no room. Raises `OSError` if the disk is full."""
        if self.waiting_bytes + LENGTH_BYTES + len(message) > self.capacity:
            return False
        written = self._counters[_WRITTEN]
        if not self.waiting_bytes and written - self._shrunk_at > SHRINK_BYTES:
            os.ftruncate(self.descriptor, mmap.PAGESIZE)
            self._shrunk_at = written
        self._put(len(message).to_bytes(LENGTH_BYTES, "big"), written)
        self._put(message, written + LENGTH_BYTES)
        self._counters[_WRITTEN] = written + LENGTH_BYTES + len(message)
        return True

    def read(self) -> bytes | None:
        """Return the next message, and free its room; None if all are read."""
        if not self.waiting_bytes:
            return None
        at = self._counters[_READ]
        size = int.from_bytes(self._get(LENGTH_BYTES, at), "big")
        message = self._get(size, at + LENGTH_BYTES)
        self._counters[_READ] = at + LENGTH_BYTES + size
        return message

    def close(self) -> None:
        """Close the file."""
        os.close(self.descriptor)

    # -- inside -----------------------------------------------------------------------------------------------

    def _put(self, content: bytes, at: int) -> None:
        view, start = memoryview(content), at % self.capacity
        room = self.capacity - start
        for part, offset in ((view[:room], start), (view[room:], 0)):
            rest, position = part, mmap.PAGESIZE + offset
            while rest:  # a full disk takes a part, and fails at the next attempt
                count = os.pwrite(self.descriptor, rest, position)
                rest, position = rest[count:], position + count

    def _get(self, size: int, at: int) -> bytes:
        start = at % self.capacity
        first = os.pread(self.descriptor, min(size, self.capacity - start), mmap.PAGESIZE + start)
        return (
            first if len(first) == size else first + os.pread(self.descriptor, size - len(first), mmap.PAGESIZE)
        )
