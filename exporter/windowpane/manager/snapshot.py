"""A window at one version, as policies see it: immutable, with the limits and what is known beside the blocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from windowpane.core.limits import WindowLimits
from windowpane.core.vocabulary import ContentType
from windowpane.core.window.blocks import Block
from windowpane.core.window.window import Slot


class Item(NamedTuple):
    """A block in its place."""

    block: Block
    referenced_turn: int | None
    references: int
    stale: bool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a plan is made from. A plan is good only for a window of the same `version`."""

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
    """One line of what each tool result found, by block id, taken when it came in."""
    in_use: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Names the agent used lately, last used ones first, by id of the blocks that hold them."""
    protected_types: frozenset[ContentType] = frozenset()
    """Content that never leaves, beside what never leaves anyway."""
    references_known: bool = False
    """Whether anything tracks references; if not, that term is left out of every score."""

    @property
    def tokens(self) -> int:
        """Sum of the blocks' tokens."""
        return sum(item.block.tokens for item in self.items)


class Group(NamedTuple):
    """Blocks that enter and leave together, in order."""

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
        """Whether it is a tool group."""
        return any(item.block.content_type == "tool_call" for item in self.items)


def items_of(slots: Iterable[Slot]) -> tuple[Item, ...]:
    """The window's slots as items."""
    return tuple(Item(slot.block, slot.referenced_turn, slot.references, slot.stale) for slot in slots)


def groups_of(items: Sequence[Item]) -> list[Group]:
    """The groups in the order of their first blocks."""
    found: dict[str, list[Item]] = {}
    first: dict[str, int] = {}
    for index, item in enumerate(items):
        group = item.block.group
        if group in found:
            found[group].append(item)
        else:
            found[group] = [item]
            first[group] = index
    return [Group(name, tuple(members), first[name]) for name, members in found.items()]
