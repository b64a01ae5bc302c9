"""The handler of OTLP/HTTP requests: decode, queue, pass on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from windowpane.receiver.forwarding import Forwarder
from windowpane.receiver.intake import Intake
from windowpane.receiver.requests import SIGNALS, accepted, decode, encoding_of, refused
from windowpane.serve.request_bodies import RETRY_AFTER, BodyError
from windowpane.serve.routes import PostRequest, Response

DEFAULT_PORT: Final = 4318
"""The port of OTLP/HTTP."""
DECODED_AT_ONCE: Final = 2
"""Requests decoded at once: each may take many times its size in memory."""
DECODE_SECONDS: Final = 5.0
"""Time that a request waits for its turn."""


class OtlpEndpoint:
    """Answers requests. Thread-safe."""

    def __init__(self, intake: Intake, *, forwarder: Forwarder | None = None) -> None:
        self._intake = intake
        self._forwarder = forwarder
        self._decoding = threading.BoundedSemaphore(DECODED_AT_ONCE)

    @property
    def posts(self) -> dict[str, Callable[[PostRequest], Response]]:
        """The paths that it answers."""
        return dict.fromkeys(SIGNALS, self.respond)

    def respond(self, request: PostRequest) -> Response:
        """Take a request, or refuse it with the reason."""
        encoding = ""
        try:
            encoding = encoding_of(request)
            return self._take(request, encoding)
        except BodyError as error:
            return refused(error, encoding)

    def _take(self, request: PostRequest, encoding: str) -> Response:
        if not self._decoding.acquire(timeout=DECODE_SECONDS):
            raise BodyError(429, "too many requests are being read; try again", RETRY_AFTER)
        try:
            decoded = decode(request, encoding)
        finally:
            self._decoding.release()
        if not self._intake.put(decoded.telemetry, decoded.size):
            raise BodyError(429, "the queue is full; try again", RETRY_AFTER)
        if self._forwarder is not None:
            self._forwarder.put(request)
        return accepted(SIGNALS[request.path], encoding, decoded.telemetry)
