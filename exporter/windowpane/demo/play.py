"""Plays the packaged recordings into a store: as they were, and again through the manager in small windows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from windowpane.demo.recordings import recorded_sessions
from windowpane.demo.reruns import rerun_events
from windowpane.ingest.pipeline import JudgedStore, make_ingest
from windowpane.sources.ingest import session_events

if TYPE_CHECKING:
    from windowpane.config.schema import Config
    from windowpane.core.events import Event
    from windowpane.store.sqlite import SqliteStore

LONG_SESSION: Final = "pi_large_session.jsonl"
UNNAMED_MODEL: Final = "gpt-4o"
"""Of the recordings that name no model in themselves; the airline conversations name it in their title."""
RERUN_LIMITS: Final = (8_192, 32_768)
"""Windows the long session is managed in, tokens."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """One session that was played into the store."""

    name: str
    """What it is, for a person."""
    session_id: str
    events: int


def load(
    store: SqliteStore, *, now: float, progress: Callable[[str], None], config: Config | None = None
) -> list[Loaded]:
    """Play every packaged session into *store*; *progress* is told of each before it is played.

    *config* says how the sessions are judged; None is the defaults.
    """
    judged = JudgedStore(store, rules=None if config is None else config.alert_rules())
    digest = store.digester()
    ingest = make_ingest(digest, model=UNNAMED_MODEL, config=config)
    loaded = []

    def play(name: str, events: Callable[[], Iterable[Event]]) -> None:
        progress(name)
        outcome = judged.import_session(events)
        loaded.append(Loaded(name, outcome.session_id, outcome.appended))

    for recorded in recorded_sessions(now=now):
        one = partial(session_events, recorded.records, key=recorded.key, source=recorded.source, ingest=ingest)
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
