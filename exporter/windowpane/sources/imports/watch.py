"""Imports transcripts while they are being written: `windowpane watch` without its terminal.

Each poll imports the changes since the last one: of a JSON Lines file only the new lines, of any other the whole
file. A file without a write for two minutes is imported as finished, which closes its open end. Alerts are
evaluated and stored as by an import; those of the last 15 minutes are delivered as well.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final

from windowpane.alerts.delivery.notifier import Notifier
from windowpane.alerts.engine import AlertEngine
from windowpane.alerts.rules import Rule, configured
from windowpane.config.schema import Config
from windowpane.core.events import (
    ANNOTATIONS,
    AlertFired,
    AlertResolved,
    Event,
    PressureMeasured,
    SessionEnded,
    SessionRederived,
    SessionStarted,
)
from windowpane.core.times import live_since
from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.exceptions import OtherSessionError, SourceError
from windowpane.sources.imports.follow import FollowedFile, LineReader, Rewritten
from windowpane.sources.imports.importer import IN_MEMORY_BYTES, import_file
from windowpane.sources.imports.known_files import KnownFiles, RestingFile, WatchedFile
from windowpane.sources.imports.pipeline import AlertingStore, playback_settings
from windowpane.sources.imports.remembered_files import RememberedFiles
from windowpane.sources.installed_agents.settings import Environment, LocalSettings
from windowpane.sources.transcripts.discovery import all_readers, reader_for, stamp, unreadable
from windowpane.sources.transcripts.playback_settings import PlaybackSettings
from windowpane.sources.transcripts.reader import Reader
from windowpane.sources.transcripts.transcript import IDLE_SECONDS
from windowpane.store.filters import EventFilter
from windowpane.store.store import Store

DISCOVER_SECONDS: Final = 5.0
"""Time between two searches of the folders for new files."""
RESTED_SECONDS: Final = 10.0
"""Time between two looks at a file that did not change for a while."""
LOOKED_AT_ONCE: Final = 500
"""Resting files that a poll looks at in any case."""
RETRY_SECONDS: Final = 60.0
"""Time until a file whose events could not be read or stored is read again from its start, doubled each time."""
LONGEST_RETRY_SECONDS: Final = 900.0
ADDED_BY_OTHERS: Final = ("notification.delivered", "notification.failed", *ANNOTATIONS)
_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WatchedSession:
    """The latest state of one watched session."""

    session_id: str
    agent: str
    model: str
    at: float | None
    pressure: PressureMeasured
    ended: bool = False

    def is_live(self, now: float) -> bool:
        """Return whether it has not ended and had an event within the last 15 minutes."""
        return not self.ended and self.at is not None and self.at >= live_since(now)


class Watcher:
    """Follows files. One thread calls `poll`; the notifier's threads may report deliveries at the same time."""

    def __init__(
        self,
        paths: Sequence[Path],
        store: Store,
        *,
        playback: PlaybackSettings,
        since_seconds: float,
        rules: Sequence[Rule] | None = None,
        clock: Callable[[], float] = time.time,
        longest_poll_seconds: float = math.inf,
    ) -> None:
        """Files without a change for *since_seconds* are skipped until they change.

        *rules* are the alert rules, None for the defaults. After *longest_poll_seconds* a poll ends, and the next
        one resumes it.
        """
        self._paths = tuple(paths)
        self._store = store
        self._playback = playback
        self._readers = all_readers(complete=False)
        """They defer the open end of a file."""
        self._final_readers = all_readers()
        self._rules = rules
        self._since = clock() - since_seconds
        self._clock = clock
        self._memory = RememberedFiles(store, playback, rules=rules, clock=clock)
        self._boundary = ErrorBoundary(_log, clock=clock)
        self._files: dict[Path, WatchedFile] = {}
        self._search_paths = KnownFiles(self._paths)
        self._listed: list[Path] = []
        self._active: list[Path] = []
        """Files that are looked at in every poll."""
        self._resting: deque[RestingFile] = deque()
        """Files that did not change for a while, the one that was not looked at for longest first."""
        self._unreadable: dict[Path, str] = {}
        self._searched_at = -DISCOVER_SECONDS
        self._longest_poll_seconds = longest_poll_seconds
        self._resume_at = 0
        self._polled_at = clock()
        self.is_behind = False
        """The last poll ended before it had looked at all files."""
        self._appending = threading.Lock()
        """Guards the counts of stored events while events are appended."""
        self.notifier: Notifier | None = None
        """Delivers recent alerts, if set."""
        self.sessions: dict[str, WatchedSession] = {}
        """The watched sessions, by id."""

    @classmethod
    def configured(
        cls,
        paths: Sequence[Path],
        store: Store,
        config: Config,
        *,
        since_seconds: float,
        limit_tokens: int | None = None,
        environment: Environment | None = None,
        longest_poll_seconds: float = math.inf,
    ) -> Watcher:
        """Return a watcher of live sessions with the settings and alert rules of *config*.

        *environment* holds the variables of the agent's process, where they are known.
        """
        return cls(
            paths,
            store,
            playback=playback_settings(
                store.digester(),
                limit_tokens=limit_tokens,
                config=config,
                history=store.earlier_sessions,
                stored_projects=store.stored_project,
                agent_settings=LocalSettings(environment or {}),
            ),
            since_seconds=since_seconds,
            rules=configured(**config.alert_settings()),
            longest_poll_seconds=longest_poll_seconds,
        )

    def poll(self) -> list[WatchedSession]:
        """Import the changes; returns the sessions that changed, each once. Never raises for a bad file.

        The first poll imports the latest files first; one that ran out of time is resumed by the next.
        """
        self._search()
        changed: dict[str, WatchedSession] = {}
        due = self._due()
        ends_at = time.monotonic() + self._longest_poll_seconds
        for number, path in enumerate(due):
            if number and time.monotonic() > ends_at:
                self._resume_at, self.is_behind = (self._resume_at + number) % max(1, len(self._active)), True
                break
            with self._boundary.contain(f"following {path.name}", failed=partial(self._failed, path)):
                for event in self._visit(path):
                    session = self._update(event)
                    if session is not None:
                        changed[session.session_id] = session
        else:
            self._resume_at, self.is_behind = 0, False
            self._rest()
        return list(changed.values())

    def record_deliveries(self, batch: list[Event]) -> None:
        """Store the outcomes of deliveries; the notifier's `emit`."""
        with self._appending, self._boundary.contain("storing a delivery"):
            self._store.append(batch)
            for event in batch:
                for file in self._files.values():
                    if event.context.session_id in file.stored:
                        file.stored[event.context.session_id] += 1

    # -- files ------------------------------------------------------------------------------------------------

    def _search(self) -> None:
        """Search the folders from time to time, and divide the files into active and resting ones."""
        now = self._clock()
        if now - self._searched_at < (RETRY_SECONDS if self.is_behind else DISCOVER_SECONDS):
            return
        self._searched_at = now
        listed = self._search_paths.search(now)
        if listed is not self._listed or self._unreadable:
            self._listed = listed
            self._report_unreadable()
            self._files = {path: file for path in listed if (file := self._files.get(path)) is not None}
            resting = {one.path for one in self._resting}
            self._active = [path for path in listed if path not in resting and path not in self._unreadable]
            self._resting = deque(one for one in self._resting if one.path in self._files)
            self._active.sort(key=self._age)

    def _rest(self) -> None:
        """Let the files rest that did not change for a while."""
        now = self._clock()
        active = []
        for path in self._active:
            file = self._files.get(path)
            if file is not None and file.is_resting(path, now):
                self._resting.append(RestingFile(path, str(path), file.stamp))
            else:
                active.append(path)
        self._active = active

    def _report_unreadable(self) -> None:
        """Log the files that cannot be read, each once."""
        reasons = {}
        for path in self._listed:
            if path not in self._files and (reason := unreadable(path)):
                reasons[path] = reason
                if path not in self._unreadable:
                    _log.warning("%s: skipped: %s", path, reason)
        self._unreadable = reasons

    def _age(self, path: Path) -> float:
        """Return the sort key of an active file: new ones first, the latest change first."""
        if path in self._files:
            return 0.0
        try:
            return -path.stat().st_mtime
        except OSError:
            return 0.0

    def _due(self) -> list[Path]:
        """Return the files to look at: the active ones, and those of the resting ones in turn that changed."""
        turned = self._active[self._resume_at :] + self._active[: self._resume_at]
        resting = self._resting
        now = self._clock()
        elapsed, self._polled_at = now - self._polled_at, now
        share = max(LOOKED_AT_ONCE, math.ceil(len(resting) * elapsed / RESTED_SECONDS))
        for _ in range(min(share, len(resting))):
            one = resting[0]
            resting.rotate(-1)
            try:
                status = os.stat(one.name)  # noqa: PTH116  # the watch of old files is mostly this call
            except OSError:
                self._files.pop(one.path, None)
                continue
            if (status.st_mtime_ns, status.st_size) != one.stamp:
                resting.pop()
                self._active.append(one.path)
                turned.append(one.path)
        return turned

    def _visit(self, path: Path) -> Iterable[Event]:
        try:
            latest = stamp(path, now=self._clock())
        except OSError:
            self._files.pop(path, None)
            return ()
        file = self._files.setdefault(path, WatchedFile())
        changed_at = latest.mtime_ns / 1e9
        is_still = self._clock() - changed_at >= IDLE_SECONDS
        if file.retry_at:
            if self._clock() < file.retry_at:
                return ()
            file.retry_at = 0.0
        elif latest == file.stamp and (is_still or file.followed is None or not file.followed.awaits_other_file):
            is_due = is_still and (file.followed is not None or file.is_open)
            return self._settle(path, file, is_still=True) if is_due else ()
        file.stamp = latest
        if changed_at < self._since:
            return ()
        events = self._changed(path, file, is_still=is_still)
        if not file.retry_at:
            file.failures = 0
        return events

    def _failed(self, path: Path) -> None:
        """Read a file again later, since its events may not have been stored."""
        file = self._files.get(path)
        if file is not None:
            file.followed = None
            file.stored.clear()
            file.imported.clear()
            file.retry_at = self._clock() + min(RETRY_SECONDS * 2**file.failures, LONGEST_RETRY_SECONDS)
            file.failures += 1

    def _changed(self, path: Path, file: WatchedFile, *, is_still: bool) -> Iterable[Event]:
        if file.reader is None:
            file.reader = self._reader(path)
        if file.reader is None:
            return ()
        if isinstance(file.reader, LineReader) and not is_still:
            return self._tail(path, file, file.reader)
        return self._settle(path, file, is_still=is_still)

    def _reader(self, path: Path) -> Reader | None:
        try:
            return reader_for(path, self._readers)
        except SourceError:
            return None  # too short so far, or of another format; tried again when it changes

    def _tail(self, path: Path, file: WatchedFile, reader: LineReader) -> Iterable[Event]:
        if file.followed is None:
            return self._restart(path, file, reader)
        assert file.engine is not None, "made with the state of the followed file"
        latest = _LatestEvents(live_since(self._clock()))
        try:
            for piece in file.followed.pieces():
                fresh = list(file.engine.interleave(piece))
                if not self._extend(file, fresh):
                    return self._restart(path, file, reader)
                latest.add(fresh)
        except Rewritten:
            return self._restart(path, file, reader)
        self._notify(latest.alerts)
        return latest.states.values()

    def _restart(self, path: Path, file: WatchedFile, reader: LineReader) -> Iterable[Event]:
        """Read a file from its start and store the events that the store does not hold."""
        playback = replace(self._playback, distinct_ids=file.distinct_ids)
        file.followed, file.engine = FollowedFile(path, reader, playback), AlertEngine(self._rules)
        file.stored.clear()
        reading = _FirstReading(
            _interleaved(file.followed, file.engine),
            _LatestEvents(live_since(self._clock())),
            holds_others=stamp(path).size <= IN_MEMORY_BYTES,
        )
        for session_id in reading.sessions():
            again = partial(self._read_again, session_id, path, reader, playback, file.followed)
            with self._appending:
                try:
                    self._store.import_session(partial(reading.events_of, session_id, again))
                except OtherSessionError as error:
                    _log.warning("%s: %s: stored as %s", path, error, error.distinct_id)
                    file.distinct_ids[error.session_id] = error.distinct_id
                    break
                reading.finish()
                stored = self._stored(session_id)
                if stored.of_the_recording == reading.counts[session_id] and self._derived(session_id):
                    file.stored[session_id] = stored.total
        else:
            self._notify(reading.latest.alerts)
            return reading.latest.states.values()
        return self._restart(path, file, reader)

    def _read_again(
        self, session_id: str, path: Path, reader: LineReader, playback: PlaybackSettings, read: FollowedFile
    ) -> Iterator[Event]:
        """Yield the events of one session of a file, as far as it was *read*."""
        followed = FollowedFile(path, reader, playback)
        return _of_session(session_id, _interleaved(followed, AlertEngine(self._rules), read.offset))

    def _extend(self, file: WatchedFile, fresh: list[Event]) -> bool:
        """Append new events; returns False where the store no longer holds the events appended before."""
        for session_id, events in by_session(fresh).items():
            with self._appending:
                stored = file.stored.get(session_id)
                if stored is None and self._store.session(session_id) is None:
                    stored = 0
                if stored is None or not self._store.extend_session(events, events=stored):
                    return False
                file.stored[session_id] = stored + len(events)
        return True

    def _stored(self, session_id: str) -> _StoredEvents:
        row = self._store.session(session_id)
        total = 0 if row is None else row.events
        foreign = self._store.count_events(EventFilter(session_id=session_id, types=ADDED_BY_OTHERS))
        return _StoredEvents(total, total - foreign)

    def _derived(self, session_id: str) -> bool:
        """Return whether this release derived all stored events; else its events have other numbers there."""
        types = (SessionStarted.type, SessionRederived.type)
        last = self._store.events(EventFilter(session_id=session_id, types=types, newest_first=True, limit=1))
        data = last[0].event.data if last else None
        return isinstance(data, SessionStarted) and data.derived_by == self._playback.release

    def _settle(self, path: Path, file: WatchedFile, *, is_still: bool) -> Iterable[Event]:
        """Import the whole file; one that grows afterwards is read from its start."""
        file.followed, file.is_open = None, not is_still
        file.stored.clear()
        readers = self._final_readers
        judged = AlertingStore(self._store, rules=self._rules)
        report = import_file(
            path,
            judged,
            playback=self._playback,
            readers=readers,
            memory=self._memory,
            imported=file.imported,
            since=self._since,
        )
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
        """Deliver the alerts among *events* that are recent enough to be acted on."""
        if self.notifier is None:
            return
        since = live_since(self._clock())
        if recent := [event for event in events if _is_live_alert(event, since)]:
            self.notifier.write(recent)

    def _update(self, event: Event) -> WatchedSession | None:
        context, data = event.context, event.data
        session = self.sessions.get(context.session_id)
        if isinstance(data, PressureMeasured):
            session = WatchedSession(context.session_id, context.agent, context.model, event.at, data)
        elif isinstance(data, SessionEnded) and session is not None:
            session = replace(session, at=event.at, ended=True)
        else:
            return None
        self.sessions[context.session_id] = session
        return session


