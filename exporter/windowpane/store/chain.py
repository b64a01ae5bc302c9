"""The audit chain's arithmetic: what an event's hash is made of, and with which key.

`hash = HMAC-SHA-256(key, previous || body)`, or plain SHA-256 without a key, over the exact stored bytes.
The first event of a session follows a digest of the session's id and revision, so that no chain passes for
another. Without a key the chain shows accidents; whoever can write the file can also compute it anew.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from windowpane.exceptions import ConfigurationError

KEY_VARIABLE: Final = "WINDOWPANE_AUDIT_KEY"
KEY_FILE_VARIABLE: Final = "WINDOWPANE_AUDIT_KEY_FILE"
MINIMUM_KEY_BYTES: Final = 16
UNKEYED: Final = ""
"""The key id of a chain that uses none."""
ORIGIN: Final = b"\0" * 32
"""What the first entry of the store-wide chain follows."""

Link = Callable[[bytes, bytes], bytes]
"""Previous hash and body to the next hash."""


def load_key(environment: Mapping[str, str] = os.environ) -> bytes | None:
    """The key named by the environment, or None. Raises `ConfigurationError` when it cannot be used."""
    given = environment.get(KEY_VARIABLE)
    if given:
        return checked_key(given.encode(), KEY_VARIABLE)
    file = environment.get(KEY_FILE_VARIABLE)
    return key_in(Path(file) if file else None, KEY_FILE_VARIABLE)


def key_in(file: Path | None, where: str) -> bytes | None:
    """The key that *file* holds, None where none is named. Raises `ConfigurationError` naming *where*."""
    if file is None:
        return None
    try:
        return checked_key(file.read_bytes().strip(), where)
    except OSError as error:
        problem = f"cannot read {file} ({error.strerror})"
        raise ConfigurationError(where, problem, expected="a readable file") from error


def checked_key(key: bytes, where: str = "audit_key") -> bytes:
    """The key, when it is long enough not to be guessed."""
    if len(key) < MINIMUM_KEY_BYTES:
        raise ConfigurationError(where, f"has {len(key)} bytes", expected=f"at least {MINIMUM_KEY_BYTES}")
    return key


def key_id(key: bytes | None) -> str:
    """A short name of a key that does not reveal it; empty for no key."""
    return UNKEYED if key is None else hmac.digest(key, b"windowpane audit key", "sha256")[:8].hex()


def link_with(key: bytes | None) -> Link:
    """The function that chains one more body."""
    if key is None:
        return _plain
    return lambda previous, body: hmac.digest(key, previous + body, "sha256")


def _plain(previous: bytes, body: bytes) -> bytes:
    return sha256(previous + body).digest()


def genesis(session_id: str, revision: int) -> bytes:
    """What the first event of a session's revision follows."""
    return sha256(f"windowpane session\0{session_id}\0{revision}".encode()).digest()
