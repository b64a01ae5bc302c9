"""Lifetime: each type of content is useful for so many turns after it was last needed."""

from __future__ import annotations

from collections.abc import Sequence

from windowpane.manager.snapshot import Item, Snapshot


def lifetime(items: Sequence[Item], snapshot: Snapshot) -> Sequence[float | None]:
    """The share of its type's lifetime that a block has left; 1 for types that never expire."""
    turn, lifetimes = snapshot.turn, snapshot.lifetimes
    rated: list[float | None] = []
    for item in items:
        block = item.block
        turns = lifetimes.get(block.content_type)
        if not turns:
            rated.append(1.0)
            continue
        idle = turn - (block.turn if item.referenced_turn is None else item.referenced_turn)
        rated.append(min(1.0, max(0.0, 1.0 - idle / turns)))
    return rated
