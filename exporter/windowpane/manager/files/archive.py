"""The archive as local files, readable by their owner only and without secrets."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from windowpane.core.protocols import Clock
from windowpane.effects.private_files import MODE_FILE, create_folder
from windowpane.manager.files.checkpoints import file_name

RETENTION_SECONDS: Final = 24 * 3600
"""Time that originals are retained after the session last wrote one."""

Redact = Callable[[str], str]
"""Text to the same text with every secret replaced by `[redacted:kind]`."""

_log = logging.getLogger(__name__)


class FileArchive:
    """An `Archive` in a folder: one folder per session, one file per original."""

    def __init__(self, folder: Path, *, redact: Redact, clock: Clock = time.time) -> None:
        self._folder = folder
        self._redact = redact
        self._clock = clock

    def put(self, session_id: str, handle: str, text: str) -> None:
        """Write *text* under *handle* without its secrets. Not synced: losing an original is tolerable."""
        folder = self._folder / file_name(session_id)
        create_folder(folder)
        descriptor = os.open(folder / file_name(handle), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, MODE_FILE)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogatepass", newline="") as file:
            file.write(self._redact(text))

    def get(self, session_id: str, handle: str) -> str | None:
        """Return the text stored under *handle*, or None."""
        path = self._folder / file_name(session_id) / file_name(handle)
        try:
            with path.open(encoding="utf-8", errors="surrogatepass", newline="") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def prune(self) -> int:
        """Delete sessions that wrote nothing for 24 hours and return their number; failures are logged."""
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
