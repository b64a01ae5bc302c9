"""Plays the packaged recordings into a store: as they were, and again through the manager in small windows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from windowpane.demo.recordings import Recorded, recorded_sessions
from windowpane.demo.reruns import managed_events
from windowpane.intake import JudgedStore, make_ingest
from windowpane.sources.ingest import session_events

if TYPE_CHECKING:
    from windowpane.store.base import ImportOutcome
    from windowpane.store.sqlite import SqliteStore

LONG_SESSION: Final = "pi_large_session.jsonl"
RERUN_LIMITS: Final = (8_192, 32_768)
"""Windows the long session is managed in, tokens."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """One session that was played into the store."""

    name: str
    """What it is, for a person."""
    session_id: str
    events: int


def load(store: SqliteStore, *, now: float, progress: Callable[[str], None]) -> list[Loaded]:
    """Play every packaged session into *store*; *progress* is told of each before it is played."""
    judged = JudgedStore(store)
    ingest = make_ingest(store.digester())
    loaded = []
    for recorded in recorded_sessions(now=now):
        progress(recorded.name)
        outcome = judged.import_session(
            lambda one=recorded: session_events(one.records, key=one.key, source=one.source, ingest=ingest)
        )
        loaded.append(_loaded(recorded.name, outcome))
        if recorded.name == LONG_SESSION:
            loaded += _rerun(recorded, store, now=now, progress=progress)
    progress("indexing for search")
    while store.index_text():
        continue
    store.flush()
    return loaded


def _rerun(
    recorded: Recorded, store: SqliteStore, *, now: float, progress: Callable[[str], None]
) -> list[Loaded]:
    loaded = []
    for limit in ():
        name = f"{recorded.name}, managed in {limit // 1_024}K"
        progress(name)
        events = managed_events(recorded, limit_tokens=limit, digest=store.digester(), now=now)
        loaded.append(_loaded(name, JudgedStore(store).import_session(lambda events=events: events)))
    return loaded


def _loaded(name: str, outcome: ImportOutcome) -> Loaded:
    return Loaded(name, outcome.session_id, outcome.appended)
