"""The packaged recordings, read once and moved to today.

Sources and licences are in NOTICE. Recorded times keep their distances; the last one becomes a moment ago. A
format without times gets a steady pace, so that the timeline has one.
"""

from __future__ import annotations

import lzma
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Final

from windowpane.exceptions import SourceError
from windowpane.sources.base import FileStats, ModelCalled, Problem, Record, SessionOpened
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
    last = max((record.at for record in records if getattr(record, "at", None) is not None), default=None)
    if last is not None:
        return [_moved(record, end - last) for record in records]
    calls = sum(isinstance(record, ModelCalled) for record in records)
    at, moved = end - calls * TURN_SECONDS, []
    for record in records:
        if isinstance(record, ModelCalled):
            at += TURN_SECONDS
        moved.append(replace(record, at=at) if _has_time(record) else record)
    return moved


def _moved(record: Record, seconds: float) -> Record:
    at = getattr(record, "at", None)
    return record if at is None else replace(record, at=at + seconds)  # type: ignore[call-arg]  # it has one


def _has_time(record: Record) -> bool:
    return any(field.name == "at" for field in fields(record))


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
