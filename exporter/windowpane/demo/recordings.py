"""The packaged recordings, read once and moved to today.

Sources and licences are in NOTICE. Recorded times keep their distances; the last one becomes a moment ago. A
format without times gets a steady pace, so that the timeline has one.
"""

from __future__ import annotations

import lzma
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Final

from windowpane.exceptions import SourceError
from windowpane.sources.base import Broken, FileStats, ModelCalled, Problem, Record, SessionOpened
from windowpane.sources.discover import reader_for
from windowpane.sources.ingest import session_keys
from windowpane.sources.registry import all_readers

TURN_SECONDS: Final = 20.0
"""Pace of recordings that have no times."""
APART_SECONDS: Final = 40.0
"""How long before one another the sessions end."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One recorded session."""

    name: str
    """The packaged file."""
    source: str
    """Its format."""
    key: str
    records: Sequence[Record]


def recorded_sessions(*, now: float) -> Iterator[Recorded]:
    """Every packaged session; the first ends at *now*, each further one a little earlier."""
    number = 0
    for name, source, records in _packaged():
        for key in session_keys(records):
            own = _of_session(records, key)
            yield Recorded(name, source, key, move_to(own, now - number * APART_SECONDS))
            number += 1


def move_to(records: Sequence[Record], end: float) -> list[Record]:
    """The records with times that end at *end*, in seconds since the epoch."""
    times = [time for record in records if (time := _time_of(record)) is not None]
    if times:
        by = end - max(times)
        return [
            _at(record, time + by) if (time := _time_of(record)) is not None else record for record in records
        ]
    calls = sum(isinstance(record, ModelCalled) for record in records)
    at, moved = end - calls * TURN_SECONDS, []
    for record in records:
        if isinstance(record, ModelCalled):
            at += TURN_SECONDS
        moved.append(_at(record, at))
    return moved


def _time_of(record: Record) -> float | None:
    return None if isinstance(record, Broken) else record.at


def _at(record: Record, at: float) -> Record:
    return record if isinstance(record, Broken) else replace(record, at=at)


def _packaged() -> Iterator[tuple[str, str, list[Record]]]:
    """Unpack each file and read it as if a user had named it."""
    readers = all_readers(complete=True)
    with tempfile.TemporaryDirectory(prefix="windowpane-demo-") as folder:
        for packed in sorted(files("windowpane.demo").joinpath("data").iterdir(), key=lambda entry: entry.name):
            if not packed.name.endswith(".xz"):
                continue
            path = Path(folder) / packed.name.removesuffix(".xz")
            path.write_bytes(lzma.decompress(packed.read_bytes()))
            reader = reader_for(path, readers)
            problems: list[Problem] = []
            records = list(reader.read(path, stats=FileStats(), problems=problems))
            if any(problem.severity == "bad" for problem in problems):
                raise SourceError(path.name, f"the packaged recording is damaged: {problems[0]}")
            yield path.name, reader.format, records


def _of_session(records: Sequence[Record], key: str) -> list[Record]:
    own: list[Record] = []
    inside = False
    for record in records:
        if isinstance(record, SessionOpened):
            inside = record.session_key == key
        if inside:
            own.append(record)
    return own
