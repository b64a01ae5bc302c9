"""Names, ids and free text of events without secrets: of agents, models, tools, sessions and payloads.

They come from recordings, callers and servers, and are stored whether texts are captured or not.

An id that contains a secret keeps a digest of it, so that different ones stay different. The digest has no key:
agents, servers and readers without a common key give a session the same id, and find it by the one its caller
gave. Who guesses a weak password that is part of an id can confirm the guess; a token cannot be guessed.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from windowpane.core.remembered import Remembered

LONGEST_NAME_BYTES: Final = 500
"""Bytes of a name: several together are the key of an index."""
_DIGEST_BYTES: Final = 6
_REMEMBERED: Final = 1_000
"""Names and ids of the sessions that are live at one time."""
_BYTES_OF_CHARACTER: Final = 4
"""Those of the longest character."""


def _without_secrets(name: str) -> str:
    from windowpane.core.redaction import redactor

    return redactor.redact(name).text


def bounded_name(name: str, longest: int = LONGEST_NAME_BYTES) -> str:
    """Return *name* without null characters, cut to *longest* bytes: what the index of any store takes."""
    if len(name) * _BYTES_OF_CHARACTER <= longest and "\0" not in name:
        return name
    encoded = name.replace("\0", "").encode("utf-8", "replace")
    return encoded[:longest].decode("utf-8", "ignore")


def _distinct(identifier: str) -> str:
    clean = bounded_name(_without_secrets(identifier))
    if clean == identifier:
        return identifier
    digest = blake2b(identifier.encode("utf-8", "replace"), digest_size=_DIGEST_BYTES).hexdigest()
    return f"{bounded_name(clean, LONGEST_NAME_BYTES - len(digest) - 1)}-{digest}"


_NAMES: Remembered[str, str] = Remembered(_without_secrets, maximum=_REMEMBERED)
_IDS: Remembered[str, str] = Remembered(_distinct, maximum=_REMEMBERED)


def stored_name(name: str) -> str:
    """Return *name* without secrets."""
    return _NAMES[name]


def stored_id(identifier: str) -> str:
    """Return *identifier* without secrets and within bounds; different ones stay different.

    The stored form of a stored id is itself.
    """
    return _IDS[identifier]
