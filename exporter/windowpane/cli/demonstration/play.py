"""Plays the packaged recordings into a store: as recorded, and again through the manager in small windows.

Sources and licenses are in NOTICE. Recorded times keep their distances, and the last one becomes a moment ago. A
format without times gets a steady pace, so that its timeline has one.
"""

from __future__ import annotations

import lzma
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

from windowpane.alerts.rules import configured
from windowpane.core.events import Event, SessionEnded
from windowpane.evaluation.replay.rerun import RerunOptions, managed_events
from windowpane.exceptions import SourceError
from windowpane.models.tokens import counter_for
from windowpane.sources.imports.pipeline import AlertingStore, playback_settings
from windowpane.sources.transcripts.discovery import all_readers, reader_for
from windowpane.sources.transcripts.playback import session_events, session_keys
from windowpane.sources.transcripts.reader import FileStats, Problem
from windowpane.sources.transcripts.records import Broken, ModelCalled, Record, SessionOpened

if TYPE_CHECKING:
    from windowpane.config.schema import Config
    from windowpane.core.events import Event
    from windowpane.core.protocols import Digester
    from windowpane.store.store import Store

TURN_SECONDS: Final = 20.0
"""Pace of recordings that have no times."""
APART_SECONDS: Final = 40.0
"""Time between the ends of two sessions."""
LONG_SESSION: Final = "pi_large_session.jsonl"
UNNAMED_MODEL: Final = "gpt-4o"
"""Model of the recordings without one; the airline conversations have it in their title only."""
RERUN_LIMITS: Final = (8_192, 32_768)
"""Windows the long session is managed in, tokens."""


@dataclass(frozen=True, slots=True)
class DemoRecording:
    """One packaged session, with times of today."""

    name: str
    """The packaged file."""
    source: str
    """Its format."""
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
        offset = end - max(times)
        return [
            _at(record, time + offset) if (time := _time_of(record)) is not None else record for record in records
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
    """Unpack and read each file; yields its name, its format and its records."""
    readers = all_readers(complete=True)
    with tempfile.TemporaryDirectory(prefix="windowpane-demo-") as folder:
        data = files("windowpane.cli.demonstration").joinpath("data")
        for packed in sorted(data.iterdir(), key=lambda entry: entry.name):
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
    """Yield the events of *recorded*, managed in a window of *limit_tokens*; the session does not end."""
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
    """Return the model of most calls; without one, the model that the session opens with."""
    models = [record.model for record in recorded.records if isinstance(record, ModelCalled) and record.model]
    models = models or [record.model for record in recorded.records if isinstance(record, SessionOpened)]
    return max(set(models), key=models.count, default="")


@dataclass(frozen=True, slots=True)
class LoadedSession:
    """One session that was played into the store."""

    name: str
    """A label for the user."""
    session_id: str
    events: int


def load(
    store: Store, *, now: float, progress: Callable[[str], None], config: Config | None = None
) -> list[LoadedSession]:
    """Play every packaged session into *store*; *progress* is called with the name of each before.

    *config* holds the alert rules and thresholds; None for the defaults.
    """
    judged = AlertingStore(store, rules=None if config is None else configured(**config.alert_settings()))
    digest = store.digester()
    playback = playback_settings(digest, model=UNNAMED_MODEL, config=config)
    loaded = []

    def play(name: str, events: Callable[[], Iterable[Event]]) -> None:
        progress(name)
        outcome = judged.import_session(events)
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
