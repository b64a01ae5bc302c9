"""The pieces of a streamed reply, retained as the agent reads them and read when the reply has ended."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from windowpane.models.wire.calls import Shape
from windowpane.models.wire.replies import Reply
from windowpane.sources.clients.bodies import MAXIMUM_BODY_BYTES, UnreadableReplyError, stopped
from windowpane.sources.clients.calls import WatchedCall, boundary

P = TypeVar("P")
Pass = TypeVar("Pass")


class StreamedReply(Generic[P]):
    """The pieces of one reply. It ends with the stream, or when no one can read more of it."""

    def __init__(self, call: WatchedCall, read: Callable[[list[P], Shape], Reply]) -> None:
        self._call = call
        self._read = read
        self._pieces: list[P] = []
        self._bytes = 0
        call.before_return()

    def add(self, piece: P, size: int) -> None:
        """Retain a piece that the agent gets."""
        self._bytes += size
        if self._bytes <= MAXIMUM_BODY_BYTES:
            self._pieces.append(piece)
        else:
            self._pieces.clear()

    def end(self) -> None:
        """Record the reply as far as its pieces have come; a second end is ignored."""
        pieces, self._pieces = self._pieces, []
        size, read = self._bytes, self._read

        def read_pieces(pieces: list[P], shape: Shape) -> Reply:
            if size > MAXIMUM_BODY_BYTES:
                raise UnreadableReplyError(f"its {size:,} bytes are more than {MAXIMUM_BODY_BYTES:,}")
            return read(pieces, shape) if pieces else Reply()

        self._call.record_reply(pieces, read_pieces)

    def fail(self, error: BaseException) -> None:
        """Record that reading raised *error*."""
        self._call.record_failure(error)

    def __del__(self) -> None:
        self.end()

    def iterate(self, source: Iterator[Pass], retain: Callable[[Pass], None]) -> Generator[Pass, None, None]:
        """Iterate over *source*, and pass each item to *retain*."""
        with self._recorded():
            for item in source:
                with boundary.contain("observing a piece of a reply"):
                    retain(item)
                yield item

    async def aiterate(
        self, source: AsyncIterator[Pass], retain: Callable[[Pass], None]
    ) -> AsyncGenerator[Pass, None]:
        """Iterate over *source*, and pass each item to *retain*."""
        with self._recorded():
            async for item in source:
                with boundary.contain("observing a piece of a reply"):
                    retain(item)
                yield item

    @contextmanager
    def _recorded(self) -> Iterator[None]:
        """Record the end of an iteration, whichever it is."""
        try:
            yield
        except stopped():  # the agent stopped reading
            self.end()
            raise
        except BaseException as error:
            self.fail(error)
            raise
        self.end()
