"""A log of records on disk: appended by many threads, durable in groups, read again by the next process.

Records lie in files of a private folder, which one process uses at a time. A file is deleted as soon as no record
in it is needed. What a crash has cut short at the end of a file was never durable and is ignored; a damaged file
is read as far as possible, reported, and set aside instead of deleted.
"""

from __future__ import annotations

import logging
import os
import struct
import threading
import zlib
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple, Self

from windowpane.effects.file_locks import try_lock
from windowpane.effects.private_files import MODE_FILE, create_folder, sync_folder

CAPACITY_BYTES: Final = 256 * 2**20
FILE_BYTES: Final = 16 * 2**20
"""Size after which another file is started."""
FORMAT: Final = b"windowpane records 1\n"
MAXIMUM_FOLDERS: Final = 64
_SUFFIX: Final = ".records"
_SET_ASIDE: Final = ".set-aside"
_HEAD: Final = struct.Struct(">QI8s")
"""Number, length and checksum of a record."""
_HEAD_CHECKSUM: Final = struct.Struct(">I")
_HEAD_BYTES: Final = _HEAD.size + _HEAD_CHECKSUM.size

_log = logging.getLogger(__name__)
_make_durable = getattr(os, "fdatasync", os.fsync)
_BINARY: Final[int] = getattr(os, "O_BINARY", 0)
"""Without it Windows writes each line feed as two bytes."""


class Record(NamedTuple):
    """A record and its number; later records have higher ones."""

    number: int
    content: bytes


class RecordLogFullError(OSError):
    """A record finds no room until others are released."""


class _File:
    """A file of records: of an earlier process, or one that is full."""

    def __init__(self, path: Path, size: int) -> None:
        self.path = path
        self.size = size
        self.last_number = int(path.stem, 16)
        """Of its records, or of its first one where none can be read."""
        self.is_damaged = False


