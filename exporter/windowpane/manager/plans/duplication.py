"""Duplication: what stands again further on, or nearly so, need not stand here."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final

from windowpane.manager.snapshot import Item, Snapshot

SHINGLE_WORDS: Final = 4
SKETCH_SIZE: Final = 64
"""Smallest hashes of a text's shingles that are compared: a sketch of the whole."""
SIMILARITY: Final = 0.85
MINIMUM_TOKENS: Final = 50
"""Shorter texts are alike by chance."""


def duplication(items: Sequence[Item], snapshot: Snapshot) -> Sequence[float | None]:
    """0 where the same content stands again later in the window, else 1; None without a digest."""
    last: dict[str, str] = {item.block.digest: item.block.id for item in snapshot.items if item.block.digest}
    return [
        (1.0 if last[item.block.digest] == item.block.id else 0.0) if item.block.digest else None
        for item in items
    ]


def similarity_to_later(items: Sequence[Item], snapshot: Snapshot) -> Sequence[float | None]:
    """1 − the greatest similarity to a later block of the same tool or type; None without text.

    Similarity is the share of equal hashes in two bottom-k sketches of word shingles (an estimate of the
    Jaccard similarity); what is below 0.85 counts as different.
    """
    later: dict[tuple[str, str | None], list[frozenset[int]]] = {}
    rated: dict[str, float] = {}
    wanted = {item.block.id for item in items}
    for item in reversed(snapshot.items):
        block = item.block
        if not block.text or block.tokens < MINIMUM_TOKENS:
            continue
        sketch = sketch_of(block.text)
        kin = later.setdefault((block.content_type, block.tool_name), [])
        if block.id in wanted:
            nearest = max((similarity(sketch, other) for other in kin[-20:]), default=0.0)
            rated[block.id] = 1.0 - nearest if nearest >= SIMILARITY else 1.0
        kin.append(sketch)
    return [rated.get(item.block.id) for item in items]


def sketch_of(text: str) -> frozenset[int]:
    """The smallest hashes of the text's word shingles."""
    words = text.split()
    shingles = {
        zlib.crc32(" ".join(words[at : at + SHINGLE_WORDS]).encode("utf-8", "surrogatepass"))
        for at in range(max(1, len(words) - SHINGLE_WORDS + 1))
    }
    return frozenset(sorted(shingles)[:SKETCH_SIZE])


def similarity(one: frozenset[int], other: frozenset[int]) -> float:
    """Estimated Jaccard similarity of two sketched texts, 0 to 1."""
    if not one or not other:
        return 0.0
    union = sorted(one | other)[: max(len(one), len(other))]
    return len(one & other & frozenset(union)) / len(union)
