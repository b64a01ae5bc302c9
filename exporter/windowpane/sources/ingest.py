"""Plays the records of a recording into session trackers, the same events every time.

What an event says, its number and its id depend only on the records before it, so a longer recording of a session
continues the events of a shorter one. Nothing here reads a clock or a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from windowpane.core.events import Event
from windowpane.sources.base import LimitStated, ModelCalled, Record, SessionClosed, SessionOpened
from windowpane.sources.player import FidelityProbe, Ingest, SessionPlayer, session_id_of

__all__ = ["FidelityProbe", "Ingest", "Stage", "session_events", "session_id_of", "session_keys"]

MAXIMUM_HELD: Final = 2_000
"""Records held back at most until the session's model is known."""


def session_keys(records: Iterable[Record]) -> tuple[str, ...]:
    """The sessions of a recording, in the order in which they begin."""
    keys: dict[str, None] = {}
    for record in records:
        if isinstance(record, SessionOpened):
            keys[record.session_key] = None
    return tuple(keys)


def session_events(records: Iterable[Record], *, key: str, source: str, ingest: Ingest) -> Iterator[Event]:
    """The whole event sequence of one session of a recording; the other sessions' records are passed over."""
    emitted: list[Event] = []
    stage = Stage(key, source, ingest, emitted)
    for record in records:
        stage.take(record)
        if emitted:
            yield from emitted
            emitted.clear()
    stage.finish()
    yield from emitted


class Stage:
    """Holds a session's first records back until its model and limit are known, then plays."""

    def __init__(self, key: str, source: str, ingest: Ingest, emitted: list[Event]) -> None:
        self._key = key
        self._source = source
        self._ingest = ingest
        self._emitted = emitted
        self._on = False
        self._opened: SessionOpened | None = None
        self._held: list[Record] = []
        self._player: SessionPlayer | None = None

    def take(self, record: Record) -> None:
        """One record of the recording, of this session or another."""
        if isinstance(record, SessionOpened):
            self._on = record.session_key == self._key
            if self._on and self._opened is None:
                self._opened = record
        if not self._on:
            return
        if self._player is not None:
            self._player.play(record)
            return
        self._held.append(record)
        if _settles(record) or len(self._held) >= MAXIMUM_HELD:
            self._begin()

    def flush(self) -> None:
        """Let go what has come so far; more may follow."""
        if self._player is not None:
            self._player.finish()

    def finish(self) -> None:
        """No more records: play what is held back and let everything go."""
        if self._player is None and self._opened is not None:
            self._begin()
        if self._player is not None:
            self._player.finish()

    def _begin(self) -> None:
        opened = self._opened
        assert opened is not None
        model = next((_model_of(record) for record in self._held if _model_of(record)), self._ingest.model)
        limit = next((_limit_of(record) for record in self._held if _limit_of(record)), None)
        parent = opened.parent_key
        self._player = SessionPlayer(
            opened,
            session_id=session_id_of(self._source, opened.session_key),
            parent_session_id=None if parent is None else session_id_of(self._source, parent),
            source=self._source,
            model=model,
            stated_limit=limit,
            ingest=self._ingest,
            emit=self._emitted.extend,
        )
        held, self._held = self._held, []
        for record in held:
            self._player.play(record)


def _settles(record: Record) -> bool:
    return bool(_model_of(record)) or isinstance(record, ModelCalled | SessionClosed)


def _model_of(record: Record) -> str:
    return record.model if isinstance(record, SessionOpened | ModelCalled) else ""


def _limit_of(record: Record) -> int | None:
    return record.limit_tokens if isinstance(record, SessionOpened | LimitStated) else None
