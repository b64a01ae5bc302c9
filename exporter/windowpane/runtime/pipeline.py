"""The queue between agents and sinks: putting never blocks, never raises and never waits for I/O.

Agents append lists of events to a deque; one daemon thread takes them out, has alerts judged, and hands them to
every sink. There is no lock that a producer could wait for: deque operations are atomic, and the count of queued
events may be off for a moment but mends itself whenever the queue is empty. So `put` also works in a signal
handler that interrupted another `put`, and in a child process after a fork.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import Final

from windowpane.alerts.engine import AlertEngine
from windowpane.core.events import Event
from windowpane.core.protocols import EventSink
from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.runtime.gaps import Gaps
from windowpane.runtime.lanes import Lane

CAPACITY_EVENTS: Final = 100_000
CHUNK_EVENTS: Final = 2_000
"""Events handed to the sinks at once."""
LINGER_SECONDS: Final = 0.1
"""How long events wait for company, so that the worker seldom competes with the agent."""
CLOSE_SECONDS: Final = 5.0
FORK_SECONDS: Final = 2.0
"""How long a fork waits for a write in progress: SQLite cannot be used in a child forked in the middle of one."""

CountDrops = Callable[[str, str, int], None]
"""Sink (or `queue`), reason and number of events that were lost."""
Listener = Callable[[Event], object]

_log = logging.getLogger("windowpane.runtime.pipeline")
_pipelines: weakref.WeakSet[Pipeline] = weakref.WeakSet()


class _Request:
    """Someone waits until everything put so far is written."""

    def __init__(self, *, stop: bool) -> None:
        self.stop = stop
        self.done = threading.Event()


class Pipeline:
    """A bounded queue with one worker. Share one between all agents of a process."""

    def __init__(
        self,
        sinks: Mapping[str, EventSink],
        *,
        engine: AlertEngine | None = None,
        capacity_events: int = CAPACITY_EVENTS,
        linger_seconds: float = LINGER_SECONDS,
        count_drops: CountDrops | None = None,
    ) -> None:
        self._lanes = [Lane(name, sink) for name, sink in sinks.items()]
        self._engine = engine
        self._capacity = capacity_events
        self._urgent = min(capacity_events // 2, 2 * CHUNK_EVENTS)
        self._linger = linger_seconds
        self._count_drops = count_drops
        self._boundary = ErrorBoundary(_log)
        self._listeners: dict[str, tuple[Listener, ...]] = {}
        self._closed = False
        self._holders: set[int] = set()
        self._reset()
        _pipelines.add(self)
        atexit.register(self.close)

    def _reset(self) -> None:
        """An empty queue without a worker; in a forked child the parent's queue is not ours to write."""
        self._batches: deque[list[Event]] = deque()
        self._signals: SimpleQueue[_Request | None] = SimpleQueue()
        self._worker: threading.Thread | None = None
        self._starting = threading.Lock()
        """Guards against two workers."""
        self._writing = threading.RLock()
        """Held by the worker while it writes, and by a thread that forks."""
        self._accepted = 0
        self._taken = 0
        self._signalled = False
        self._urged = False
        self._gaps = Gaps("queue_full")

    # -- the agent's side -------------------------------------------------------------------------------------

    def put(self, batch: list[Event]) -> None:
        """Queue a list of events, which is ours from here on; drop the whole list when there is no room."""
        try:
            size = len(batch)
            waiting = self._accepted - self._taken
            if waiting + size > self._capacity or self._closed:
                self._drop(batch, size)
                return
            if self._gaps and batch:
                batch = [*self._gaps.tell(batch[0].context.stream_id), *batch]
            self._batches.append(batch)
            self._accepted += len(batch)
            if not self._signalled:
                self._signalled = True
                self._wake()
            elif waiting > self._urgent and not self._urged:
                self._urged = True
                self._signals.put(None)
        except Exception as error:  # noqa: BLE001  # nothing of ours may reach the agent
            self._boundary.log_failure("queueing events", error)

    @property
    def queued_events(self) -> int:
        """Events that wait to be written, about."""
        return max(0, self._accepted - self._taken)

    def listen(self, event_type: str, listener: Listener) -> None:
        """Call *listener* on the worker with every event of a type, after the sinks; exceptions are contained."""
        self._listeners[event_type] = (*self._listeners.get(event_type, ()), listener)

    def flush(self, timeout_seconds: float = CLOSE_SECONDS) -> bool:
        """Wait until everything put so far is written and every sink has flushed; False when time ran out."""
        return self._ask(_Request(stop=False), timeout_seconds)

    def close(self, timeout_seconds: float = CLOSE_SECONDS) -> bool:
        """Write what is queued and stop; what is put afterwards is dropped. The sinks stay open."""
        if self._closed:
            return True
        self._closed = True
        atexit.unregister(self.close)
        written = self._ask(_Request(stop=True), timeout_seconds)
        worker = self._worker
        if worker is not None and written:
            worker.join(timeout_seconds)
        if self._worker is None or not self._worker.is_alive():
            self._drain()
            self._flush_sinks()
        return written

    def before_fork(self) -> None:
        """Let the write in progress finish, and begin no other until the fork is done."""
        if self._writing.acquire(timeout=FORK_SECONDS):
            self._holders.add(threading.get_ident())
        for lane in self._lanes:
            with self._boundary.contain(f"holding sink {lane.name}"):
                lane.tell("before_fork")

    def after_fork_in_parent(self) -> None:
        """Go on writing."""
        for lane in self._lanes:
            with self._boundary.contain(f"releasing sink {lane.name}"):
                lane.tell("after_fork_in_parent")
        if threading.get_ident() in self._holders:
            self._holders.discard(threading.get_ident())
            self._writing.release()

    def after_fork(self) -> None:
        """Start over in a forked child, and let the sinks reopen what must not be shared."""
        self._holders = set()
        self._reset()
        if self._engine is not None:
            self._engine = AlertEngine(self._engine.rules)
        for lane in self._lanes:
            with self._boundary.contain(f"reopening sink {lane.name}"):
                lane.after_fork()

    def _drop(self, batch: list[Event], size: int) -> None:
        if not self._closed:
            self._gaps.add(batch)
        if self._count_drops is not None:
            self._count_drops("queue", "closed" if self._closed else "full", size)

    def _wake(self, request: _Request | None = None) -> None:
        if self._worker is None or not self._worker.is_alive():
            self._start()
        self._signals.put(request)

    def _start(self) -> None:
        if not self._starting.acquire(blocking=False):
            return
        try:
            if self._worker is None or not self._worker.is_alive():
                self._worker = threading.Thread(target=self._run, name="windowpane-pipeline", daemon=True)
                self._worker.start()
        finally:
            self._starting.release()

    def _ask(self, request: _Request, timeout_seconds: float) -> bool:
        if threading.current_thread() is self._worker:
            return False
        try:
            self._wake(request)
        except RuntimeError as error:  # no thread can be started while the interpreter shuts down
            self._boundary.log_failure("starting the worker", error)
            return False
        return request.done.wait(timeout_seconds)

    # -- the worker's side ------------------------------------------------------------------------------------

    def _run(self) -> None:
        signals = self._signals
        try:
            while True:
                request = signals.get()
                if request is None:
                    request = self._wait_for_company(signals)
                self._signalled = self._urged = False
                with self._writing:
                    self._drain()
                    if request is not None:
                        self._flush_sinks()
                if request is not None:
                    request.done.set()
                    if request.stop:
                        return
        finally:
            self._signalled = False

    def _wait_for_company(self, signals: SimpleQueue[_Request | None]) -> _Request | None:
        try:
            return signals.get(timeout=self._linger)
        except Empty:
            return None

    def _drain(self) -> None:
        """Write the batches that are queued now; those put meanwhile have sent a signal of their own."""
        left = len(self._batches)
        while left > 0:
            events: list[Event] = []
            while left > 0 and len(events) < CHUNK_EVENTS:
                batch = self._batches.popleft()
                left -= 1
                self._taken += len(batch)
                events += batch
            self._deliver(events)
        if not self._batches:
            self._accepted = self._taken
        if self._gaps:
            self._tell_gaps()

    def _tell_gaps(self) -> None:
        """Explain drops of streams that may never put again, in the order of their numbers."""
        told = self._gaps.tell_all()
        queued = [event for _ in range(len(self._batches)) for event in self._next_batch()]
        queued += told
        queued.sort(key=lambda event: (event.context.stream_id, event.n))
        self._deliver(queued)
        self._boundary.warn("full", "the queue was full: events of %d streams were dropped", len(told))

    def _next_batch(self) -> list[Event]:
        batch = self._batches.popleft()
        self._taken += len(batch)
        return batch

    def _deliver(self, events: list[Event]) -> None:
        if self._engine is not None:
            events += self._evaluate(self._engine, events)
        for lane in self._lanes:
            failure = lane.write(events)
            if failure is not None:
                self._boundary.log_failure(f"sink {lane.name}", failure.error)
                if self._count_drops is not None:
                    self._count_drops(lane.name, "error", failure.events)
        if self._listeners:
            self._notify(events)

    def _evaluate(self, engine: AlertEngine, events: Sequence[Event]) -> list[Event]:
        alerts: list[Event] = []
        for event in events:
            try:
                alerts += engine.evaluate((event,))
            except Exception as error:  # noqa: BLE001  # one event's fault is not the others'
                self._boundary.log_failure("evaluating alerts", error)
        return alerts

    def _notify(self, events: Sequence[Event]) -> None:
        for event in events:
            for listener in self._listeners.get(event.data.type, ()):
                with self._boundary.contain(f"listener of {event.data.type}"):
                    listener(event)

    def _flush_sinks(self) -> None:
        for lane in self._lanes:
            with self._boundary.contain(f"flushing sink {lane.name}"):
                lane.tell("flush")


def _before_fork() -> None:
    for pipeline in list(_pipelines):
        pipeline.before_fork()


def _after_fork_in_parent() -> None:
    for pipeline in list(_pipelines):
        pipeline.after_fork_in_parent()


def _after_fork_in_child() -> None:
    for pipeline in list(_pipelines):
        pipeline.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
    )
