"""The recordings below some folders, searched again and again at the cost of a look at each folder.

A folder is listed again when its time of change is another one, or so recent that a further change could have the
same one, since file systems count time in ticks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from windowpane.sources.discovery import MAXIMUM_DEPTH, FolderListing, list_folder

SETTLED_SECONDS: Final = 10.0
"""Age of a folder's last change from which its time of change shows a further one."""


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
        self._files: list[Path] = []

    def search(self, now: float) -> list[Path]:
        """Return the recordings there are, each once; the same list where none came or went."""
        seen: set[str] = set()
        files: list[Path] = []
        for path in self._paths:
            for file, resolved in self._below(path, now, depth=0) if path.is_dir() else _alone(path):
                if resolved not in seen:
                    seen.add(resolved)
                    files.append(file)
        if files != self._files:
            self._files = files
        return self._files

    def _below(self, folder: Path, now: float, *, depth: int) -> Iterator[tuple[Path, str]]:
        listed = self._listed(folder, now)
        if listed is None:
            return
        yield from zip(listed.listing.recordings, listed.resolved, strict=True)
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


def _alone(path: Path) -> Iterator[tuple[Path, str]]:
    """Yield a file that was named itself, as long as it exists."""
    if path.exists():
        yield path, os.path.realpath(path)
