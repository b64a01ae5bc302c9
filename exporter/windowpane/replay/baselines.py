"""The two baselines: what an agent without a manager does about a full window.

Both keep the system prompt and the tool definitions, and whole groups, so what they send is always valid. They
keep no placeholder and write no summary.
"""

from __future__ import annotations

from collections.abc import Sequence

from windowpane.core.vocabulary import STANDING_TYPES
from windowpane.core.window.blocks import Block


def truncate(blocks: Sequence[Block], max_tokens: int) -> list[Block]:
    """Drop the oldest groups until the rest fits; the newest group stays, whatever its size."""
    sizes = _group_sizes(blocks)
    total = sum(block.tokens for block in blocks)
    dropped: set[str] = set()
    for group in list(sizes)[:-1]:
        if total <= max_tokens:
            break
        dropped.add(group)
        total -= sizes[group]
    return [block for block in blocks if block.content_type in STANDING_TYPES or block.group not in dropped]


def keep_last(blocks: Sequence[Block], groups: int) -> list[Block]:
    """Keep the last *groups* groups, whatever their size."""
    kept = set(list(_group_sizes(blocks))[-groups:])
    return [block for block in blocks if block.content_type in STANDING_TYPES or block.group in kept]


def _group_sizes(blocks: Sequence[Block]) -> dict[str, int]:
    """Tokens of each group that may leave, in the order of their first blocks."""
    sizes: dict[str, int] = {}
    for block in blocks:
        if block.content_type not in STANDING_TYPES:
            sizes[block.group] = sizes.get(block.group, 0) + block.tokens
    return sizes
