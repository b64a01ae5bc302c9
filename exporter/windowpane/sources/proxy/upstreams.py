"""The providers behind the proxy: the first part of a path chooses one, the rest is appended to its URL."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from windowpane.exceptions import ConfigurationError

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,31}")


@dataclass(frozen=True, slots=True)
class Upstream:
    """One provider."""

    name: str
    """First part of the paths that go to it."""
    url: str
    """Its base URL, which replaces that part."""
    variables: tuple[str, ...] = ()
    """Environment variables in which its clients look for a base URL."""


DEFAULT_UPSTREAMS: Final = (
    Upstream("openai", "https://api.openai.com/v1", ("OPENAI_BASE_URL", "OPENAI_API_BASE")),
    Upstream("anthropic", "https://api.anthropic.com", ("ANTHROPIC_BASE_URL",)),
    Upstream("gemini", "https://generativelanguage.googleapis.com", ("GOOGLE_GEMINI_BASE_URL",)),
)


def upstreams_of(given: Sequence[str], environment: Mapping[str, str]) -> dict[str, Upstream]:
    """Return the upstreams by name: the defaults, those of *environment*, and the `NAME=URL` of *given*.

    A base URL that a client would have found in *environment* stays the one its calls go to. Raises
    `ConfigurationError` for a name or URL that cannot be used.
    """
    upstreams = {}
    for default in DEFAULT_UPSTREAMS:
        variable = next((name for name in default.variables if environment.get(name)), None)
        url = default.url if variable is None else _checked(environment[variable], variable)
        upstreams[default.name] = Upstream(default.name, url, default.variables)
    for assignment in given:
        name, _, url = assignment.partition("=")
        if not _NAME.fullmatch(name):
            expected = "NAME=URL with a name of small letters, digits, dots and dashes"
            raise ConfigurationError("upstream", "an upstream has no usable name", expected=expected)
        variables = upstreams[name].variables if name in upstreams else ()
        upstreams[name] = Upstream(name, _checked(url, f"upstream {name}"), variables)
    return upstreams


def client_environment(upstreams: Mapping[str, Upstream], proxy_url: str) -> dict[str, str]:
    """Return the variables that make clients send their calls through the proxy at *proxy_url*."""
    return {
        variable: f"{proxy_url}/{upstream.name}"
        for upstream in upstreams.values()
        for variable in upstream.variables
    }


def _checked(url: str, key: str) -> str:
    """Return a base URL without its last slashes. The errors do not repeat it: it may hold a password."""
    try:
        parts = urlsplit(url)
        is_base = parts.scheme in ("http", "https") and parts.hostname and not (parts.query or parts.fragment)
        is_base = is_base and url.isprintable()
    except ValueError:
        is_base = False
    if not is_base:
        raise ConfigurationError(key, "is not a base URL", expected="https://HOST or https://HOST/PATH")
    if "@" in parts.netloc:
        problem = "has a user or password, which every caller's request would carry"
        raise ConfigurationError(key, problem, expected="https://HOST/PATH; callers send their own credentials")
    return url.rstrip("/")
