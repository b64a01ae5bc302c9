"""Recordings that are a folder: one file per event or per model call, which together are read as one file is."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, Protocol, runtime_checkable

from windowpane.core.files import WAL
from windowpane.sources.transcripts.databases import SUFFIXES

SETTLED_SECONDS: Final = 600.0
"""A folder without a new file for so long is not searched for files that were written to since."""
_DIGITS: Final = re.compile(r"(\d+)")
AIDER_HISTORY: Final = ".aider.chat.history.md"
BESIDE_EVENTS: Final = frozenset({"base_state.json", "metadata.json", "TASKS.json", "llm_registry.json"})
"""Files that are read together with the folder `events` beside them."""
STORAGE_FOLDERS: Final = ("message", "part")
"""Folders of opencode's storage, beside which are others that are read with the messages, or hold none."""


@runtime_checkable
class FolderReader(Protocol):
    """A reader whose tool writes a recording as many files in one folder."""

    @staticmethod
    def parts(folder: Path, files: Sequence[str]) -> list[str]:
        """Return those of a folder's *files* that are its recording, in order; by the names alone."""
        ...


class Stamp(NamedTuple):
    """A value that changes whenever a recording does."""

    mtime_ns: int
    size: int


def names_in(folder: Path) -> list[str]:
    """Return the names of the files in *folder*; none where it cannot be listed."""
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if not entry.name.startswith(".")]
    except OSError:
        return []


def is_searched_storage(storage: Path, name: str) -> bool:
    """Return whether a folder of the storage holds messages: the first releases had theirs in `session`."""
    return name == "message" or (name == "session" and (storage / name / "message").is_dir())


def in_number_order(names: Sequence[str]) -> list[str]:
    """Return *names* sorted with their numbers as numbers: `2.json` before `10.json`."""
    return sorted(names, key=lambda name: [part if number % 2 == 0 else part.lstrip("0").rjust(32, "0")
                                           for number, part in enumerate(_DIGITS.split(name))])  # fmt: skip


def stamp_of(path: Path, parts: Sequence[str], *, now: float | None = None) -> Stamp:
    """Return the stamp of a file, a database with its log, or a folder with *parts*.

    Raises `OSError` where it does not exist.

    With *now* a folder without a recent change is not searched, which costs as much as one file.
    """
    status = path.stat()
    latest, size = status.st_mtime_ns, status.st_size
    if path.suffix in SUFFIXES:
        with suppress(FileNotFoundError):
            log = path.with_name(path.name + WAL).stat()
            latest, size = max(latest, log.st_mtime_ns), size + log.st_size
    if parts and (now is None or now - status.st_mtime < SETTLED_SECONDS):
        for name in parts:
            part = (path / name).stat()
            latest, size = max(latest, part.st_mtime_ns), size + part.st_size
    return Stamp(latest, size)
