"""Counts already made, so that a block that is carried from turn to turn is tokenized once."""

from __future__ import annotations

import hashlib


class CountCache:
    """Content to token count, bounded in entries, keyed by digest so that it holds no content.

    Two generations stand in for an exact least-recently-used order: a hit in the old one moves to the
    young one, and a full young one becomes the old. No lock is needed, so a fork cannot inherit a held
    one: every step is one dict operation, and the worst a race costs is a count made twice.
    """

    def __init__(self, *, max_entries: int = 65_536) -> None:
        self._generation_size = max(1, max_entries // 2)
        self._young: dict[bytes, int] = {}
        self._old: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def get(self, key: bytes) -> int | None:
        """The count stored under *key*, or None."""
        count = self._young.get(key)
        if count is None:
            count = self._old.get(key)
            if count is not None:
                self.put(key, count)
        return count

    def put(self, key: bytes, count: int) -> None:
        """Remember *count*; the entries unused for longest go first."""
        young = self._young
        if len(young) >= self._generation_size:
            self._old, young = young, {}
            self._young = young
        young[key] = count


def content_key(text: str) -> bytes:
    """A 128-bit digest of *text*; lone surrogates are allowed."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
