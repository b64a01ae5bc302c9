"""The sink of a process's event store, and the store that is opened on another thread.

In a forked child it starts over at the first event: a connection or a lock of the parent is never used.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from windowpane.core.events import Event, SessionEnded, SessionStarted
from windowpane.core.protocols import Digester
from windowpane.core.times import is_live
from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.exceptions import EventsRefusedError, StoreError, StoreReplacedError, WindowpaneError
from windowpane.metrics.internal import InternalMetrics
from windowpane.outputs.runtime.current import process_digester

if TYPE_CHECKING:
    from pathlib import Path

    from windowpane.store.store import Store
    from windowpane.store.writes.spool import Spool

_log = logging.getLogger("windowpane")


class StoreSink:
    """Writes events to the store, which is opened again when it could not be opened or its file was replaced.

    While there is no store the other sinks work, and the events wait in the pipeline; what waits at the end is
    spooled. A store that is opened takes in what earlier processes have spooled.
    """

    atomic = True
    unsent_events = 0

    def __init__(
        self,
        open_store: Callable[[], Store],
        spool: Spool,
        internal: InternalMetrics,
        *,
        start_seconds: float | None = None,
    ) -> None:
        """Open the store; one that takes longer than *start_seconds* is waited for by the first write."""
        self._open_store = open_store
        self._spool = spool
        self._internal = internal
        self._inherited: list[Store] = []
        self._process = os.getpid()
        self._boundary = ErrorBoundary(_log)
        self._store: Store | None = None
        self._closed = False
        self._has_untaken = False
        self.problem = ""
        """Reason for which the last attempt to write failed; empty while the store takes events."""
        self.on_opened: list[Callable[[], object]] = []
        """Called when another file was opened than at the start."""
        self.on_replaced: list[Callable[[], object]] = []
        """Called before the file is opened that has replaced another: nothing else may hold the old one open."""
        self._opening: StoreOpening | None = None
        try:
            if start_seconds is None:
                self._store = self._opened()
            else:
                self._open_within(start_seconds)
        except WindowpaneError as error:
            self._record_problem(error)
            _log.error("events are not stored for now: %s", error)

    @property
    def available(self) -> bool:
        """True while the store takes events."""
        return self._store is not None and not self.problem

    @property
    def store(self) -> Store | None:
        """The store of this process; opened again in a forked child. None if it could not be opened."""
        if self._process != os.getpid():
            self._inherited += [] if self._store is None else [self._store]
            self._store, self._opening, self._process = None, None, os.getpid()
            with self._boundary.contain("opening the store"):
                self._store = self._opened()
        return self._store

    @property
    def digest(self) -> Digester:
        """The store's digester; without a store, one for this process alone."""
        store = self.store
        return process_digester() if store is None else store.digester()

    def write(self, batch: Sequence[Event]) -> None:
        """Append a batch, all or none. Raises `StoreError`."""
        started = time.perf_counter()
        with self._recorded():
            store = self._ready()
            streams = _started_streams(batch)
            shared: set[str] = set()
            if streams:
                with self._boundary.contain("reading whether a session has another owner"):
                    shared |= _live_sessions(store, streams)
            store.append(batch)
            ended = [event.context.session_id for event in batch if isinstance(event.data, SessionEnded)]
            with self._boundary.contain("claiming sessions for this process"):
                shared.update(store.claim_sessions(streams))
                if ended:
                    store.release_sessions(ended)
            self._warn_of_other_owners(shared)
        self._internal.record_store_write(time.perf_counter() - started)

    def flush(self) -> None:
        """Return when everything written survives a power cut. Raises `StoreError`."""
        with self._recorded():
            store = self._ready()
            store.flush()
        if self._has_untaken:
            self._take_in_all(store)

    def spool(self, events: Sequence[Event]) -> int:
        """Write *events* to a file beside the store, for the next process; return how many fit."""
        store = self._store
        if store is not None:
            store.refuse_events()
        try:
            written = self._spool.write(events)
        except StoreError:
            if store is not None:
                store.refuse_events(refuse=False)
            raise
        _log.warning("%d events could not be stored; they wait in a file beside the store", written)
        return written

    def close(self) -> None:
        """Flush and close the store."""
        self._closed = True
        self.release()

    def release(self) -> None:
        """Flush and close the store; the next write opens it again."""
        if self._process != os.getpid():  # the parent's, which this process has not used
            return
        store, self._store = self._store, None
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.discard()
        if store is not None:
            store.close()

    def _open_within(self, seconds: float) -> None:
        """Open the store on another thread. Raises `StoreError` where that takes longer."""
        opening = StoreOpening(self._opened)
        self._store = opening.wait(seconds)
        if self._store is None:
            self._opening = opening
            raise StoreError(f"the store does not answer within {seconds:g} s")

    def _ready(self) -> Store:
        """Return the open store. Raises `StoreError` if it still cannot be opened."""
        store = self.store
        if store is None:
            if self._closed:
                raise StoreError("the store is closed")
            opening, self._opening = self._opening, None
            store = None if opening is None else opening.wait()
            self._store = store = self._opened() if store is None else store
            self._announce()
        return store

    def _warn_of_other_owners(self, shared: Iterable[str]) -> None:
        """Warn of sessions that have another owner: their events join those of the other."""
        for session_id in shared:
            self._boundary.warn(
                "shared session",
                "session %s is recorded by another process or window, which has not ended it; both are "
                "stored, each in its own stream, and their windows are mixed on its page: give each its own "
                "session_id",
                session_id,
            )

    def _opened(self) -> Store:
        store = self._open_store()
        self._take_in_all(store)
        return store

    def _take_in_all(self, store: Store) -> None:
        """Store what earlier processes have spooled; what the store does not take is tried again at a flush."""
        self._has_untaken = True
        with self._boundary.contain("taking in spooled events"):
            for path in self._spool.files():
                self._take_in(store, path)
            self._has_untaken = False

    def _take_in(self, store: Store, path: Path) -> None:
        spooled = self._spool.read(path)
        if spooled is None:
            return
        try:
            stored = store.take_in(spooled)
        except EventsRefusedError as error:
            self._spool.set_aside(path, str(error))
            return
        self._spool.remove(path)
        _log.info("%d spooled events of an earlier process were stored", stored)

    def _announce(self) -> None:
        for callback in self.on_opened:
            with self._boundary.contain("after opening the store"):
                callback()

    @contextmanager
    def _recorded(self) -> Iterator[None]:
        """Record whether the store takes events; errors about the events themselves do not count."""
        try:
            yield
        except StoreReplacedError:
            for callback in self.on_replaced:
                with self._boundary.contain("releasing the old file"):
                    callback()
            self._reopen()
            raise
        except EventsRefusedError:
            raise
        except StoreError as error:
            self._record_problem(error)
            raise
        self.problem = ""

    def _reopen(self) -> None:
        with self._boundary.contain("opening the new file"):
            store = self.store
            if store is not None:
                store.flush()  # opens it
                self._announce()

    def _record_problem(self, error: WindowpaneError) -> None:
        self.problem = type(error).__name__ if not str(error) else str(error)


