"""Immutable snapshots of a window, from which policies make their plans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from windowpane.core.limits import WindowLimits
from windowpane.core.vocabulary import ContentType
from windowpane.core.window.blocks import Block
from windowpane.core.window.window import Slot


class Item(NamedTuple):
    """A block with its references."""

    block: Block
    referenced_turn: int | None
    references: int
    stale: bool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One version of a window with its limits; a plan holds only for a window of the same `version`."""

    version: int
    turn: int
    exchange: int
    limits: WindowLimits
    items: tuple[Item, ...]
    """In the order the model sees them."""
    lifetimes: Mapping[ContentType, int]
    goal_block: str | None = None
    """The block that states the task."""
    open_calls: frozenset[str] = frozenset()
    """Groups with a tool call that has no result yet."""
    findings: Mapping[str, str] = field(default_factory=dict)
    """One line of what each tool result groups, by block id, taken when it was added."""
    in_use: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Identifiers that the agent used lately, most recent first, by id of the block that contains them."""
    protected_types: frozenset[ContentType] = frozenset()
    """Content types that are never removed, beside those that never are."""
    references_known: bool = False
    """True if references are tracked; otherwise scores omit that term."""

    @property
    def tokens(self) -> int:
        """Sum of the blocks' tokens."""
        return sum(item.block.tokens for item in self.items)


class Group(NamedTuple):
    """Blocks that are added and removed together, in order."""

    id: str
    items: tuple[Item, ...]
    position: int
    """Of its first block in the snapshot."""

    @property
    def tokens(self) -> int:
        """Sum of its blocks' tokens."""
        return sum(item.block.tokens for item in self.items)

    @property
    def has_call(self) -> bool:
        """True for a tool call with its results."""
        return any(item.block.content_type == "tool_call" for item in self.items)


def items_of(slots: Iterable[Slot]) -> tuple[Item, ...]:
    """Return the window's slots as items."""
    return tuple(Item(slot.block, slot.referenced_turn, slot.references, slot.stale) for slot in slots)


def groups_of(items: Sequence[Item]) -> list[Group]:
    """Return the groups in the order of their first blocks."""
    groups: dict[str, list[Item]] = {}
    first: dict[str, int] = {}
    for index, item in enumerate(items):
        group = item.block.group
        if group in groups:
            groups[group].append(item)
        else:
            groups[group] = [item]
            first[group] = index
    return [Group(name, tuple(members), first[name]) for name, members in groups.items()]
