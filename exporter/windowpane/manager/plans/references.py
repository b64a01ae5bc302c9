"""References: what later content kept using is still needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from windowpane.manager.snapshot import Item, Snapshot

SATURATION: Final = 5
"""As many references as make a block as wanted as one can be."""


def references(items: Sequence[Item], snapshot: Snapshot) -> Sequence[float | None]:
    """References to a block, out of five; None for all where nothing tracks them."""
    if not snapshot.references_known:
        return [None] * len(items)
    return [min(1.0, item.references / SATURATION) for item in items]
