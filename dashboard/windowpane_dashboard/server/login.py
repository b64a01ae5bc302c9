"""The login as settings of Streamlit, which carries out the exchange with the provider."""

from __future__ import annotations

import secrets
from importlib.util import find_spec
from typing import Any, Final
from urllib.parse import urlsplit

from windowpane.config.dashboard import OidcConfig
from windowpane.core.version import install_command
from windowpane.exceptions import ConfigurationError

CALLBACK: Final = "/oauth2callback"
LIBRARIES: Final = ("authlib", "httpx")


def redirect_url(login: OidcConfig, *, public_url: str | None, address: str, port: int) -> str:
    """Return the address that users come back to. Raises `ConfigurationError` where there is none."""
    if login.redirect_url is not None:
        return login.redirect_url
    if public_url is not None:
        return public_url.rstrip("/") + CALLBACK
    host = f"[{address}]" if ":" in address else address
    if host in ("", "0.0.0.0", "[::]"):  # noqa: S104  # a comparison
        raise ConfigurationError(
            "public_url",
            "is not set",
            expected="the address that users open",
        )
    return f"http://{host}:{port}{CALLBACK}"


def streamlit_secrets(login: OidcConfig, redirect: str) -> dict[str, Any]:
    """Return the secrets that `st.login` reads; they stay in this process's memory.

    Raises `ConfigurationError` where a library is missing.
    """
    if any(find_spec(name) is None for name in LIBRARIES):
        raise ConfigurationError(
            "dashboard.oidc", "the login is not installed", expected=f"a run of: {install_command('login')}"
        )
    cookie_secret = login.cookie_secret.get_secret_value() if login.cookie_secret else secrets.token_urlsafe(48)
    return {
        "auth": {
            "redirect_uri": redirect,
            "cookie_secret": cookie_secret,
            "client_id": login.client_id,
            "client_secret": login.client_secret.get_secret_value(),
            "server_metadata_url": login.metadata_url,
            "client_kwargs": {"scope": login.scope},
        }
    }


def origin_of(url: str) -> str:
    """Return the scheme, host and port of an address."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
