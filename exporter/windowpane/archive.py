"""Archive and checkpoints as local files: readable by their owner only, without secrets, and never half written.

An edge of `control`; redaction is injected.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import tempfile
import time
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from windowpane.control.checkpoint import decode, encode, generation
from windowpane.exceptions import CorruptCheckpointError, StaleCheckpointError
from windowpane.protocols import Clock

RETENTION_SECONDS: Final = 24 * 3600
"""How long originals stay after the session last wrote one."""
MODE_FILE: Final = 0o600
MODE_FOLDER: Final = 0o700

Redact = Callable[[str], str]
"""Text to the same text with every secret replaced by `[redacted:kind]`."""

_log = logging.getLogger(__name__)
_SAFE: Final = re.compile(r"[A-Za-z0-9_-]{1,80}")


def _name(identifier: str) -> str:
    """A file name for an identifier from outside: itself where harmless, else a digest of it."""
    if _SAFE.fullmatch(identifier):
        return identifier
    return blake2b(identifier.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _write(path: Path, content: bytes) -> None:
    """Replace a file's content whole: a temporary file, synced, renamed over it."""
    path.parent.mkdir(mode=MODE_FOLDER, parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(MODE_FILE)
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(temporary).unlink()
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


class FileArchive:
    """An `Archive` in a folder: one file an original, in a folder a session."""

    def __init__(self, folder: Path, *, redact: Redact, clock: Clock = time.time) -> None:
        self._folder = folder
        self._redact = redact
        self._clock = clock

    def put(self, session_id: str, handle: str, text: str) -> None:
        """Keep *text* under *handle*, without its secrets. Not synced: an original is a convenience."""
        folder = self._folder / _name(session_id)
        folder.mkdir(mode=MODE_FOLDER, parents=True, exist_ok=True)
        descriptor = os.open(folder / _name(handle), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, MODE_FILE)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogatepass", newline="") as file:
            file.write(self._redact(text))

    def get(self, session_id: str, handle: str) -> str | None:
        """The text kept under *handle*, or None."""
        path = self._folder / _name(session_id) / _name(handle)
        try:
            with path.open(encoding="utf-8", errors="surrogatepass", newline="") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def prune(self) -> int:
        """Delete sessions that wrote nothing for 24 hours; returns how many. What cannot be deleted is logged."""
        deleted = 0
        try:
            folders = [path for path in self._folder.glob("*") if path.is_dir()]
        except OSError as error:
            _log.warning("the archive %s cannot be read: %s", self._folder, error)
            return 0
        for folder in folders:
            try:
                if self._clock() - folder.stat().st_mtime < RETENTION_SECONDS:
                    continue
                for file in folder.iterdir():
                    file.unlink()
                folder.rmdir()
                deleted += 1
            except OSError as error:
                _log.warning("archived session %s was not deleted: %s", folder.name, error)
        return deleted


class FileCheckpoints:
    """Checkpoints of sessions in a folder: JSON and Markdown, with the generation before."""

    def __init__(self, folder: Path, *, redact: Redact) -> None:
        self._folder = folder
        self._redact = redact

    def save(self, document: dict[str, Any], markdown: str) -> None:
        """Write a checkpoint if it is newer than the one there.

        Raises `StaleCheckpointError` when it is not: another writer was faster.
        """
        path = self._path(document["session_id"])
        current = self._read(path)
        if current is not None and generation(document) <= generation(current):
            raise StaleCheckpointError(
                f"checkpoint {generation(document)} is not newer than {generation(current)}"
            )
        if current is not None:
            path.replace(path.with_suffix(".previous.json"))
        _write(path, encode(document))
        _write(path.with_suffix(".md"), self._redact(markdown).encode("utf-8", "surrogatepass"))

    def load(self, session_id: str) -> dict[str, Any] | None:
        """The newest checkpoint that is whole: a corrupt one gives way to the generation before. None if none.

        Raises `CorruptCheckpointError` when there are checkpoints and none is whole.
        """
        path = self._path(session_id)
        fault: CorruptCheckpointError | None = None
        for candidate in (path, path.with_suffix(".previous.json")):
            try:
                return decode(candidate.read_bytes())
            except FileNotFoundError:
                continue
            except CorruptCheckpointError as error:
                _log.warning("checkpoint %s is not used: %s", candidate.name, error)
                fault = error
        if fault is not None:
            raise fault
        return None

    def _path(self, session_id: str) -> Path:
        return self._folder / f"{_name(session_id)}.json"

    def _read(self, path: Path) -> dict[str, Any] | None:
        try:
            return decode(path.read_bytes())
        except FileNotFoundError:
            return None
        except CorruptCheckpointError as error:
            _log.warning("checkpoint %s is replaced: %s", path.name, error)
            return None
