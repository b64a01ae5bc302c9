"""Requests to an ingest server: one connection each, with a time limit, over TLS beyond this machine."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from socket import SHUT_RDWR
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from windowpane.core.version import package_version
from windowpane.exceptions import ConfigurationError
from windowpane.outputs.http.authentication import is_loopback
from windowpane.outputs.remote.batches import CONTENT_TYPE, PATH

MAXIMUM_ANSWER_BYTES: Final = 4 * 2**20
TIMEOUT_SECONDS: Final = 10.0
"""Time for connecting, and for each part of the answer."""
LONGEST_RETRY_SECONDS: Final = 600.0
"""Longest wait that a server can ask for."""
_EXPECTED: Final = (
    "https://host, or http:// to this machine; ingest.insecure: true sends unencrypted to others too"
)


class UnreachableError(Exception):
    """The server did not answer a request."""


class Answer(NamedTuple):
    """The answer to one request."""

    status: int
    body: bytes
    retry_after_seconds: float
    """The wait that the server asks for; 0 without one."""


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The address of an ingest server."""

    is_encrypted: bool
    host: str
    port: int
    path: str

    @property
    def url(self) -> str:
        """The address of the server, without the path of the endpoint."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.is_encrypted else 'http'}://{host}:{self.port}"


def server_address(url: str, *, insecure: bool = False, key: str = "store") -> ServerAddress:
    """Return the parts of a URL. Raises `ConfigurationError` about *key*.

    Without encryption only this machine is accepted, unless *insecure*.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigurationError(key, f"is not a URL: {error}", expected=_EXPECTED) from error
    scheme = parts.scheme.lower()
    if scheme not in ("http", "https") or not host:
        raise ConfigurationError(key, "does not name a server", expected=_EXPECTED)
    if parts.username is not None or parts.query or parts.fragment:
        problem = "must not contain a user, a query or a fragment"
        raise ConfigurationError(key, problem, expected="the token in WINDOWPANE_INGEST_TOKEN")
    if scheme == "http" and not insecure and not (is_loopback(host) or host == "localhost"):
        problem = f"http:// would send events and the token to {host} unencrypted"
        raise ConfigurationError(key, problem, expected=_EXPECTED)
    path = parts.path.rstrip("/").removesuffix(PATH) + PATH
    return ServerAddress(scheme == "https", host, port or (443 if scheme == "https" else 80), path)


def client_context(*, ca: Path | None, certificate: Path | None, key: Path | None) -> ssl.SSLContext:
    """Return a TLS context that verifies the server. Raises `ConfigurationError` for an unusable file."""
    try:
        context = ssl.create_default_context(cafile=ca)
    except OSError as error:
        raise ConfigurationError("ingest.ca", f"{ca} cannot be used: {error}") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if certificate is not None:
        try:
            context.load_cert_chain(certificate, key)
        except OSError as error:
            problem = f"{certificate} cannot be used: {error}"
            raise ConfigurationError("ingest.certificate", problem) from error
    return context


class IngestServer:
    """Sends requests to one server. `abort` may be called from another thread."""

    def __init__(
        self,
        address: ServerAddress,
        *,
        token: str | None = None,
        tls: ssl.SSLContext | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._address = address
        self._tls = tls
        self._timeout = timeout_seconds
        self._clock = clock
        self._headers = {
            "Content-Type": CONTENT_TYPE,
            "Content-Encoding": "gzip",
            "User-Agent": f"windowpane/{package_version()}",
        }
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self.after_fork()

    def after_fork(self) -> None:
        """Start without a connection."""
        self._lock = threading.Lock()  # guards the connection in use
        self._connection: HTTPConnection | None = None

    def post(self, body: bytes) -> Answer:
        """Send a batch and return the answer. Raises `UnreachableError`."""
        connection = self._connect()
        try:
            with self._lock:
                self._connection = connection
            connection.request("POST", self._address.path, body=body, headers=self._headers)
            response = connection.getresponse()
            retry_after = self._seconds(response.getheader("Retry-After"))
            return Answer(response.status, response.read(MAXIMUM_ANSWER_BYTES), retry_after)
        except (OSError, HTTPException) as error:
            raise UnreachableError(f"{self._address.url}: {_reason(error)}") from error
        finally:
            with self._lock:
                self._connection = None
            connection.close()

    def abort(self) -> None:
        """End the request in progress, which then fails."""
        with self._lock:
            connection = self._connection
            if connection is not None and connection.sock is not None:
                with suppress(OSError):
                    connection.sock.shutdown(SHUT_RDWR)

    def _connect(self) -> HTTPConnection:
        address = self._address
        if address.is_encrypted:
            return HTTPSConnection(address.host, address.port, timeout=self._timeout, context=self._tls)
        return HTTPConnection(address.host, address.port, timeout=self._timeout)

    def _seconds(self, retry_after: str | None) -> float:
        """Return the wait that a header asks for, in seconds or until a date."""
        if retry_after is None:
            return 0.0
        try:
            seconds = float(int(retry_after))
        except ValueError:
            try:
                seconds = parsedate_to_datetime(retry_after).timestamp() - self._clock()
            except ValueError:
                return 0.0
        return min(max(seconds, 0.0), LONGEST_RETRY_SECONDS)


def _reason(error: OSError | HTTPException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message})"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
