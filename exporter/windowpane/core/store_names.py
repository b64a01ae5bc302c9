"""Names of event stores: the path of a SQLite file, its URL, or the URL of a store on a server."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final, TypeAlias

from windowpane.exceptions import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

DEFAULT_FILE: Final = "windowpane.db"
PREFIX: Final = "sqlite:///"
"""Start of a URL; as in SQLAlchemy a relative path follows, or an absolute one with its own slash."""
EXPECTED: Final = "a path, or sqlite:///path as text (sqlite:////path if it is absolute)"
DATABASES: Final = ("postgresql",)
ENDPOINTS: Final = ("http", "https")
"""Schemes of a server that receives events for its own store."""
EXPECTED_URL: Final = f"{EXPECTED}, or postgresql://user@host/database"

NUL: Final = "\0"
"""The one character that no path has, and that ends a text early where C reads it."""
_SCHEME: Final = re.compile(r"\A(?=(?:sqlite|file):|[A-Za-z][A-Za-z0-9+.-]+:/)([A-Za-z0-9+.-]+):")
"""Of two characters or more: one is a drive of Windows. SQLite itself takes `file:name` for a URL."""
_PASSWORD: Final = re.compile(r"(?<=://)([^:/?#@]*):.*@", re.DOTALL)
"""Up to the last `@`: a password may contain one that should have been quoted."""
_PASSWORD_OPTION: Final = re.compile(r"([?&](?:ssl)?password=)[^&]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True, repr=False)
class StoreUrl:
    """The URL of a store on a server. As text it has no password, so that it can be shown and logged."""

    url: str
    """The URL as it was given, with the password that it may have."""

    @property
    def scheme(self) -> str:
        """The kind of the server, such as `postgresql`."""
        return self.url.partition(":")[0]

    @property
    def file_name(self) -> str:
        """A name for the local files of this store: the same whatever its password."""
        return f"{self.scheme}-{sha256(str(self).encode()).hexdigest()[:16]}"

    def __str__(self) -> str:
        return _PASSWORD_OPTION.sub(r"\1***", _PASSWORD.sub(r"\1:***@", self.url))

    def __repr__(self) -> str:
        return f"StoreUrl({str(self)!r})"


StoreName: TypeAlias = "Path | StoreUrl"
"""A store: the path of its file, or its URL on a server."""


def parse_store_name(name: str, *, key: str = "store") -> str | StoreUrl:
    """Return the path of the file or the URL that *name* means. Raises `ConfigurationError` about *key*."""
    scheme = _SCHEME.match(name)
    kind = "" if scheme is None else scheme[1].lower()
    if kind == "postgres":
        kind = "postgresql"
    if kind not in (*DATABASES, *ENDPOINTS):
        return store_file(name, key=key, expected=EXPECTED_URL)
    rest = name.partition(":")[2]
    if NUL in rest:
        raise ConfigurationError(key, f"this {kind} URL contains a NUL character", expected=EXPECTED_URL)
    if not rest.startswith("//"):
        raise ConfigurationError(key, f"this {kind} URL lacks its two slashes", expected=EXPECTED_URL)
    return StoreUrl(f"{kind}:{rest}")


def full_name(name: StoreName) -> str:
    """Return the text that opens the same store elsewhere, with its password; never to be shown."""
    return name.url if isinstance(name, StoreUrl) else str(name)


def store_file(name: str, *, key: str = "store", expected: str = EXPECTED) -> str:
    """Return the path of the file that *name* means. Raises `ConfigurationError` about *key* for another URL."""
    if not name.strip():
        raise ConfigurationError(key, "is blank", expected=expected)
    if NUL in name:
        raise ConfigurationError(key, "contains a NUL character", expected=expected)
    scheme = _SCHEME.match(name)
    if scheme is None:
        return name
    path = name.removeprefix(PREFIX)
    if scheme[1] != "sqlite":
        raise ConfigurationError(key, f"there is no store of the kind {scheme[1]!r}", expected=expected)
    if path == name or not path or path.startswith(":") or "?" in path:
        raise ConfigurationError(key, "this URL names no file", expected=expected)
    return path
