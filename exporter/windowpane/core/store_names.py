"""Names of event stores: the path of a SQLite file, or its URL."""

from __future__ import annotations

import re
from typing import Final

from windowpane.exceptions import ConfigurationError

DEFAULT_FILE: Final = "windowpane.db"
PREFIX: Final = "sqlite:///"
"""Start of a URL; as in SQLAlchemy a relative path follows, or an absolute one with its own slash."""
EXPECTED: Final = "a path, or sqlite:///path as text (sqlite:////path if it is absolute)"

_SCHEME: Final = re.compile(r"\A([A-Za-z][A-Za-z0-9+.-]+):/")
"""Of two characters or more: one is a drive of Windows."""


def store_file(name: str, *, key: str = "store") -> str:
    """Return the path of the file that *name* means. Raises `ConfigurationError` about *key* for another URL."""
    scheme = _SCHEME.match(name)
    if scheme is None:
        return name
    path = name.removeprefix(PREFIX)
    if scheme[1] != "sqlite":
        raise ConfigurationError(key, f"there is no store of the kind {scheme[1]!r}", expected=EXPECTED)
    if path == name or not path or path.startswith(":") or "?" in path:
        raise ConfigurationError(key, "this URL names no file", expected=EXPECTED)
    return path
