"""Digests: equal texts and ids are recognized without storing them."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from windowpane.core.protocols import Digester

DIGEST_BYTES: Final = 16
KEY_BYTES: Final = 32
UNIQUE_ID_CHARACTERS: Final = 20
"""Ids of replies and tool calls of at least this length are unique; shorter ones are counted up."""
_DISTINCT_CHARACTERS: Final = 8
"""Fewer are a placeholder, such as zeros or what a redactor writes."""


def keyed_digester(key: bytes) -> Digester:
    """Return a digester for one store: BLAKE2b with *key* (at most 64 bytes), 32 hexadecimal digits.

    Copying the keyed state skips hashing the key again, a third of the cost on short texts.
    """
    copy = blake2b(digest_size=DIGEST_BYTES, key=key).copy

    def digest(text: str) -> str:
        own = copy()
        try:
            own.update(text.encode())
        except UnicodeEncodeError:
            own.update(text.encode("utf-8", "surrogatepass"))
        return own.hexdigest()

    return digest


def call_number(call_id: str | None) -> int | None:
    """Return the number by which ids of replies and tool calls are compared; None where one is not unique."""
    if not call_id or len(call_id) < UNIQUE_ID_CHARACTERS or len(set(call_id)) < _DISTINCT_CHARACTERS:
        return None
    digest = blake2b(call_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
