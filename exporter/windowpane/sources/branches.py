"""The content of a session that compactions and rewinds removed, from which an abandoned branch can return."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from windowpane.core.vocabulary import STATIC_TYPES
from windowpane.core.window.blocks import Block

MAXIMUM_PARTS: Final = 64
"""Earlier windows and abandoned branches that are remembered, the latest of each."""
MAXIMUM_BLOCKS: Final = 20_000
"""Blocks that these hold together."""
_SENT_ALWAYS: Final = frozenset({"tool_definition", "unattributed"})
"""Content that belongs to no branch."""

Keys = Mapping[str, Sequence[str]]
"""Ids of blocks by the recording's key."""


@dataclass(frozen=True, slots=True)
class Branch:
    """The content of a conversation from its start, or from the block that it continued after."""

    blocks: tuple[Block, ...]
    keys: Keys
    after: str | None = None
    """The block that it continued after; None for one from the start."""

    def holds(self, block_id: str) -> bool:
        """Return whether a block is part of it."""
        return any(block.id == block_id for block in self.blocks)

    def up_to(self, block_ids: Collection[str]) -> tuple[Block, ...]:
        """Return the content up to the last of these blocks; without any, what every branch starts with."""
        for number in range(len(self.blocks) - 1, -1, -1):
            if self.blocks[number].id in block_ids:
                return tuple(block for block in self.blocks[: number + 1] if not is_sent_always(block))
        return tuple(block for block in self.blocks if is_static(block))


class EarlierContent:
    """The windows of one session before its compactions, and the branches that it abandoned."""

    def __init__(self) -> None:
        self._windows: list[Branch] = []
        self._compacted: list[Branch] = []
        """The windows before the compactions that no rewind has undone."""
        self._abandoned: list[Branch] = []
        self._without_text: dict[str, Block] = {}

    def compact(self, window: Iterable[Block], keys: Keys) -> None:
        """Remember the window before a compaction."""
        before = Branch(self._lighter(window), {key: tuple(block_ids) for key, block_ids in keys.items()})
        self._windows.append(before)
        self._compacted.append(before)
        _bound(self._windows)
        del self._compacted[:-MAXIMUM_PARTS]

    def abandon(self, blocks: Iterable[Block], keys: Keys, *, after: str | None) -> None:
        """Remember an abandoned branch, which continued after a block."""
        self._abandoned.append(Branch(self._lighter(blocks), keys, after))
        _bound(self._abandoned)

    def undo(self, compactions: int) -> Branch | None:
        """Return the window before the last *compactions*, which are undone; None where it is not remembered."""
        undone = self._compacted[-compactions:]
        del self._compacted[-compactions:]
        return undone[0] if len(undone) == compactions else None

    def holding(self, key: str, window: Branch) -> Branch | None:
        """Return the latest branch, from the start, that held *key*; *window* is the present one."""
        for branch in reversed(self._abandoned):
            if key in branch.keys:
                return self._whole(branch, window)
        return next((before for before in reversed(self._windows) if key in before.keys), None)

    def clear(self) -> None:
        """Forget all: the session continues with an empty window."""
        self._windows.clear()
        self._compacted.clear()
        self._abandoned.clear()
        self._without_text.clear()

    def _whole(self, branch: Branch, window: Branch) -> Branch:
        """Return an abandoned branch with the content that it continued after, itself abandoned or not."""
        parts = [branch]
        start: Branch | None = window
        while len(parts) < MAXIMUM_PARTS and (after := parts[-1].after) is not None:
            start = next((one for one in (window, *reversed(self._windows)) if one.holds(after)), None)
            further = next((one for one in reversed(self._abandoned) if one.holds(after)), None)
            if start is not None or further is None:
                break
            parts.append(replace(further, blocks=further.up_to({after})))
        start = start or window
        head = start.up_to({after} if (after := parts[-1].after) is not None else ())
        blocks = [*head, *(block for part in reversed(parts) for block in part.blocks)]
        keys = dict(start.keys)
        for part in reversed(parts):
            keys.update(part.keys)
        return Branch(tuple(blocks), keys)

    def _lighter(self, blocks: Iterable[Block]) -> tuple[Block, ...]:
        """Return blocks without their texts, the same objects for every branch that they are in."""
        if len(self._without_text) >= MAXIMUM_BLOCKS:
            self._without_text.clear()
        remembered = self._without_text
        return tuple(
            remembered.get(block.id) or remembered.setdefault(block.id, replace(block, text=None))
            for block in blocks
        )


def is_sent_always(block: Block) -> bool:
    """Return whether a block belongs to no branch."""
    return block.content_type in _SENT_ALWAYS


def is_static(block: Block) -> bool:
    """Return whether every branch starts with a block."""
    return block.content_type in STATIC_TYPES and not is_sent_always(block)


def not_in(blocks: Iterable[Block], others: Iterable[Block]) -> list[Block]:
    """Return those of *blocks* that are not among *others*, by id."""
    ids = {block.id for block in others}
    return [block for block in blocks if block.id not in ids]


def _bound(branches: list[Branch]) -> None:
    del branches[:-MAXIMUM_PARTS]
    while len(branches) > 1 and sum(len(one.blocks) for one in branches) > MAXIMUM_BLOCKS:
        del branches[0]
