"""The protocol of scorers: a term rates every candidate from 0 (evict first) to 1 (keep), or says it cannot."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from windowpane.manager.snapshot import Item, Snapshot

Term = Callable[[Sequence[Item], Snapshot], Sequence[float | None]]
"""Rates all candidates at once; None where it has nothing to say, which leaves its weight to the other terms."""
