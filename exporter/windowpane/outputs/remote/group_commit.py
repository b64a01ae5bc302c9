"""The store behind the endpoint: batches of many senders are stored in one transaction.

Each request waits until its batch is durable. While one transaction is written, the batches that arrive meanwhile
gather for the next, so the cost of making it durable is shared as soon as there is any load. Projects take turns:
a batch waits for the transaction being written and for one batch of each other project, however many they send.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Final, Protocol

from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.effects.worker import Poller
from windowpane.outputs.http.project_shares import RoundRobin, SharedCapacity
from windowpane.outputs.http.request_bodies import BodyError
from windowpane.store.writes.received import Receipt, ReceivedBatch

CAPACITY_EVENTS: Final = 40_000
"""Events that wait to be stored, shared by projects; a batch beyond them is refused for now."""
EVENT_BYTES: Final = 4_096
"""Bytes that count as another event, so that the memory of large ones is bounded too."""
GROUP_EVENTS: Final = 1_000
"""Events of a transaction with several batches, so that no request waits long."""
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
    """A batch whose request waits; without a receipt it is not stored."""

    def __init__(self, batch: ReceivedBatch, weight: int) -> None:
        self.batch = batch
        self.weight = weight
        self.receipt: Future[Receipt | None] = Future()


class GroupCommit:
    """Stores batches on one thread."""

    def __init__(
        self,
        store: ReceivingStore,
        *,
        capacity_events: int = CAPACITY_EVENTS,
        on_stored: Callable[[float], object] = lambda _: None,
    ) -> None:
        self._store = store
        self._on_stored = on_stored
        """Called with the seconds of each transaction."""
        self._boundary = ErrorBoundary(_log)
        self._lock = threading.Lock()
        self._capacity = SharedCapacity(capacity_events)
        self._queue = RoundRobin[_Waiting]()
        self._storing = Poller("group-commit", self._store_waiting, settle=self._settle)
        self.problem = ""
        """Reason for which the last transaction failed; empty while the store takes events."""

    @property
    def waiting_events(self) -> int:
        """Number of events that wait to be stored; a large one counts as several."""
        with self._lock:
            return self._capacity.used

    def start(self) -> None:
        """Start the thread."""
        self._storing.start()

    async def put(self, batch: ReceivedBatch, *, size: int = 0) -> Receipt:
        """Return when *batch*, of *size* bytes, is durable. Raises `BodyError` with 429 or 503 otherwise."""
        waiting = _Waiting(batch, max(1, len(batch.events) + len(batch.texts), size // EVENT_BYTES))
        with self._lock:
            refused = self._refused(waiting)
            if refused is None:
                self._queue.put(batch.project, waiting)
        if refused is not None:
            raise refused
        self._storing.wake()
        receipt, reason = None, "the store does not take events"
        try:
            receipt = await asyncio.wait_for(asyncio.wrap_future(waiting.receipt), STORE_SECONDS)
        except TimeoutError:
            reason = "the store takes too long"
        if receipt is None:
            raise BodyError(503, f"{reason}; the server's log has the cause",
                            ("Retry-After", str(FAILED_RETRY_SECONDS)))  # fmt: skip
        return receipt

    def close(self) -> None:
        """Store what waits, then stop."""
        self._storing.close(STORE_SECONDS)

    def _refused(self, waiting: _Waiting) -> BodyError | None:
        """Take the capacity for a batch, always for the first one of a project; otherwise return an error."""
        project, weight, retry = waiting.batch.project, waiting.weight, ("Retry-After", str(FULL_RETRY_SECONDS))
        if self._storing.is_closed:
            return BodyError(503, "the server stops", retry)
        if self._capacity.take(project, weight) or self._capacity.take_first(project, weight):
            return None
        return BodyError(429, "too many events wait to be stored", retry)

    def _store_waiting(self) -> None:
        while group := self._next_group():
            self._store_group(group)
            with self._lock:
                for one in group:
                    self._capacity.give_back(one.batch.project, one.weight)

    def _settle(self, *_: object) -> bool:
        self._store_waiting()
        return True

    def _next_group(self) -> list[_Waiting]:
        """Return the batches of the next transaction: one of each project in turn, until it has enough events."""
        group: list[_Waiting] = []
        weight = 0
        with self._lock:
            while self._queue and (not group or weight + self._queue.next.weight <= GROUP_EVENTS):
                group.append(self._queue.take())
                weight += group[-1].weight
        return group

    def _store_group(self, group: Sequence[_Waiting]) -> None:
        started = time.perf_counter()
        receipts: Sequence[Receipt | None] = [None] * len(group)
        try:
            receipts = self._store.receive([one.batch for one in group])
            self.problem = ""
        except Exception as error:  # noqa: BLE001  # the senders keep their events and repeat them
            self.problem = str(error) or type(error).__name__
            self._boundary.log_failure("storing received events", error)
        for one, receipt in zip(group, receipts, strict=True):
            if one.receipt.set_running_or_notify_cancel():  # else its request has stopped waiting
                one.receipt.set_result(receipt)
        with self._boundary.contain("measuring a transaction"):
            self._on_stored(time.perf_counter() - started)
