"""The store behind the endpoint: batches of many senders are stored in one transaction.

Each request waits until its batch is durable. While one transaction is written, the batches that arrive meanwhile
gather for the next, so the cost of making it durable is shared as soon as there is any load.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Final, Protocol

from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.effects.worker import Worker
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
    """A batch whose request waits; without a receipt it is not stored."""

    def __init__(self, batch: ReceivedBatch) -> None:
        self.batch = batch
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
        self._worker: Worker[_Waiting] = Worker(
            "group-commit", self._store_group, capacity=capacity_events, batch=GROUP_EVENTS
        )
        self.problem = ""
        """Reason for which the last transaction failed; empty while the store takes events."""

    @property
    def waiting_events(self) -> int:
        """Number of events that wait to be stored."""
        return self._worker.waiting

    def start(self) -> None:
        """Start the thread."""
        self._worker.start()

    async def put(self, batch: ReceivedBatch) -> Receipt:
        """Return when *batch* is stored durably. Raises `BodyError` with 429 or 503 where it is not."""
        waiting = _Waiting(batch)
        weight = max(1, len(batch.events))
        if not self._worker.put(waiting, weight=weight, required=not self._worker.waiting):
            status, problem = 429, "too many events wait to be stored"
            if self._worker.is_closed:
                status, problem = 503, "the server stops"
            raise BodyError(status, problem, ("Retry-After", str(FULL_RETRY_SECONDS)))
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
        self._worker.close(STORE_SECONDS)

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
