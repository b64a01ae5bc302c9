"""Access to the HTTP endpoint: the bearer token, the check of the host name, and TLS."""

from __future__ import annotations

import hmac
import ipaddress
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from windowpane.exceptions import ConfigurationError

if TYPE_CHECKING:
    from windowpane.config.outputs import Tls


def server_context(options: Tls) -> ssl.SSLContext:
    """Return a TLS 1.2 server context. Raises `OSError` with the file's name if a file cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(options.certificate, options.key)
    except OSError as error:
        raise _unusable(f"certificate {options.certificate} with key {options.key}", error) from error
    if options.client_ca is not None:
        try:
            context.load_verify_locations(options.client_ca)
        except OSError as error:
            raise _unusable(f"authority {options.client_ca}", error) from error
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _unusable(files: str, error: OSError) -> OSError:
    return OSError(error.errno, f"{files} cannot be used: {error.strerror or error}")


def require_protection(address: str, *, has_token: bool, tls: Tls | None, insecure: bool) -> None:
    """Raise `ConfigurationError` for an endpoint that other machines can reach without a credential.

    A certificate of the server is not one: it encrypts, and permits everyone. *insecure* states that this is
    intended, for example in a container whose port is published on loopback.
    """
    has_client_ca = tls is not None and tls.client_ca is not None
    if insecure or has_token or has_client_ca or is_loopback(address) or address.lower() == "localhost":
        return
    problem = (
        f"{address or 'every address'} can be reached from other machines, without a token or client certificates"
    )
    raise ConfigurationError("server.address", problem, expected=_PROTECTION)


_PROTECTION: Final = (
    "server.bearer_token (--bearer-token-file), server.tls with client_ca (--tls-client-ca), an address on "
    "loopback, or server.insecure: true (--insecure) to serve everyone"
)


def read_token(file: Path) -> str:
    """Return the bearer token in *file*. Raises `ConfigurationError` where there is none."""
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(str(file), f"the bearer token cannot be read: {error}") from error
    if not token:
        raise ConfigurationError(str(file), "the bearer token is empty")
    return token


def has_bearer_token(authorization: str, token: str | None) -> bool:
    """Return whether the `Authorization` header carries *token*; always true without a token.

    The scheme is compared without case. The comparison takes the same time for every wrong token.
    """
    if token is None:
        return True
    scheme, _, credentials = authorization.partition(" ")
    is_equal = hmac.compare_digest(credentials.strip().encode("utf-8", "replace"), token.encode())
    return is_equal and scheme.lower() == "bearer"


def is_local_host_header(host: str | None) -> bool:
    """Return whether the `Host` header names this machine; a request without the header passes.

    A web page can have its host name resolve to 127.0.0.1 and would then read an endpoint on loopback that needs
    no token; the browser sends that host name along.
    """
    if host is None:
        return True
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    return name == "localhost" or name.endswith(".localhost") or is_loopback(name)


def is_own_origin(origin: str | None, host: str) -> bool:
    """Return whether the `Origin` header is that of the server itself, which the request names as *host*.

    Browsers send no origin with a page that is opened, and programs need none.
    """
    return origin is None or origin.lower() in (f"http://{host.lower()}", f"https://{host.lower()}")


def is_from_other_site(host: str | None, origin: str | None, *, on_loopback: bool) -> bool:
    """Return whether a page of another site may have made the request with these `Host` and `Origin` headers.

    Beyond loopback the names of the server are unknown, so any host is accepted.
    """
    return (on_loopback and not is_local_host_header(host)) or not is_own_origin(origin, host or "")


OTHER_SITE: Final = (
    "this endpoint is for programs of this machine, and not for pages of other sites; "
    "request it as 127.0.0.1 or localhost"
)


def is_loopback(address: str) -> bool:
    """Return whether *address* is a loopback IP address."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
