"""Requests passed on unchanged to another collector, off the request's path.

A bounded queue and one thread: a slow or absent collector costs requests to it, which are counted, and nothing
else.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.effects.http_client import HttpClient, UnreachableError
from windowpane.effects.worker import LONGEST_PAUSE_SECONDS, RetryLaterError, Worker
from windowpane.metrics.internal import CountDrops
from windowpane.outputs.http.routes import Headers, PostRequest

CAPACITY_BYTES: Final = 64 * 2**20
"""Bytes of the requests that wait."""
SEND_SECONDS: Final = 10.0
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
    ) -> None:
        self._url = url.rstrip("/")
        self._headers = dict(headers)
        self._own_token = own_token
        self._count_drops = count_drops
        self._client = HttpClient()
        self._boundary = ErrorBoundary(_log)
        self._worker: Worker[_Waiting] = Worker(
            "otlp-forward",
            self._pass_on,
            capacity=capacity_bytes,
            on_drop=self._drop,
        )

    def start(self) -> None:
        """Start the thread."""
        self._worker.start()

    def put(self, request: PostRequest) -> None:
        """Queue a request; drops it if the queue is full."""
        headers = _passed_on(request.headers, without_authorization=self._own_token) | self._headers
        until = time.monotonic() + GIVE_UP_SECONDS
        self._worker.put(_Waiting(request.path, headers, request.body, until), weight=max(1, len(request.body)))

    def close(self, timeout_seconds: float = CLOSE_SECONDS) -> None:
        """Send what waits, for at most *timeout_seconds*, and count the rest as dropped."""
        self._worker.close(timeout_seconds)

    # -- run by the thread ------------------------------------------------------------------------------------

    def _pass_on(self, requests: Iterable[_Waiting]) -> None:
        """Send each request, or have it sent again later until its time is over."""
        for waiting in requests:
            after_seconds, is_temporary = 0.0, True
            try:
                response = self._client.post(
                    self._url + waiting.path, waiting.body, waiting.headers, timeout_seconds=SEND_SECONDS
                )
            except UnreachableError as error:
                reason = str(error)
            else:
                if response.is_success:
                    continue
                reason, is_temporary = f"status {response.status}", response.status in RETRIED
                after_seconds = min(response.retry_after_seconds, LONGEST_PAUSE_SECONDS)
            self._boundary.warn("failed", "a request could not be passed on to another collector: %s", reason)
            if is_temporary and time.monotonic() < waiting.until:
                raise RetryLaterError(reason, after_seconds=after_seconds)
            self._drop("error")

    def _drop(self, reason: str, requests: int = 1) -> None:
        self._count_drops(SINK, reason, requests)


def _passed_on(headers: Headers, *, without_authorization: bool) -> dict[str, str]:
    """Return the headers of a request that matter to the next collector."""
    excluded = _OWN_HEADERS | ({"authorization"} if without_authorization else set())
    return {name: value for name, value in headers.items() if name.lower() not in excluded}
