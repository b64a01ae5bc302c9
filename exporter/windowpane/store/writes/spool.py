"""Spool files: events that a process could not store before it ended, in files beside the store.

The next process that opens the store takes them in. Taking in skips what the store has already, by stream and
number, so that neither a crash in between nor a write that succeeded late stores an event twice. A file has a
header line with a checksum (an HMAC where the chain has a key), one line per event, one per captured text, which
is redacted before it is written.
"""

from __future__ import annotations

import errno
import hmac
import logging
import os
import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from windowpane.core.codec import decode, encode
from windowpane.core.decoders import decode_json
from windowpane.core.events import Event
from windowpane.effects.private_files import write_whole
from windowpane.exceptions import EventFormatError, StoreError
from windowpane.store.captured_content import CapturedText, Redactor
from windowpane.store.keys import UNKEYED, AuditKeys, key_id
from windowpane.store.writes.content_capture import ContentCapture

FORMAT: Final = 1
MAXIMUM_BYTES: Final = 256 * 2**20
"""Bytes of all spool files of a store; what does not fit is lost, and counted."""

_SUFFIX: Final = ".jsonl"
_SET_ASIDE: Final = ".set-aside"
_PASSING: Final = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""Errors of a process that has no descriptor or memory left, not of the file."""
_log = logging.getLogger(__name__)


class SpoolHeader(msgspec.Struct, frozen=True):
    """The first line of a spool file."""

    spool: int
    """Version of the format."""
    events: int
    """Number of event lines; captured texts follow."""
    keyed_by: str
    """Key id of the checksum; empty for a plain one."""
    checksum: str
    """Checksum of everything after the header line."""


@dataclass(frozen=True, slots=True)
class SpooledEvents:
    """The content of one intact spool file."""

    path: Path
    events: tuple[Event, ...]
    texts: tuple[CapturedText, ...]


class Spool:
    """The spool files of one store. *redact* is None where texts are not captured."""

    def __init__(
        self,
        store: Path,
        *,
        keys: AuditKeys,
        redact: Redactor | None,
        maximum_bytes: int = MAXIMUM_BYTES,
    ) -> None:
        self._store = store
        self._keys = keys
        self._redact = redact
        self._maximum_bytes = maximum_bytes

    def files(self) -> list[Path]:
        """Return the files that wait to be taken in, oldest first."""
        return waiting_files(self._store)

    def write(self, events: Sequence[Event]) -> int:
        """Write *events* to a new file, durably and whole; return how many fit. Raises `StoreError`.

        The texts that they carry follow as long as they fit.
        """
        room = self._maximum_bytes - sum(path.stat().st_size for path in self.files())
        capture = None if self._redact is None else ContentCapture(self._redact)
        lines: list[bytes] = []
        for event in events:
            line = encode(event)
            if len(line) >= room:
                break
            room -= len(line) + 1
            lines.append(line)
            if capture is not None:
                capture.collect_one(event)
        if not lines:
            return 0
        texts: list[bytes] = []
        for text in [] if capture is None else capture.take_redacted():
            line = msgspec.json.encode(text)
            room -= len(line) + 1
            if room < 0:
                _log.warning(
                    "captured texts were not spooled: the files have %d bytes already", self._maximum_bytes
                )
                break
            texts.append(line)
        self._write_whole([*lines, *texts], events=len(lines))
        return len(lines)

    def read(self, path: Path) -> SpooledEvents | None:
        """Return the content of a file; None for one of another key or user, which stays, or a damaged one.

        A damaged one is set aside. Raises `StoreError` where the process lacks the means to read one for now.
        """
        try:
            header, payload = _parts(path.read_bytes())
            if header.spool != FORMAT or header.keyed_by not in self._accepted_keys():
                _log.warning(
                    "%s is not taken in: it was written with the audit key %s, in format %d",
                    path, header.keyed_by or "none", header.spool,
                )  # fmt: skip
                return None
            return self._decoded(path, header, payload)
        except FileNotFoundError:
            return None  # another process has taken it in
        except PermissionError:
            _log.warning("%s is not taken in: it belongs to another user", path)
            return None
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno in _PASSING:
                raise StoreError(f"{path}: cannot be read for now ({error.strerror})") from error
            self.set_aside(path, f"it is damaged ({error})")
            return None

    def set_aside(self, path: Path, reason: str) -> None:
        """Rename a file that cannot be taken in, so that it is not tried again and can be looked at."""
        target = path.with_suffix(_SET_ASIDE)
        _log.error("%s is not taken in: %s; renamed to %s", path, reason, target.name)
        try:
            path.replace(target)
        except OSError as error:
            _log.error("%s cannot be renamed: %s", path, error)

    def is_set_aside(self, path: Path) -> bool:
        """Return whether the file was damaged when it was to be read."""
        return path.with_suffix(_SET_ASIDE).exists()

    def remove(self, path: Path) -> None:
        """Delete a file whose events are stored durably."""
        path.unlink(missing_ok=True)

    def _decoded(self, path: Path, header: SpoolHeader, payload: bytes) -> SpooledEvents:
        if not hmac.compare_digest(header.checksum, _checksum(payload, self._accepted_keys()[header.keyed_by])):
            raise EventFormatError("its checksum does not match")
        lines = payload.split(b"\n")[:-1]
        return SpooledEvents(
            path,
            tuple(decode(line) for line in lines[: header.events]),
            tuple(decode_json(line, CapturedText) for line in lines[header.events :]),
        )

    def _accepted_keys(self) -> dict[str, bytes | None]:
        """Return the keys of files that may be taken in, by id; with a key, none that anyone can write."""
        if not self._keys.available:
            return {UNKEYED: None}
        return {key_id(key): key for key in (self._keys.current, *self._keys.old) if key is not None}

    def _write_whole(self, lines: Iterable[bytes], *, events: int) -> None:
        payload = b"".join(line + b"\n" for line in lines)
        key = self._keys.current
        header = SpoolHeader(FORMAT, events, key_id(key), _checksum(payload, key))
        path = self._store.with_name(
            f"{_prefix(self._store)}{time.time_ns():016x}-{secrets.token_hex(4)}{_SUFFIX}"
        )
        try:
            write_whole(path, msgspec.json.encode(header) + b"\n" + payload)
        except OSError as error:
            raise StoreError(f"{path}: cannot be written ({error.strerror})") from error


def _parts(content: bytes) -> tuple[SpoolHeader, bytes]:
    head, _, payload = content.partition(b"\n")
    return decode_json(head, SpoolHeader), payload


def _checksum(payload: bytes, key: bytes | None) -> str:
    return sha256(payload).hexdigest() if key is None else hmac.digest(key, payload, "sha256").hex()


def waiting_files(store: Path) -> list[Path]:
    """Return the spool files beside *store*, oldest first."""
    prefix = _prefix(store)
    try:
        with os.scandir(store.parent) as entries:
            files = [
                (entry.stat().st_mtime_ns, Path(entry.path))
                for entry in entries
                if entry.name.startswith(prefix)
                and entry.name.endswith(_SUFFIX)
                and entry.is_file(follow_symlinks=False)
            ]
    except OSError:
        return []  # no folder, no files
    return [path for _, path in sorted(files)]


def _prefix(store: Path) -> str:
    return f"{store.name}.spool-"
