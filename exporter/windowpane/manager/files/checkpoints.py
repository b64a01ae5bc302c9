"""Checkpoints as local files: JSON and Markdown, written atomically, with the previous generation.

A task has one file: the newest checkpoint replaces the one before, which is retained beside it until the next.
Writers take turns by a lock file, and a checkpoint that is not newer is rejected.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from windowpane.effects.file_locks import lock
from windowpane.effects.private_files import MODE_FILE, create_folder, write_whole
from windowpane.exceptions import CorruptCheckpointError, StaleCheckpointError
from windowpane.manager.plans.checkpoint import (
    Document,
    Rejection,
    StoredCheckpoint,
    checksum,
    decode,
    encode,
    generation,
)

Redact = Callable[[str], str]
"""Text to the same text with every secret replaced by `[redacted:kind]`."""

_log = logging.getLogger(__name__)
_SAFE: Final = re.compile(r"[A-Za-z0-9_-]{1,80}")


def file_name(identifier: str) -> str:
    """Return a file name for an identifier from outside: itself if harmless, else a digest of it."""
    if _SAFE.fullmatch(identifier):
        return identifier
    return blake2b(identifier.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


class FileCheckpoints:
    """Checkpoints of tasks in a folder, or of one task in two named files."""

    def __init__(
        self,
        folder: Path,
        *,
        redact: Redact,
        state_file: Path | None = None,
        progress_file: Path | None = None,
    ) -> None:
        self._folder = folder
        self._redact = redact
        self._state_file = state_file
        self._progress_file = progress_file

    def save(self, document: Document, markdown: str) -> None:
        """Write a checkpoint without secrets.

        Raises `StaleCheckpointError` if it is not newer than the stored one: another writer was faster.
        """
        path = self._path(document.get("task_id") or document["session_id"])
        document = _without_secrets(document, self._redact)
        with _locked(path):
            current = self._candidates(path).document
            if current is not None and generation(document) <= generation(current):
                raise StaleCheckpointError(
                    f"checkpoint {generation(document)} is not newer than {generation(current)}"
                )
            if current is not None and _whole(path) == current:
                path.replace(_previous(path))  # a damaged or older file never replaces an intact one
            write_whole(path, encode(document))
            write_whole(self._markdown(path), self._redact(markdown).encode("utf-8", "surrogatepass"))

    def load(self, task_id: str) -> StoredCheckpoint:
        """Return the newest intact checkpoint of a task, if there is one, and the rejected ones.

        Raises `CorruptCheckpointError` if all checkpoints are damaged.
        """
        candidates = self._candidates(self._path(task_id))
        if candidates.document is None and candidates.rejected:
            raise CorruptCheckpointError("; ".join(rejection.reason for rejection in candidates.rejected))
        return candidates

    def archive(self, task_id: str) -> None:
        """Rename the files of a task that is complete or starts afresh; they stay readable."""
        path = self._path(task_id)
        with _locked(path):
            if _whole(path) is None and _whole(_previous(path)) is not None:
                _previous(path).replace(_free(path))
            for file in (path, self._markdown(path)):
                if file.exists():
                    file.replace(_free(file))
            _previous(path).unlink(missing_ok=True)

    def _path(self, task_id: str) -> Path:
        return self._state_file or self._folder / f"{file_name(task_id)}.json"

    def _markdown(self, path: Path) -> Path:
        return self._progress_file or path.with_suffix(".md")

    def _candidates(self, path: Path) -> StoredCheckpoint:
        whole: list[Document] = []
        rejected: list[Rejection] = []
        for candidate in (path, _previous(path)):
            try:
                whole.append(decode(candidate.read_bytes()))
            except FileNotFoundError:
                continue
            except CorruptCheckpointError as error:
                _log.warning("checkpoint %s is not used: %s", candidate.name, error)
                rejected.append(Rejection(None, f"corrupt: {error}"))
        newest = max(whole, key=generation, default=None)
        if newest is not None and whole[0] is not newest:
            rejected.append(Rejection(int(whole[0]["version"]), "stale: the generation before is newer"))
        return StoredCheckpoint(newest, tuple(rejected))


def _whole(path: Path) -> Document | None:
    """Return the checkpoint in a file; None if it is missing or damaged."""
    try:
        return decode(path.read_bytes())
    except (FileNotFoundError, CorruptCheckpointError):
        return None


def _without_secrets(document: Document, redact: Redact) -> Document:
    clean: Document = _redacted(document, redact)
    if clean != document:
        clean["checksum"] = checksum(clean)
    return clean


def _redacted(value: Any, redact: Redact) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {
            key: item if key in ("checksum", "task_id", "session_id") else _redacted(item, redact)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_redacted(item, redact) for item in value]
    return value


def _previous(path: Path) -> Path:
    return path.with_name(f"{path.stem}.previous{path.suffix}")


def _free(path: Path) -> Path:
    """Return the name of an archived file."""
    number = 1
    while True:
        target = path.with_name(f"{path.stem}.archived-{number}{path.suffix}")
        if not target.exists():
            return target
        number += 1


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of a task's files; other processes wait."""
    create_folder(path.parent)
    descriptor = os.open(path.with_name(f".{path.name}.lock"), os.O_WRONLY | os.O_CREAT, MODE_FILE)
    try:
        lock(descriptor)
        yield
    finally:
        os.close(descriptor)
