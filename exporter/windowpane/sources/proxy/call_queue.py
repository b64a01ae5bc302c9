"""The bounded queue of passing calls, and the thread that reads them.

The event loop only queues. Calls are read in bursts, a moment after they passed: parsing, comparing and counting
one takes about half as long as forwarding it, and shares the interpreter with the streams that pass meanwhile.
"""

from __future__ import annotations

from types import TracebackType
from typing import Final, Self

import msgspec

from windowpane.effects.worker import Worker
from windowpane.metrics.internal import CountDrops
from windowpane.sources.proxy.call_messages import CallMessage, EndedCall, SentCall, size_of
from windowpane.sources.proxy.call_reader import CallReader, boundary

MAXIMUM_BYTES: Final = 256 << 20
"""Bytes of the calls that wait to be read."""
URGENT_SHARE: Final = 8
"""The thread waits no longer for more once this part of the bytes is used."""
LINGER_SECONDS: Final = 1.0
"""Time for which a call waits for others."""
CLOSE_SECONDS: Final = 40.0
"""Time to read what waits when the proxy stops."""


class CallQueue:
    """The calls that wait to be read; as a context manager it ends with the block."""

    def __init__(
        self, reader: CallReader, count_drops: CountDrops, *, maximum_bytes: int = MAXIMUM_BYTES
    ) -> None:
        self._reader = reader
        self._count_drops = count_drops
        self._worker: Worker[CallMessage] = Worker(
            "calls", self._read, capacity=maximum_bytes, linger_seconds=LINGER_SECONDS,
            urgent=maximum_bytes // URGENT_SHARE, on_drop=self._drop,
        )  # fmt: skip

    def put(self, message: CallMessage) -> bool:
        """Queue a message; the bytes of one that finds no room are dropped and counted."""
        if self._worker.put(message, weight=size_of(message)):
            return True
        if isinstance(message, EndedCall):  # the call ends, without its reply
            message = msgspec.structs.replace(message, body=())
        if not isinstance(message, SentCall):
            self._worker.put(message, weight=size_of(message), required=True)
        return False

    def flush(self, timeout_seconds: float) -> bool:
        """Return True when everything put so far is read; also False, once, after calls were dropped."""
        return self._worker.flush(timeout_seconds)

    def close(self, timeout_seconds: float = CLOSE_SECONDS) -> None:
        """Read what waits; the rest is dropped and counted."""
        self._worker.close(timeout_seconds)

    def __enter__(self) -> Self:
        """Return the queue."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def _read(self, messages: list[CallMessage]) -> None:
        for message in messages:
            self._reader.read(message)

    def _drop(self, reason: str, messages: int) -> None:
        boundary.warn(reason, "calls pass faster than they are read: some were not read")
        self._count_drops("observer", reason, messages)