@dataclass(frozen=True, slots=True)
class _StoredEvents:
    """The number of a session's stored events."""

    total: int
    of_the_recording: int


class _LatestEvents:
    """The part of a file's events that a watcher shows or delivers."""

    def __init__(self, since: float) -> None:
        """Alerts before *since* are not delivered."""
        self._since = since
        self.states: dict[tuple[str, type], Event] = {}
        """The last measurement and the end of each session, in their order."""
        self.alerts: list[Event] = []

    def add(self, events: Iterable[Event]) -> None:
        """Add events in order."""
        for event in events:
            if isinstance(event.data, PressureMeasured | SessionEnded):
                key = event.context.session_id, type(event.data)
                self.states.pop(key, None)
                self.states[key] = event
            elif _is_live_alert(event, self._since):
                self.alerts.append(event)


class _FirstReading:
    """A reading of a file from its start, in which the events of its first session are stored as they are made.

    Those of further sessions are held meanwhile, or read again where the file is large.
    """

    def __init__(self, events: Iterator[Event], latest: _LatestEvents, *, holds_others: bool) -> None:
        self.latest = latest
        self.counts: Counter[str] = Counter()
        """Number of events by session, as far as the file is read."""
        self._events = events
        self._first = ""
        self._others: dict[str, list[Event]] | None = {} if holds_others else None

    def sessions(self) -> Iterator[str]:
        """Yield the ids of the sessions: the first at once, and the others once everything is read."""
        first = next(self._events, None)
        if first is not None:
            self._events, self._first = chain((first,), self._events), first.context.session_id
            yield self._first
            self.finish()
            yield from [session_id for session_id in self.counts if session_id != self._first]

    def events_of(self, session_id: str, again: Callable[[], Iterable[Event]]) -> Iterable[Event]:
        """Return the events of a session; *again* makes those that are not held a further time."""
        if not self.counts:
            return self._read()
        self.finish()
        return (self._others or {}).get(session_id) or again()

    def finish(self) -> None:
        """Read the rest."""
        deque(self._read(), maxlen=0)

    def _read(self) -> Iterator[Event]:
        for event in self._events:
            session_id = event.context.session_id
            self.counts[session_id] += 1
            self.latest.add((event,))
            if session_id == self._first:
                yield event
            elif self._others is not None:
                self._others.setdefault(session_id, []).append(event)


def _is_live_alert(event: Event, since: float) -> bool:
    is_alert = isinstance(event.data, AlertFired | AlertResolved)
    return is_alert and event.at is not None and event.at >= since


def _interleaved(followed: FollowedFile, engine: AlertEngine, until: float = math.inf) -> Iterator[Event]:
    """Yield the events of a file from its start, with their alerts."""
    return engine.interleave(chain.from_iterable(followed.pieces(until)))


def _of_session(session_id: str, events: Iterable[Event]) -> Iterator[Event]:
    return (event for event in events if event.context.session_id == session_id)


def by_session(events: Iterable[Event]) -> dict[str, list[Event]]:
    """Group events by session, each in order."""
    sessions: dict[str, list[Event]] = {}
    for event in events:
        sessions.setdefault(event.context.session_id, []).append(event)
    return sessions
