"""Keeps a store up with transcripts that are being written: what `windowpane watch` does, without a terminal.

Each look takes in what changed since the last one: of a JSON Lines file only the new lines, of any other the
whole file. A file that has been still for two minutes is imported as finished, which settles what its end left
open. Alerts are judged and stored as an import would; those of the last 15 minutes are delivered as well.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from windowpane.alerts.delivery.notifier import Notifier
from windowpane.alerts.engine import AlertEngine
from windowpane.alerts.rules import Rule
from windowpane.core.events import AlertFired, AlertResolved, Event, PressureMeasured, SessionEnded
from windowpane.core.liveness import live_since
from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.exceptions import SourceError
from windowpane.ingest.follow import FollowedFile, LineReader, Rewritten
from windowpane.ingest.importer import import_file
from windowpane.ingest.pipeline import AlertingStore
from windowpane.sources.discovery import files_of, reader_for
from windowpane.sources.playback import PlaybackSettings
from windowpane.sources.reader import Reader
from windowpane.sources.transcript import IDLE_SECONDS
from windowpane.store.interface import EventFilter
from windowpane.store.sqlite import SqliteStore

DISCOVER_SECONDS: Final = 5.0
"""How often folders are searched for new files."""
RETRY_SECONDS: Final = 60.0
"""How long a file is left alone whose events could not be read or stored; then it is read from its beginning."""
DELIVERIES: Final = ("notification.delivered", "notification.failed")
_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WatchedSession:
    """The latest of one watched session."""

    session_id: str
    agent: str
    model: str
    at: float | None
    pressure: PressureMeasured
    ended: bool = False

    def is_live(self, now: float) -> bool:
        """Whether it has not ended and was heard of within the last 15 minutes."""
        return not self.ended and self.at is not None and self.at >= live_since(now)


@dataclass(slots=True)
class _File:
    """What is known of one file."""

    stamp: tuple[int, int] = (0, 0)
    """Time of the last change in nanoseconds, and size."""
    reader: Reader | None = None
    followed: FollowedFile | None = None
    waits_until: float = 0.0
    """When to try again what failed; 0 where nothing did."""
    engine: AlertEngine = field(default_factory=AlertEngine)
    """Made anew with the watcher's rules where the file is read from its beginning."""
    stored: dict[str, int] = field(default_factory=dict)
    """Sessions to the events the store holds of them; those that cannot be appended to are missing."""


