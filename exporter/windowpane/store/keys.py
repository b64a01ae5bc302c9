"""Audit keys: where they come from, and the hash that each of them makes.

One key signs what is recorded from now on. Keys that signed before it stay listed as old keys, so that a chain
which was recorded under one of them can still be verified.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from windowpane.exceptions import ConfigurationError

KEY_VARIABLE: Final = "WINDOWPANE_AUDIT_KEY"
KEY_FILE_VARIABLE: Final = "WINDOWPANE_AUDIT_KEY_FILE"
OLD_KEY_FILES_VARIABLE: Final = "WINDOWPANE_AUDIT_OLD_KEY_FILES"
"""Files of old keys, separated as in `PATH`."""
MINIMUM_KEY_BYTES: Final = 16
UNKEYED: Final = ""
"""The key id of a chain without a key."""

Link = Callable[[bytes, bytes], bytes]
"""Previous hash and body to the next hash."""


@dataclass(frozen=True, slots=True)
class AuditKeys:
    """The key that signs, if there is one, and the old keys that only verify."""

    current: bytes | None = None
    old: tuple[bytes, ...] = ()

    @property
    def available(self) -> bool:
        """Return True where there is any key, so that an unsigned chain is not expected."""
        return self.current is not None or bool(self.old)

    def links(self) -> dict[str, Link]:
        """Return the hash of every key by its id, and the plain one of a chain without a key."""
        keys = (None, self.current, *self.old)
        return {key_id(key): link_with(key) for key in keys}


def load_key(environment: Mapping[str, str] = os.environ) -> bytes | None:
    """Return the key the environment names, or None. Raises `ConfigurationError` when it cannot be used."""
    given = environment.get(KEY_VARIABLE)
    if given:
        return checked_key(given.encode(), KEY_VARIABLE)
    file = environment.get(KEY_FILE_VARIABLE)
    return key_in(Path(file) if file else None, KEY_FILE_VARIABLE)


def load_old_keys() -> tuple[bytes, ...]:
    """Return the old keys that the environment names. Raises `ConfigurationError` when one cannot be used."""
    return keys_in(split_paths(os.environ.get(OLD_KEY_FILES_VARIABLE, "")), OLD_KEY_FILES_VARIABLE)


def old_keys(given: Iterable[bytes] | None) -> tuple[bytes, ...]:
    """Return the *given* old keys, checked; None: those of the environment."""
    return load_old_keys() if given is None else tuple(map(checked_key, given))


def split_paths(text: str) -> list[Path]:
    """Return the paths of a text that separates them as `PATH` does."""
    return [Path(part) for part in text.split(os.pathsep) if part]


def keys_in(files: Iterable[Path], where: str) -> tuple[bytes, ...]:
    """Return the key of each file. Raises `ConfigurationError` naming *where*."""
    return tuple(key for file in files if (key := key_in(file, where)) is not None)


def key_in(file: Path | None, where: str) -> bytes | None:
    """Return the key that *file* holds, None without a file. Raises `ConfigurationError` naming *where*."""
    if file is None:
        return None
    try:
        return checked_key(file.read_bytes().strip(), where)
    except OSError as error:
        problem = f"cannot read {file} ({error.strerror})"
        raise ConfigurationError(where, problem, expected="a readable file") from error


def checked_key(key: bytes, where: str = "audit_key") -> bytes:
    """Return *key* if it is long enough. Raises `ConfigurationError` naming *where*."""
    if len(key) < MINIMUM_KEY_BYTES:
        raise ConfigurationError(where, f"has {len(key)} bytes", expected=f"at least {MINIMUM_KEY_BYTES}")
    return key


def key_id(key: bytes | None) -> str:
    """Return a short name of a key that does not reveal it; empty for None."""
    return UNKEYED if key is None else hmac.digest(key, b"windowpane audit key", "sha256")[:8].hex()


def link_with(key: bytes | None) -> Link:
    """Return the function that chains one more body."""
    if key is None:
        return _plain
    return lambda previous, body: hmac.digest(key, previous + body, "sha256")


def link_all(link: Link, previous: bytes, bodies: Iterable[bytes]) -> list[bytes]:
    """Return the hash of each body, which continues that of the body before it."""
    hashes = []
    for body in bodies:
        previous = link(previous, body)
        hashes.append(previous)
    return hashes


def _plain(previous: bytes, body: bytes) -> bytes:
    return sha256(previous + body).digest()
