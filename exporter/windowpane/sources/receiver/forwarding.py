"""Requests passed on unchanged to another collector, off the request's path.

A bounded queue and one thread: a slow or absent collector costs requests to it, which are counted, and nothing
else.
"""

from __future__ import annotations

import logging
import threading
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Mapping
from email.message import Message
from http.client import HTTPException
from typing import Final, NamedTuple

from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.metrics.internal import CountDrops
from windowpane.outputs.http.routes import PostRequest

CAPACITY_BYTES: Final = 64 * 2**20
"""Bytes of the requests that wait."""
SEND_SECONDS: Final = 10.0
FIRST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 30.0
GIVE_UP_SECONDS: Final = 300.0
"""Time after which a request that was not taken is dropped."""
CLOSE_SECONDS: Final = 5.0
SINK: Final = "otlp_forward"
"""The name by which dropped requests are counted."""
RETRIED: Final = frozenset({408, 429, 502, 503, 504})
"""Statuses after which OTLP sends a request again."""
_OWN_HEADERS: Final = frozenset(
    {
        "host", "connection", "content-length", "transfer-encoding", "keep-alive", "te", "trailer", "upgrade",
        "expect", "proxy-authorization", "proxy-authenticate", "proxy-connection", "accept-encoding",
    }
)  # fmt: skip
"""Headers that belong to one connection, and are not passed on."""

_log = logging.getLogger(__name__)


class _Waiting(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes
    until: float


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Treats a redirect as a failure: following it would turn the POST into a GET and forward the credentials."""

    def redirect_request(self, *_: object) -> None:
        """Follow no redirect."""
        return


class Forwarder:
    """Passes requests on to the collector at *url*.

    *headers* are added to each, such as its credentials. With *own_token* the client's `Authorization` is the
    token of this endpoint and is not passed on.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        own_token: bool,
        count_drops: CountDrops,
        capacity_bytes: int = CAPACITY_BYTES,
        first_pause_seconds: float = FIRST_PAUSE_SECONDS,
    ) -> None:
        self._url = url.rstrip("/")
        self._headers = dict(headers)
        self._own_token = own_token
        self._count_drops = count_drops
        self._capacity = capacity_bytes
        self._first_pause = first_pause_seconds
        self._opener = urllib.request.build_opener(_NoRedirects)
        self._boundary = ErrorBoundary(_log)
        self._changed = threading.Condition()
        self._waiting: deque[_Waiting] = deque()
        self._bytes = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="windowpane-otlp-forward", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def put(self, request: PostRequest) -> None:
        """Queue a request; drops it if the queue is full."""
        headers = _passed_on(request.headers, without_authorization=self._own_token) | self._headers
        waiting = _Waiting(request.path, headers, request.body, time.monotonic() + GIVE_UP_SECONDS)
        with self._changed:
            if self._bytes + len(request.body) > self._capacity:
                self._drop("full")
                return
            self._waiting.append(waiting)
            self._bytes += len(request.body)
            self._changed.notify()

    def close(self, timeout_seconds: float = CLOSE_SECONDS) -> None:
        """Send what waits, for at most *timeout_seconds*, and count the rest as dropped."""
        until = time.monotonic() + timeout_seconds
        with self._changed:
            while self._waiting and (remaining := until - time.monotonic()) > 0:
                self._changed.wait(min(remaining, 0.1))
        self._stop.set()
        with self._changed:
            self._changed.notify()
        self._thread.join(max(0.0, until - time.monotonic()) + 0.1)
        for _ in range(len(self._waiting)):
            self._drop("closed")

    # -- run by the thread ------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stop.is_set():
            with self._changed:
                if not self._waiting:
                    self._changed.wait(1.0)
                waiting = self._waiting[0] if self._waiting else None
            if waiting is None:
                continue
            passed_on = True
            with self._boundary.contain("passing on a request", failed=lambda: self._drop("error")):
                passed_on = self._pass_on(waiting)
            if not passed_on:
                return
            with self._changed:
                self._waiting.popleft()
                self._bytes -= len(waiting.body)
                self._changed.notify_all()

    def _pass_on(self, waiting: _Waiting) -> bool:
        """Send one request until it is taken or its time is over; returns False if the forwarder was closed."""
        pause = self._first_pause
        while True:
            failure = self._send(waiting)
            if failure is None:
                return True
            self._boundary.warn(
                "failed", "a request could not be passed on to another collector: %s", failure.reason
            )
            if not failure.is_temporary:
                self._drop("error")
                return True
            pause = max(pause, failure.retry_after)
            if time.monotonic() + pause > waiting.until:
                self._drop("error")
                return True
            if self._stop.wait(pause):
                return False
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    def _send(self, waiting: _Waiting) -> _Failure | None:
        request = urllib.request.Request(  # noqa: S310  # the configured address
            self._url + waiting.path, data=waiting.body, headers=waiting.headers, method="POST"
        )
        try:
            with self._opener.open(request, timeout=SEND_SECONDS) as response:
                response.read(1 << 16)
        except urllib.error.HTTPError as error:
            with error:
                after = error.headers.get("Retry-After", "")
            seconds = min(float(after), LONGEST_PAUSE_SECONDS) if after.isdecimal() else 0.0
            return _Failure(f"status {error.code}", is_temporary=error.code in RETRIED, retry_after=seconds)
        except (OSError, HTTPException) as error:
            return _Failure(type(error).__name__, is_temporary=True)
        return None

    def _drop(self, reason: str) -> None:
        self._count_drops(SINK, reason, 1)


class _Failure(NamedTuple):
    reason: str
    is_temporary: bool
    retry_after: float = 0.0


def _passed_on(headers: Message, *, without_authorization: bool) -> dict[str, str]:
    """Return the headers of a request that matter to the next collector."""
    excluded = _OWN_HEADERS | ({"authorization"} if without_authorization else set())
    return {name: value for name, value in headers.items() if name.lower() not in excluded}
