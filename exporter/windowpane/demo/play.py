"""Import of the packaged recordings into a store: as recorded, and managed in small windows."""

from __future__ import annotations

import lzma
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

from windowpane.core.events import Event, SessionEnded
from windowpane.exceptions import SourceError
from windowpane.ingest.pipeline import AlertingStore, playback_settings
from windowpane.models.tokens import counter_for
from windowpane.replay.rerun import RerunOptions, managed_events
from windowpane.sources.discovery import all_readers, reader_for
from windowpane.sources.playback import session_events, session_keys
from windowpane.sources.reader import FileStats, Problem
from windowpane.sources.records import Broken, ModelCalled, Record, SessionOpened

if TYPE_CHECKING:
    from windowpane.config.schema import Config
    from windowpane.core.events import Event
    from windowpane.core.protocols import Digester
    from windowpane.store.sqlite import SqliteStore

TURN_SECONDS: Final = 20.0
"""Pace of recordings that have no times."""
APART_SECONDS: Final = 40.0
"""Time between the ends of two sessions."""


@dataclass(frozen=True, slots=True)
class DemoRecording:
    """One recorded session."""

    name: str
    """The packaged file."""
    source: str
    """Format of the recording."""
    key: str
    records: Sequence[Record]


def recorded_sessions(*, now: float) -> Iterator[DemoRecording]:
    """Yield every packaged session; the first ends at *now*, each further one a little earlier."""
    number = 0
    for name, source, records in _packaged():
        for key in session_keys(records):
            own = _of_session(records, key)
            yield DemoRecording(name, source, key, move_to(own, now - number * APART_SECONDS))
            number += 1


def move_to(records: Sequence[Record], end: float) -> list[Record]:
    """Return the records with times that end at *end*, in seconds since the epoch."""
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


def rerun_events(recorded: DemoRecording, *, limit_tokens: int, digest: Digester) -> Iterator[Event]:
    """Yield the events of *recorded* managed in a window of *limit_tokens*, without the end of the session."""
    size = f"{limit_tokens // 1_024}k"
    rerun = RerunOptions(
        session_id=f"{recorded.source}-managed-{size}",
        limit_tokens=limit_tokens,
        counter=counter_for(_model_of(recorded), wait=True),
        digest=digest,
        agent=f"{recorded.source}-managed-{size}",
    )
    for event in managed_events(recorded.records, key=recorded.key, options=rerun):
        if not isinstance(event.data, SessionEnded):
            yield event


def _model_of(recorded: DemoRecording) -> str:
    """Return the model of most calls; the one at the start of the session where no call names one."""
    models = [record.model for record in recorded.records if isinstance(record, ModelCalled) and record.model]
    models = models or [record.model for record in recorded.records if isinstance(record, SessionOpened)]
    return max(set(models), key=models.count, default="")


LONG_SESSION: Final = "pi_large_session.jsonl"
UNNAMED_MODEL: Final = "gpt-4o"
"""Model of recordings without one; the airline conversations name it only in their title."""
RERUN_LIMITS: Final = (8_192, 32_768)
"""Window sizes in which the long session is managed, in tokens."""


@dataclass(frozen=True, slots=True)
class LoadedSession:
    """One session that was imported into the store."""

    name: str
    """Description for a person."""
    session_id: str
    events: int


def load(
    store: SqliteStore, *, now: float, progress: Callable[[str], None], config: Config | None = None
) -> list[LoadedSession]:
    """Import every packaged session into *store*; *progress* receives the name of each before its import.

    *config* sets the alert rules; None takes the defaults.
    """
    alerting_store = AlertingStore(store, rules=None if config is None else config.alert_rules())
    digest = store.digester()
    playback = playback_settings(digest, model=UNNAMED_MODEL, config=config)
    loaded = []

    def play(name: str, events: Callable[[], Iterable[Event]]) -> None:
        progress(name)
        outcome = alerting_store.import_session(events)
        loaded.append(LoadedSession(name, outcome.session_id, outcome.appended))

    for recorded in recorded_sessions(now=now):
        one = partial(
            session_events, recorded.records, key=recorded.key, source=recorded.source, playback=playback
        )
        play(f"{recorded.name} {recorded.key[:13]}", one)
        if recorded.name == LONG_SESSION:
            for limit in RERUN_LIMITS:
                again = partial(rerun_events, recorded, limit_tokens=limit, digest=digest)
                play(f"{recorded.name} managed in {limit // 1_024}K", again)
    progress("indexing for search")
    while store.index_text():
        continue
    store.flush()
    return loaded
