"""The budget of a session's model calls, and the content that a model was refused for.

Reductions may call the language model and the sub-agent `BURST` times at once, and once every few turns on
average after that (`EngineSettings.model_calls_per_turn`). Where the budget is used up, they do without.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from windowpane.core.window.blocks import Block

BURST: Final = 8
"""Calls that a session may make before the average applies, and the most that it saves up."""
REFUSED_SHARE: Final = 0.5
"""Content counts as refused if at least this share of its tokens was."""


@dataclass(slots=True)
class ModelCallBudget:
    """The model calls that a session may still make; it grows with every turn, up to `BURST`."""

    _available: float = BURST
    _turn: int = 0

    def allows(self, turn: int, per_turn: float) -> bool:
        """Return whether a call may be made in *turn*; each turn since the last adds *per_turn* calls."""
        if turn > self._turn:
            self._available = min(BURST, self._available + (turn - self._turn) * per_turn)
            self._turn = turn
        return self._available >= 1

    def spend(self) -> None:
        """Count a call; a reduction that is under way may overdraw the budget."""
        self._available -= 1


@dataclass(slots=True)
class RefusedContent:
    """Blocks whose replacement by a model or sub-agent was refused, by strategy: they are not sent again."""

    _blocks: dict[str, set[str]] = field(default_factory=dict)

    def add(self, strategy: str, blocks: Iterable[Block]) -> None:
        """Remember that *strategy* failed to replace *blocks*."""
        self._blocks.setdefault(strategy, set()).update(block.id for block in blocks)

    def covers(self, strategy: str, blocks: Sequence[Block]) -> bool:
        """Return whether *blocks* are mostly content that was refused before."""
        refused = self._blocks.get(strategy)
        if not refused:
            return False
        tokens = sum(block.tokens for block in blocks if block.id in refused)
        return tokens >= REFUSED_SHARE * sum(block.tokens for block in blocks)

    def transfer(self, block: Block, shorter: Block) -> None:
        """Count *shorter* as refused if *block* was, which it replaces."""
        for refused in self._blocks.values():
            if block.id in refused:
                refused.add(shorter.id)

    def discard(self, blocks: Iterable[Block]) -> None:
        """Forget *blocks*, which were removed."""
        for refused in self._blocks.values():
            refused.difference_update(block.id for block in blocks)
