"""The address of an ingest server, and the TLS by which it is verified."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from windowpane.exceptions import ConfigurationError
from windowpane.outputs.http.authentication import is_loopback
from windowpane.outputs.remote.batches import PATH

_EXPECTED: Final = (
    "https://host, or http:// to this machine; ingest.insecure: true sends unencrypted to others too"
)


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

    @property
    def endpoint(self) -> str:
        """The URL that batches are posted to."""
        return self.url + self.path


def server_address(url: str, *, insecure: bool = False, key: str = "store") -> ServerAddress:
    """Return the parts of a URL. Raises `ConfigurationError` about *key*.

    Without encryption only this machine is accepted, unless *insecure*.
    """
    if not url.isprintable():
        raise ConfigurationError(key, "contains a control character", expected=_EXPECTED)
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