class StoreOpening:
    """One attempt to open a store, which starts at once and continues until it succeeds or fails."""

    def __init__(self, open_store: Callable[[], Store]) -> None:
        self._open_store = open_store
        self._lock = threading.Lock()  # guards the three below
        self._store: Store | None = None
        self._error: BaseException | None = None
        self._is_discarded = False
        self._thread = threading.Thread(target=self._open, name="windowpane-opening", daemon=True)
        self._thread.start()

    def wait(self, seconds: float | None = None) -> Store | None:
        """Return the store, or None if it is not open within *seconds*. Raises what the attempt raised."""
        self._thread.join(seconds)
        with self._lock:
            if self._error is not None:
                raise self._error
            return self._store

    def discard(self) -> None:
        """Have the store closed, now or as soon as it is open."""
        with self._lock:
            self._is_discarded = True
            store, self._store = self._store, None
        if store is not None:
            store.close()

    def _open(self) -> None:
        try:
            store = self._open_store()
        except BaseException as error:  # noqa: BLE001  # raised where the result is awaited
            with self._lock:
                self._error = error
            return
        with self._lock:
            if not self._is_discarded:
                self._store = store
                return
        store.close()


def _started_streams(batch: Sequence[Event]) -> dict[str, str]:
    """Return the live sessions that start in *batch*, each with the stream that records it."""
    return {
        event.context.session_id: event.context.stream_id
        for event in batch
        if isinstance(event.data, SessionStarted) and event.context.source == "live"
    }


def _live_sessions(store: Store, session_ids: Iterable[str]) -> set[str]:
    """Return those of the sessions that are stored and live already."""
    rows = (store.session(session_id) for session_id in session_ids)
    return {row.session_id for row in rows if row is not None and is_live(row, time.time())}
