"""The store behind the endpoint: batches of many senders are stored in one transaction.

Each request waits until its batch is durable. While one transaction is written, the batches that arrive meanwhile
gather for the next, so the cost of making it durable is shared as soon as there is any load.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.outputs.http.request_bodies import BodyError
from windowpane.store.writes.received import Receipt, ReceivedBatch

CAPACITY_EVENTS: Final = 20_000
"""Events that wait to be stored; a batch beyond them is refused for now."""
GROUP_EVENTS: Final = 1_000
"""Events from which a transaction takes no further batch, so that no request waits long."""
STORE_SECONDS: Final = 30.0
"""Longest wait of a request for the store."""
FULL_RETRY_SECONDS: Final = 1
FAILED_RETRY_SECONDS: Final = 5

_log = logging.getLogger(__name__)


class ReceivingStore(Protocol):
    """The part of a store that receives."""

    def receive(self, batches: Sequence[ReceivedBatch]) -> list[Receipt]:
        """Store batches durably. Raises `StoreError`."""
        ...


class _Waiting:
    """A batch whose request waits."""

    def __init__(self, batch: ReceivedBatch) -> None:
        self.batch = batch
        self.done = threading.Event()
        self.receipt: Receipt | None = None


class GroupCommit:
    """Stores batches on one thread. Thread-safe."""

    def __init__(
        self,
        store: ReceivingStore,
        *,
        capacity_events: int = CAPACITY_EVENTS,
        on_stored: Callable[[float], object] = lambda _: None,
    ) -> None:
        self._store = store
        self._capacity = capacity_events
        self._on_stored = on_stored
        """Called with the seconds of each transaction."""
        self._boundary = ErrorBoundary(_log)
        self._changed = threading.Condition()
        self._waiting: deque[_Waiting] = deque()
        self._events = 0
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="windowpane-group-commit", daemon=True)
        self.problem = ""
        """Reason for which the last transaction failed; empty while the store takes events."""

    @property
    def waiting_events(self) -> int:
        """Number of events that wait to be stored."""
        return self._events

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def put(self, batch: ReceivedBatch) -> Receipt:
        """Return when *batch* is stored durably. Raises `BodyError` with 429 or 503 where it is not."""
        waiting = _Waiting(batch)
        with self._changed:
            if self._closed:
                raise BodyError(503, "the server stops", ("Retry-After", str(FULL_RETRY_SECONDS)))
            if self._events and self._events + len(batch.events) > self._capacity:
                raise BodyError(
                    429, "too many events wait to be stored", ("Retry-After", str(FULL_RETRY_SECONDS))
                )
            self._waiting.append(waiting)
            self._events += len(batch.events)
            self._changed.notify_all()
        stored_in_time = waiting.done.wait(STORE_SECONDS)
        if waiting.receipt is None:
            reason = "the store does not take events" if stored_in_time else "the store takes too long"
            raise BodyError(503, f"{reason}; the server's log has the cause",
                            ("Retry-After", str(FAILED_RETRY_SECONDS)))  # fmt: skip
        return waiting.receipt

    def close(self) -> None:
        """Store what waits, then stop."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(STORE_SECONDS)

    def _run(self) -> None:
        while group := self._next_group():
            started = time.perf_counter()
            try:
                receipts = self._store.receive([one.batch for one in group])
                self.problem = ""
                for one, receipt in zip(group, receipts, strict=True):
                    one.receipt = receipt
            except Exception as error:  # noqa: BLE001  # the senders keep their events and repeat them
                self.problem = str(error) or type(error).__name__
                self._boundary.log_failure("storing received events", error)
            finally:
                with self._changed:
                    self._events -= sum(len(one.batch.events) for one in group)
                for one in group:
                    one.done.set()
            with self._boundary.contain("measuring a transaction"):
                self._on_stored(time.perf_counter() - started)

    def _next_group(self) -> list[_Waiting]:
        """Wait for batches and return those of the next transaction; none after closing."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            group: list[_Waiting] = []
            events = 0
            while self._waiting and events < GROUP_EVENTS:
                group.append(self._waiting.popleft())
                events += len(group[-1].batch.events)
            return group
