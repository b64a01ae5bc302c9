"""Plays the records of a recording into session trackers, with the same events every time.

The content of an event, its number and its id depend only on the records before it, so a longer recording of a
session continues the events of a shorter one. Nothing here reads a clock or a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from windowpane.core.events import (
    Event,
)
from windowpane.sources.transcripts.playback_settings import PlaybackSettings
from windowpane.sources.transcripts.player import SessionPlayer, session_id_of
from windowpane.sources.transcripts.records import (
    LimitStated,
    ModelCalled,
    Record,
    SessionClosed,
    SessionOpened,
)

MAXIMUM_DEFERRED: Final = 2_000
"""Records deferred at most until the session's model is known."""


def session_keys(records: Iterable[Record]) -> tuple[str, ...]:
    """Return the keys of a recording's sessions, in the order of their first records."""
    keys: dict[str, None] = {}
    for record in records:
        if isinstance(record, SessionOpened):
            keys[record.session_key] = None
    return tuple(keys)


def session_events(
    records: Iterable[Record], *, key: str, source: str, playback: PlaybackSettings
) -> Iterator[Event]:
    """Yield all events of one session of a recording; records of other sessions are skipped."""
    emitted: list[Event] = []
    player = DeferredPlayer(key, source, playback, emitted)
    for record in records:
        player.play(record)
        if emitted:
            yield from emitted
            emitted.clear()
    player.finish()
    yield from emitted


class DeferredPlayer:
    """Plays one session, whose first records are deferred until its model and limit are known."""

    def __init__(self, key: str, source: str, playback: PlaybackSettings, emitted: list[Event]) -> None:
        self._key = key
        self._source = source
        self._playback = playback
        self._emitted = emitted
        self._inside = False
        """The latest record belongs to this session."""
        self._opened: SessionOpened | None = None
        self._deferred: list[Record] = []
        self._player: SessionPlayer | None = None

    def play(self, record: Record) -> None:
        """Play one record of the recording, or skip it if it belongs to another session."""
        if isinstance(record, SessionOpened):
            self._inside = record.session_key == self._key
            if self._inside and self._opened is None:
                self._opened = record
        if not self._inside:
            return
        if self._player is not None:
            self._player.play(record)
            return
        self._deferred.append(record)
        if _settles(record) or len(self._deferred) >= MAXIMUM_DEFERRED:
            self._start()

    def flush(self) -> None:
        """Emit the events of all records so far; more may follow."""
        if self._player is not None:
            self._player.flush()

    def finish(self) -> None:
        """Play the deferred records and emit all events; no more records follow."""
        if self._player is None and self._opened is not None:
            self._start()
        self.flush()

    def _start(self) -> None:
        opened = self._opened
        assert opened is not None
        model = next((_model_of(record) for record in self._deferred if _model_of(record)), self._playback.model)
        limit = next((_limit_of(record) for record in self._deferred if _limit_of(record)), None)
        parent = opened.parent_key
        self._player = SessionPlayer(
            opened,
            session_id=session_id_of(self._source, opened.session_key),
            parent_session_id=None if parent is None else session_id_of(self._source, parent),
            source=self._source,
            model=model,
            stated_limit=limit,
            playback=self._playback,
            emit=self._emitted.extend,
        )
        deferred, self._deferred = self._deferred, []
        for record in deferred:
            self._player.play(record)


def _settles(record: Record) -> bool:
    return bool(_model_of(record)) or isinstance(record, ModelCalled | SessionClosed)


def _model_of(record: Record) -> str:
    return record.model if isinstance(record, SessionOpened | ModelCalled) else ""


def _limit_of(record: Record) -> int | None:
    return record.limit_tokens if isinstance(record, SessionOpened | LimitStated) else None
