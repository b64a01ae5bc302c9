"""Plans which similar blocks are merged into one, and the text of the merged block.

Without an embedding model, similarity is that of word shingles: the share of equal hashes in two bottom-k
sketches, an estimate of the Jaccard similarity.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from windowpane.core.vocabulary import ContentType
from windowpane.core.window.blocks import Block
from windowpane.manager.plans.protection import never_removed
from windowpane.manager.snapshot import Snapshot, groups_of

SIMILARITY: Final = 0.85
"""Texts at least this similar count as alike."""
MINIMUM_TOKENS: Final = 50
"""Shorter texts are similar by chance and are not compared."""
SHINGLE_WORDS: Final = 4
SKETCH_SIZE: Final = 64
"""Smallest hashes of a text's shingles, which represent the whole."""
COMPARED_BLOCKS: Final = 200
"""Blocks that are compared with one another, the newest."""
MERGED_TYPES: Final[frozenset[ContentType]] = frozenset({"tool_result", "memory_injection", "assistant_response"})

Sketch = frozenset[int]
IsAlike = Callable[[Block, Block], bool]


@dataclass(frozen=True, slots=True)
class Cluster:
    """Similar blocks, oldest first; the last one will hold the merged text."""

    blocks: tuple[Block, ...]

    @property
    def tokens(self) -> int:
        """Tokens of all its blocks."""
        return sum(block.tokens for block in self.blocks)


def plan_merges(snapshot: Snapshot, is_alike: IsAlike) -> list[Cluster]:
    """Return the clusters of similar removable blocks, largest first; each has one type and one tool."""
    fixed = never_removed(snapshot, groups_of(snapshot.items))
    sizes = Counter(item.block.group for item in snapshot.items)
    candidates = [
        item.block
        for item in snapshot.items
        if item.block.content_type in MERGED_TYPES
        and item.block.text
        and item.block.tokens >= MINIMUM_TOKENS
        and item.block.group not in fixed
        and (item.block.content_type == "tool_result" or sizes[item.block.group] == 1)
    ][-COMPARED_BLOCKS:]
    clusters: list[list[Block]] = []
    for block in reversed(candidates):
        cluster = next((one for one in clusters if _is_member(block, one[0], is_alike)), None)
        if cluster is None:
            clusters.append([block])
        else:
            cluster.append(block)
    merged = [Cluster(tuple(reversed(members))) for members in clusters if len(members) > 1]
    return sorted(merged, key=lambda cluster: -cluster.tokens)


def merge_texts(texts: Sequence[str]) -> str:
    """Return the newest text followed by the lines that only older texts have, each once."""
    *older, newest = texts
    newest_lines = {line.strip() for line in newest.splitlines()}
    extra: dict[str, None] = {}
    for text in older:
        for line in text.splitlines():
            if line.strip() and line.strip() not in newest_lines:
                extra[line] = None
    return "\n".join([newest, "[also, from earlier ones like it:]", *extra]) if extra else newest


def sketch_of(text: str) -> Sketch:
    """Return the smallest hashes of the text's word shingles."""
    words = text.split()
    shingles = {
        zlib.crc32(" ".join(words[at : at + SHINGLE_WORDS]).encode("utf-8", "surrogatepass"))
        for at in range(max(1, len(words) - SHINGLE_WORDS + 1))
    }
    return frozenset(sorted(shingles)[:SKETCH_SIZE])


def similarity(one: Sketch, other: Sketch) -> float:
    """Return the estimated Jaccard similarity of two sketched texts, 0 to 1."""
    if not one or not other:
        return 0.0
    union = sorted(one | other)[: max(len(one), len(other))]
    return len(one & other & frozenset(union)) / len(union)


def _is_member(block: Block, first: Block, is_alike: IsAlike) -> bool:
    same_kind = (block.content_type, block.tool_name) == (first.content_type, first.tool_name)
    return same_kind and is_alike(first, block)
