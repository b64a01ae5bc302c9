"""The sizes of blocks on every surface: their shares of what a turn measured, not what was counted of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windowpane.core.vocabulary import COMPONENT_OF, COMPONENTS, Component
from windowpane.store.records import BlockRow


@dataclass(frozen=True, slots=True)
class WindowBlock:
    """A block of the window, with its share of what the call measured."""

    block: BlockRow
    tokens: int
    is_estimated: bool


def window_blocks(rows: Sequence[BlockRow], measured: dict[Component, int]) -> list[WindowBlock]:
    """Return the blocks with the tokens of each component that the turn measured, as in the chart."""
    sizes: dict[str, int] = {}
    for component in COMPONENTS if measured else ():
        total = measured.get(component, 0)
        counted = [row for row in rows if COMPONENT_OF[row.content_type] == component]
        scaled = scaled_to([row.tokens for row in counted], total)
        sizes |= {row.block_id: size for row, size in zip(counted, scaled, strict=True)}
    return [
        WindowBlock(
            row,
            size := sizes.get(row.block_id, row.tokens),
            is_estimated=size != row.tokens or row.count_source == "estimate",
        )
        for row in rows
    ]


def scaled_to(counted: Sequence[int], total: int) -> list[int]:
    """Return whole numbers in the proportions of *counted* that sum to *total*."""
    whole, passed, edge, scaled = sum(counted), 0, 0, []
    for size in counted:
        passed += size
        last, edge = edge, round(passed * total / whole) if whole else 0
        scaled.append(edge - last)
    return scaled
