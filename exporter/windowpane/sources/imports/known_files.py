"""The files that a watcher knows: the recordings below some folders, and the state of each between two polls.

Folders are searched again and again at the cost of a look at each: one is listed again when its time of change is
another one, or so recent that a further change could have the same one, since file systems count time in ticks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from windowpane.alerts.engine import AlertEngine
from windowpane.sources.imports.follow import FollowedFile
from windowpane.sources.transcripts.databases import SessionState
from windowpane.sources.transcripts.discovery import MAXIMUM_DEPTH, FolderListing, list_folder
from windowpane.sources.transcripts.reader import Reader

SETTLED_SECONDS: Final = 10.0
"""Age of a folder's last change from which its time of change shows a further one."""

RESTING_SECONDS: Final = 900.0
"""Age of a file's last change from which it is looked at in turns, by `RESTED_SECONDS`."""
LINE_SUFFIXES: Final = frozenset({".json", ".jsonl", ".traj"})
"""Suffixes of recordings that are one file, whose own metadata shows any change."""


@dataclass(frozen=True, slots=True)
class _Folder:
    mtime_ns: int
    listing: FolderListing
    resolved: tuple[str, ...]
    """Paths of the listed recordings without links."""


class KnownFiles:
    """Searches the same paths repeatedly."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = tuple(paths)
        self._folders: dict[Path, _Folder] = {}
        self._searched: list[_Folder] = []
        self._files: list[Path] = []

    def search(self, now: float) -> list[Path]:
        """Return the recordings there are, each once; the same list where none came or went."""
        searched = [one for path in self._paths for one in self._given(path, now)]
        if searched != self._searched:
            self._searched = searched
            files: dict[str, Path] = {}
            for one in searched:
                for resolved, file in zip(one.resolved, one.listing.recordings, strict=True):
                    files.setdefault(resolved, file)
            if list(files.values()) != self._files:
                self._files = list(files.values())
        return self._files

    def _given(self, path: Path, now: float) -> Iterator[_Folder]:
        return self._below(path, now, depth=0) if path.is_dir() else _alone(path)

    def _below(self, folder: Path, now: float, *, depth: int) -> Iterator[_Folder]:
        listed = self._listed(folder, now)
        if listed is None:
            return
        yield listed
        if depth < MAXIMUM_DEPTH:
            for below in listed.listing.folders:
                yield from self._below(below, now, depth=depth + 1)

    def _listed(self, folder: Path, now: float) -> _Folder | None:
        try:
            mtime_ns = os.stat(folder).st_mtime_ns  # noqa: PTH116  # the search is mostly this call
        except OSError:
            self._folders.pop(folder, None)
            return None
        before = self._folders.get(folder)
        if before is not None and before.mtime_ns == mtime_ns and now - mtime_ns / 1e9 >= SETTLED_SECONDS:
            return before
        listing = list_folder(folder)
        resolved = tuple(os.path.realpath(file) for file in listing.recordings)
        listed = self._folders[folder] = _Folder(mtime_ns, listing, resolved)
        return listed


def _alone(path: Path) -> Iterator[_Folder]:
    """Yield a file that was named itself, as long as it exists."""
    if path.exists():
        yield _Folder(0, FolderListing((path,), ()), (os.path.realpath(path),))


@dataclass(slots=True)
class WatchedFile:
    """The state of one watched file."""

    stamp: tuple[int, int] = (0, 0)
    """Time of the last change in nanoseconds, and size."""
    reader: Reader | None = None
    followed: FollowedFile | None = None
    retry_at: float = 0.0
    """Time of the next attempt after a failure; 0 without one."""
    failures: int = 0
    """Attempts that failed since the last that did not."""
    engine: AlertEngine | None = None
    """Of a file that is followed."""
    imported: dict[str, SessionState] = field(default_factory=dict)
    """States of the imported sessions of a database."""
    is_open: bool = False
    """It was imported whole soon after a change, so its last reply may have been held back."""
    distinct_ids: dict[str, str] = field(default_factory=dict)
    """Ids of its sessions by those that it states, where the store has other sessions of these."""
    stored: dict[str, int] = field(default_factory=dict)
    """Number of stored events by session; sessions that cannot be appended to are absent."""

    def is_resting(self, path: Path, now: float) -> bool:
        """Return whether one system call shows that the file did not change, and it last did long ago."""
        if now - self.stamp[0] / 1e9 <= RESTING_SECONDS or not any(self.stamp):
            return False
        pending = self.followed is not None or self.is_open or self.retry_at
        return not pending and path.suffix in LINE_SUFFIXES


class RestingFile(NamedTuple):
    """A file that did not change for long: all that is remembered of it."""

    path: Path
    name: str
    stamp: tuple[int, int]
