"""Requests to HTTP servers: one connection each, with a time limit, and no redirects."""

from __future__ import annotations

import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from socket import SHUT_RDWR
from typing import Any, Final, NamedTuple

MAXIMUM_RESPONSE_BYTES: Final = 4 * 2**20
LONGEST_RETRY_SECONDS: Final = 3_600.0
"""Longest wait that a server can ask for."""


class UnreachableError(Exception):
    """The server did not respond; the message is the reason, without the address."""


class HttpResponse(NamedTuple):
    """The response to one request, whatever its status."""

    status: int
    body: bytes
    retry_after_seconds: float
    """The wait that the server asks for; 0 without one."""

    @property
    def is_success(self) -> bool:
        """True for a status from 200 to 299."""
        return 200 <= self.status < 300  # defined by HTTP


class HttpClient:
    """Posts requests from one thread at a time. `abort` may be called from another.

    A redirect is returned like any response: following it would turn the POST into a GET, and pass the
    credentials on. The proxies of the environment are used unless *uses_proxies* is False.
    """

    def __init__(
        self,
        *,
        tls: ssl.SSLContext | None = None,
        uses_proxies: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._connections = _Connections(tls)
        proxies = () if uses_proxies else (urllib.request.ProxyHandler({}),)
        self._opener = urllib.request.build_opener(_NoRedirects, self._connections, *proxies)

    def post(self, url: str, body: bytes, headers: Mapping[str, str], *, timeout_seconds: float) -> HttpResponse:
        """Send a request and return the response. Raises `UnreachableError`; `ValueError` for unusable headers.

        *timeout_seconds* is the time for connecting, and for each part of the response.
        """
        request = urllib.request.Request(url, body, dict(headers), method="POST")  # noqa: S310  # configured
        try:
            with self._response(request, timeout_seconds) as response:
                wait = _seconds(response.headers.get("Retry-After"), self._clock())
                return HttpResponse(response.status, response.read(MAXIMUM_RESPONSE_BYTES), wait)
        except (OSError, HTTPException) as error:
            raise UnreachableError(_reason(error)) from error
        finally:
            self._connections.current = None

    def abort(self) -> None:
        """End the request in progress, which then fails."""
        connection = self._connections.current
        if connection is not None and connection.sock is not None:
            with suppress(OSError):
                connection.sock.shutdown(SHUT_RDWR)

    def after_fork(self) -> None:
        """Be without a connection in a forked child: the one in use is the parent's."""
        self._connections.current = None

    def _response(self, request: urllib.request.Request, timeout_seconds: float) -> Any:
        try:
            return self._opener.open(request, timeout=timeout_seconds)
        except urllib.error.HTTPError as response:
            return response


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return


class _Connections(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """Opens connections, and has the one in use."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        urllib.request.HTTPSHandler.__init__(self, context=tls)
        self._tls = tls
        self.current: HTTPConnection | None = None

    def http_open(self, request: urllib.request.Request) -> Any:
        return self.do_open(self._connection, request)  # type: ignore[arg-type]  # called as the class is

    def https_open(self, request: urllib.request.Request) -> Any:
        return self.do_open(self._encrypted, request)  # type: ignore[arg-type]  # called as the class is

    def _connection(self, host: str, *, timeout: float) -> HTTPConnection:
        self.current = HTTPConnection(host, timeout=timeout)
        return self.current

    def _encrypted(self, host: str, *, timeout: float) -> HTTPConnection:
        self.current = HTTPSConnection(host, timeout=timeout, context=self._tls)
        return self.current


def _seconds(retry_after: str | None, now: float) -> float:
    """Return the wait of a `Retry-After` header, given in seconds or as a date; 0 where it is invalid."""
    if not retry_after:
        return 0.0
    try:
        is_number = retry_after.strip().isdecimal()
        seconds = float(retry_after) if is_number else parsedate_to_datetime(retry_after).timestamp() - now
    except (ValueError, OverflowError):
        return 0.0
    return min(max(seconds, 0.0), LONGEST_RETRY_SECONDS)


def _reason(error: Exception) -> str:
    cause = getattr(error, "reason", None)
    if isinstance(error, urllib.error.URLError) and isinstance(cause, Exception):
        error = cause
    if isinstance(error, TimeoutError):
        return "no response in time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message})"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
