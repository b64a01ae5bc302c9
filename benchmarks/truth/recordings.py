"""The sessions of the recordings that conclusions are checked on, as the product plays them, in two halves."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

from windowpane.core.digests import keyed_digester
from windowpane.core.events import Event
from windowpane.exceptions import SourceError
from windowpane.sources.imports.pipeline import playback_settings
from windowpane.sources.transcripts.discovery import all_readers, files_of, reader_for
from windowpane.sources.transcripts.playback import session_events, session_keys
from windowpane.sources.transcripts.reader import FileStats
from windowpane.sources.transcripts.records import Record

MINIMUM_CALLS: Final = 15
"""Shorter recordings have nothing to forecast."""
BESIDE: Final = ("corpus", "corpus-new")
"""Folders of recordings beside the one that WINDOWPANE_SESSIONS_DIR names."""
HAND_WRITTEN: Final = "shapes"
"""Folder of rows that no agent wrote."""
DESCRIPTIONS: Final = ("MANIFEST.json", "README.md", "SOURCES.md")

Half = Literal["tuning", "reporting"]


@dataclass(frozen=True)
class Session:
    """One session of a recording."""

    key: str
    format: str
    source: str
    """The repository that the recording comes from; empty without a manifest."""
    path: Path
    records: tuple[Record, ...] = field(repr=False)

    @property
    def half(self) -> Half:
        """Return the half by a hash of the id, so that a session's half never changes."""
        return "reporting" if hashlib.sha256(self.key.encode()).digest()[3] & 8 else "tuning"

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """The events that the product derives from the session; fidelity is not evaluated."""
        playback = playback_settings(keyed_digester(b"truth"), with_fidelity=False)
        return tuple(session_events(self.records, key=self.key, source=self.format, playback=playback))


def recorded_sessions() -> list[Session]:
    """Return the sessions in the folder that WINDOWPANE_SESSIONS_DIR names and in those beside it, if any."""
    folder = os.environ.get("WINDOWPANE_SESSIONS_DIR")
    if not folder:
        print("WINDOWPANE_SESSIONS_DIR is not set: no recorded sessions to check; nothing done")
        return []
    folders = (Path(folder), *(Path(folder).parent / name for name in BESIDE))
    return [session for one in folders if one.is_dir() for session in sessions_of(one)]


def sessions_of(folder: Path) -> Iterator[Session]:
    """Yield the sessions of a folder's recordings; files of unknown formats are skipped."""
    sources = _sources(folder)
    for path in files_of([folder]):
        if path.name in DESCRIPTIONS or path.parent.name == HAND_WRITTEN:
            continue
        try:
            reader = reader_for(path, all_readers(complete=True))
            records = tuple(reader.read(path, stats=FileStats(), problems=[]))
        except SourceError:
            continue
        for key in session_keys(records):
            yield Session(key, reader.format, sources.get(path.name, ""), path, records)


def _sources(folder: Path) -> dict[str, str]:
    """Return the repository of each file by its name, where a manifest names them."""
    manifest = folder / "MANIFEST.json"
    entries: list[dict[str, Any]] = json.loads(manifest.read_text()) if manifest.exists() else []
    return {Path(entry["file"]).name: str(entry.get("repo", "")) for entry in entries}
