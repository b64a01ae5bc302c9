"""The state of one watched file between two polls."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from windowpane.alerts.engine import AlertEngine
from windowpane.ingest.follow import FollowedFile
from windowpane.sources.databases import SessionState
from windowpane.sources.reader import Reader

RESTING_SECONDS: Final = 900.0
"""Age of a file's last change from which it is looked at in turns; all are within `DISCOVER_SECONDS`."""
LINE_SUFFIXES: Final = frozenset({".json", ".jsonl", ".traj"})
"""Suffixes of recordings that are one file, whose own metadata shows any change."""


@dataclass(slots=True)
class WatchedFile:
    """The state of one watched file."""

    stamp: tuple[int, int] = (0, 0)
    """Time of the last change in nanoseconds, and size."""
    reader: Reader | None = None
    followed: FollowedFile | None = None
    retry_at: float = 0.0
    """Time of the next attempt after a failure; 0 without one."""
    engine: AlertEngine | None = None
    """Of a file that is followed."""
    imported: dict[str, SessionState] = field(default_factory=dict)
    """States of the imported sessions of a database."""
    is_open: bool = False
    """It was imported whole soon after a change, so its last reply may have been held back."""
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