class RecordLog:
    """The log in *folder*. Thread-safe, except `earlier`, which one thread reads."""

    def __init__(
        self, folder: Path, *, capacity_bytes: int = CAPACITY_BYTES, file_bytes: int = FILE_BYTES
    ) -> None:
        """Open the log. Raises `OSError`; `BlockingIOError` if another process uses it."""
        self.folder = folder
        self._capacity = capacity_bytes
        self._file_bytes = file_bytes
        create_folder(folder)
        self._lock_descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, MODE_FILE)
        try:
            try_lock(self._lock_descriptor)
            self._files = [_File(path, path.stat().st_size) for path in sorted(folder.glob(f"*{_SUFFIX}"))]
        except OSError:
            os.close(self._lock_descriptor)
            raise
        self._earlier = list(self._files)
        self._changed = threading.Condition()
        self._current: _File | None = None
        self._descriptor = -1
        self._is_syncing = False
        for file in self._files:
            for record in _records(file):
                file.last_number = max(file.last_number, record.number)
            if file.is_damaged:
                _log.error("%s is damaged; what is intact in it is read, and it is set aside", file.path)
        self.next_number = max((file.last_number + 1 for file in self._files), default=0)
        """Number of the next record."""
        self._durable = self._failed = self.next_number
        """Records below the one are durable, those from it up to the other could not be made so."""

    @classmethod
    def beside(cls, base: Path, name: str) -> Self:
        """Open a log beside *base* that no other process uses: one with records, else the first.

        Raises `OSError`.
        """
        suffixes = ("", *(f"-{number}" for number in range(2, MAXIMUM_FOLDERS + 1)))
        folders = [base.with_name(f"{base.name}.{name}{suffix}") for suffix in suffixes]
        for folder in sorted(folders, key=lambda folder: not any(folder.glob(f"*{_SUFFIX}"))):
            with suppress(BlockingIOError):
                return cls(folder)
        raise OSError(f"{MAXIMUM_FOLDERS} processes use logs beside {base}")

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self._files)

    def earlier(self) -> Iterator[Record]:
        """Yield the intact records of earlier processes, in order."""
        for file in list(self._earlier):
            yield from _records(file)

    def append(self, content: bytes, *, is_bounded: bool = True) -> int:
        """Append a record and return its number. Raises `OSError`; `RecordLogFullError` if it finds no room."""
        checksum = blake2b(content, digest_size=8).digest()
        with self._changed:
            if is_bounded and self.size + _HEAD_BYTES + len(content) > self._capacity:
                raise RecordLogFullError("the log is full")
            if self._current is not None and self._current.size >= self._file_bytes:
                self._finish()
            file = self._current or self._start_file()
            head = _HEAD.pack(self.next_number, len(content), checksum)
            try:
                _write(self._descriptor, head + _HEAD_CHECKSUM.pack(zlib.crc32(head)) + content)
            except OSError:
                with suppress(OSError):  # a part of a record ends the readable part of the file
                    os.ftruncate(self._descriptor, file.size)
                raise
            file.size += _HEAD_BYTES + len(content)
            file.last_number, self.next_number = self.next_number, self.next_number + 1
            return file.last_number

    def sync(self, number: int) -> None:
        """Return when the record is durable; one sync serves all that wait for one. Raises `OSError`."""
        with self._changed:
            while number >= self._durable:
                if self._is_syncing:
                    self._changed.wait()
                    continue
                self._is_syncing = True
                until, descriptor = self.next_number, self._descriptor
                self._changed.release()
                problem = None
                try:
                    _make_durable(descriptor)
                except OSError as error:
                    problem = error
                finally:
                    self._changed.acquire()
                    self._is_syncing = False
                    self._settle(until, problem)
            if number < self._failed:
                raise OSError("the record could not be made durable")

    def release(self, number: int) -> None:
        """Delete the files whose records all have lower numbers."""
        with self._changed:
            while self._is_syncing:
                self._changed.wait()
            if self._current is not None and self._current.last_number < number:
                self._finish()
            released = [file for file in self._files if file.last_number < number and file is not self._current]
            for file in released:
                self._remove(file)
            self._files = [file for file in self._files if file not in released]
            self._earlier = [file for file in self._earlier if file not in released]

    def can_release(self, number: int) -> bool:
        """Return whether `release` would delete a file."""
        return any(file.last_number < number for file in self._files)

    def close(self) -> None:
        """Close the log; what is not released is read by the next process."""
        with self._changed:
            if self._current is not None:
                self._finish()
            os.close(self._lock_descriptor)

    # -- inside, with the lock held ---------------------------------------------------------------------------

    def _start_file(self) -> _File:
        path = self.folder / f"{self.next_number:016x}{_SUFFIX}"
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | _BINARY, MODE_FILE)
        try:
            _write(self._descriptor, FORMAT)
            sync_folder(self.folder)
        except OSError:
            os.close(self._descriptor)
            path.unlink(missing_ok=True)
            raise
        self._current = file = _File(path, len(FORMAT))
        self._files.append(file)
        return file

    def _finish(self) -> None:
        """Make the current file durable and start no other before a record comes."""
        while self._is_syncing:
            self._changed.wait()
        if self._current is None:
            return
        problem = None
        try:
            if self._durable < self.next_number:
                _make_durable(self._descriptor)
        except OSError as error:
            problem = error
        self._settle(self.next_number, problem)
        self._leave()

    def _settle(self, until: int, problem: OSError | None) -> None:
        """Note that the records below *until* are durable, or that they never will be."""
        self._durable = max(self._durable, until)
        if problem is not None:  # another sync of this file may succeed without writing what this one did not
            _log.error("records in %s could not be made durable: %s", self.folder, problem)
            self._failed = max(self._failed, until)
            self._leave()
        self._changed.notify_all()

    def _leave(self) -> None:
        if self._current is not None:
            self._current = None
            with suppress(OSError):
                os.close(self._descriptor)

    def _remove(self, file: _File) -> None:
        try:
            if file.is_damaged:
                file.path.replace(file.path.with_suffix(_SET_ASIDE))
            else:
                file.path.unlink(missing_ok=True)
        except OSError as error:
            _log.error("%s cannot be removed: %s", file.path, error)


def _records(file: _File) -> Iterator[Record]:
    """Yield the intact records of a file, and note whether others are damaged."""
    try:
        content = file.path.read_bytes()
    except OSError as error:
        _log.error("%s cannot be read: %s", file.path, error)
        file.is_damaged = True
        return
    at = len(FORMAT)
    if content[:at] != FORMAT[: len(content)]:
        file.is_damaged = True
        return
    while len(content) - at >= _HEAD_BYTES:
        head = content[at : at + _HEAD.size]
        start = at + _HEAD_BYTES
        if _HEAD_CHECKSUM.pack(zlib.crc32(head)) != content[at + _HEAD.size : start]:
            file.is_damaged = file.is_damaged or any(content[at:])  # zeros: a crash before the data were written
            return
        number, length, checksum = _HEAD.unpack(head)
        at = start + length
        if at > len(content):
            return
        if blake2b(content[start:at], digest_size=8).digest() == checksum:
            yield Record(number, content[start:at])
        elif at < len(content):
            file.is_damaged = True


def _write(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:  # a full disk takes a part, and fails at the next attempt
        rest = rest[os.write(descriptor, rest) :]