class Watcher:
    """Follows files. `look` is called by one thread; the notifier's may report deliveries meanwhile."""

    def __init__(
        self,
        paths: Sequence[Path],
        store: SqliteStore,
        *,
        playback: PlaybackSettings,
        readers: Sequence[Reader],
        final_readers: Sequence[Reader],
        since_seconds: float,
        rules: Sequence[Rule] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """*readers* hold back what may go on, *final_readers* tell by a file's age whether it does.

        Files that did not change for *since_seconds* are left alone until they do. *rules* are the alerts that
        are judged, None the defaults.
        """
        self._paths = tuple(paths)
        self._store = store
        self._playback = playback
        self._readers = readers
        self._final_readers = final_readers
        self._rules = rules
        self._since = clock() - since_seconds
        self._clock = clock
        self._boundary = ErrorBoundary(_log, clock=clock)
        self._files: dict[Path, _File] = {}
        self._found: list[Path] = []
        self._searched_at = -DISCOVER_SECONDS
        self._appending = threading.Lock()
        """Guards what is known of the store's sessions while events are appended."""
        self.notifier: Notifier | None = None
        """Told of young alerts, where there is one."""
        self.sessions: dict[str, WatchedSession] = {}
        """The watched sessions, by id."""

    def look(self) -> list[WatchedSession]:
        """Take in what changed; returns the sessions that moved, each once. Never raises for a bad file."""
        moved: dict[str, WatchedSession] = {}
        for path in self._candidates():
            with self._boundary.contain(f"following {path.name}", failed=partial(self._failed, path)):
                for event in self._visit(path):
                    seen = self._note(event)
                    if seen is not None:
                        moved[seen.session_id] = seen
        return list(moved.values())

    def delivered(self, batch: list[Event]) -> None:
        """Store what became of messages; the notifier's `emit`."""
        with self._appending, self._boundary.contain("storing a delivery"):
            self._store.append(batch)
            for event in batch:
                for known in self._files.values():
                    if event.context.session_id in known.stored:
                        known.stored[event.context.session_id] += 1

    # -- files ------------------------------------------------------------------------------------------------

    def _candidates(self) -> list[Path]:
        now = self._clock()
        if now - self._searched_at >= DISCOVER_SECONDS:
            self._searched_at = now
            self._found = list(files_of(path for path in self._paths if path.exists()))
        return self._found

    def _visit(self, path: Path) -> Iterable[Event]:
        try:
            status = path.stat()
        except OSError:
            self._files.pop(path, None)
            return ()
        known = self._files.setdefault(path, _File())
        is_still = self._clock() - status.st_mtime >= IDLE_SECONDS
        stamp = (status.st_mtime_ns, status.st_size)
        if known.waits_until:
            if self._clock() < known.waits_until:
                return ()
            known.waits_until = 0.0
        elif stamp == known.stamp:
            return self._settle(path, known) if known.followed is not None and is_still else ()
        known.stamp = stamp
        return self._changed(path, known, is_still=is_still) if status.st_mtime >= self._since else ()

    def _failed(self, path: Path) -> None:
        """What was read of a file may not have been stored: it is read again, not at once."""
        known = self._files.get(path)
        if known is not None:
            known.followed = None
            known.stored.clear()
            known.waits_until = self._clock() + RETRY_SECONDS

    def _changed(self, path: Path, known: _File, *, is_still: bool) -> Iterable[Event]:
        if known.reader is None:
            known.reader = self._reader(path)
        if known.reader is None:
            return ()
        if isinstance(known.reader, LineReader) and not is_still:
            return self._tail(path, known, known.reader)
        return self._settle(path, known)

    def _reader(self, path: Path) -> Reader | None:
        try:
            return reader_for(path, self._readers)
        except SourceError:
            return None  # too short to be told yet, or something else; looked at again when it changes

    def _tail(self, path: Path, known: _File, reader: LineReader) -> Iterable[Event]:
        if known.followed is None:
            return self._begin(path, known, reader)
        try:
            events = known.followed.read()
        except Rewritten:
            return self._begin(path, known, reader)
        fresh = list(known.engine.interleave(events))
        if not self._extend(known, fresh):
            return self._begin(path, known, reader)
        self._notify(fresh)
        return fresh

    def _begin(self, path: Path, known: _File, reader: LineReader) -> Iterable[Event]:
        """Read a file from its beginning and store what the store does not hold yet."""
        known.followed, known.engine = FollowedFile(path, reader, self._playback), AlertEngine(self._rules)
        known.stored.clear()
        interleaved = list(known.engine.interleave(known.followed.read()))
        for session_id, events in by_session(interleaved).items():
            with self._appending:
                self._store.import_session(lambda events=events: events)  # type: ignore[misc]
                held = self._held(session_id)
                if held.own == len(events):
                    known.stored[session_id] = held.total
        self._notify(interleaved)
        return interleaved

    def _extend(self, known: _File, fresh: list[Event]) -> bool:
        """Append new events; False where the store holds something else than was left there."""
        for session_id, events in by_session(fresh).items():
            with self._appending:
                held = known.stored.get(session_id)
                if held is None and self._store.session(session_id) is None:
                    held = 0
                if held is None or not self._store.extend_session(events, events=held):
                    return False
                known.stored[session_id] = held + len(events)
        return True

    def _held(self, session_id: str) -> _Held:
        row = self._store.session(session_id)
        total = 0 if row is None else row.events
        foreign = self._store.count_events(EventFilter(session_id=session_id, types=DELIVERIES))
        return _Held(total, total - foreign)

    def _settle(self, path: Path, known: _File) -> Iterable[Event]:
        """Import the whole file; one that grows afterwards is read from the beginning."""
        known.followed = None
        known.stored.clear()
        readers = self._final_readers
        judged = AlertingStore(self._store, rules=self._rules)
        report = import_file(path, judged, playback=self._playback, readers=readers)
        if report.error:
            self._boundary.warn(str(path), "%s: %s", path, report.error)
            self._failed(path)
        fresh: list[Event] = []
        for outcome in report.outcomes:
            if outcome.appended:
                query = EventFilter(session_id=outcome.session_id, newest_first=True, limit=outcome.appended)
                fresh += [stored.event for stored in reversed(self._store.events(query))]
        self._notify(fresh)
        return fresh

    # -- sessions ---------------------------------------------------------------------------------------------

    def _notify(self, events: Iterable[Event]) -> None:
        """Deliver what is recent: an alert of yesterday helps nobody."""
        if self.notifier is None:
            return
        since = live_since(self._clock())
        young = [
            event
            for event in events
            if isinstance(event.data, AlertFired | AlertResolved) and event.at is not None and event.at >= since
        ]
        if young:
            self.notifier.write(young)

    def _note(self, event: Event) -> WatchedSession | None:
        context, data = event.context, event.data
        seen = self.sessions.get(context.session_id)
        if isinstance(data, PressureMeasured):
            seen = WatchedSession(context.session_id, context.agent, context.model, event.at, data)
        elif isinstance(data, SessionEnded) and seen is not None:
            seen = WatchedSession(seen.session_id, seen.agent, seen.model, event.at, seen.pressure, ended=True)
        else:
            return None
        self.sessions[context.session_id] = seen
        return seen


@dataclass(frozen=True, slots=True)
class _Held:
    """How many events the store holds of a session: in all, and without deliveries."""

    total: int
    own: int


def by_session(events: Iterable[Event]) -> dict[str, list[Event]]:
    """Events by session, each in order."""
    found: dict[str, list[Event]] = {}
    for event in events:
        found.setdefault(event.context.session_id, []).append(event)
    return found
