"""Recency: what came long ago matters less."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from windowpane.manager.snapshot import Item, Snapshot

HALF_LIFE_TURNS: Final = 10


def recency(items: Sequence[Item], snapshot: Snapshot) -> Sequence[float | None]:
    """2^(-age / half-life) of the turns since a block came in; 1 for the current turn."""
    turn = snapshot.turn
    by_age = [2.0 ** (-age / HALF_LIFE_TURNS) for age in range(turn + 1)]
    return [by_age[max(0, turn - item.block.turn)] for item in items]


def idleness(items: Sequence[Item], snapshot: Snapshot) -> Sequence[float | None]:
    """2^(-idle / half-life) of the turns since a block was last referred to, or came in; for LRU."""
    turn = snapshot.turn
    by_age = [2.0 ** (-age / HALF_LIFE_TURNS) for age in range(turn + 1)]
    return [
        by_age[max(0, turn - (item.block.turn if item.referenced_turn is None else item.referenced_turn))]
        for item in items
    ]
