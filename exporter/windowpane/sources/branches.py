"""The windows of a session before it was compacted or rewound, from which an abandoned branch can return."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from windowpane.core.vocabulary import STATIC_TYPES
from windowpane.core.window.blocks import Block

MAXIMUM_WINDOWS: Final = 32
"""Earlier windows that are remembered, the latest."""
MAXIMUM_BLOCKS: Final = 20_000
"""Blocks that they hold together."""
_SENT_ALWAYS: Final = frozenset({"tool_definition", "unattributed"})
"""Content that belongs to no branch."""


@dataclass(frozen=True, slots=True)
class EarlierWindow:
    """The content of a window at one moment, without its texts."""

    blocks: tuple[Block, ...]
    keys: Mapping[str, Sequence[str]]
    """Ids of the blocks by the recording's key."""
    compacted: bool
    """A compaction followed."""

    def up_to(self, key: str | None) -> tuple[Block, ...]:
        """Return the content up to the last block of *key*; without one, what every branch starts with."""
        ids = frozenset(self.keys.get(key, ())) if key is not None else frozenset()
        last = max((number for number, block in enumerate(self.blocks) if block.id in ids), default=None)
        if last is None:
            return tuple(block for block in self.branch if block.content_type in STATIC_TYPES)
        return tuple(block for block in self.blocks[: last + 1] if block.content_type not in _SENT_ALWAYS)

    @property
    def branch(self) -> tuple[Block, ...]:
        """The content that a rewind can remove."""
        return tuple(block for block in self.blocks if block.content_type not in _SENT_ALWAYS)


class EarlierWindows:
    """The earlier windows of one session, bounded in number and size."""

    def __init__(self) -> None:
        self._windows: list[EarlierWindow] = []
        self._without_text: dict[str, Block] = {}

    def remember(
        self, window: Iterable[Block], keys: Mapping[str, Sequence[str]], *, compacted: bool
    ) -> EarlierWindow:
        """Remember the window as it is, and return it."""
        remembered = EarlierWindow(tuple(map(self._lighter, window)), dict(keys), compacted)
        self._windows.append(remembered)
        while len(self._windows) > 1 and (
            len(self._windows) > MAXIMUM_WINDOWS or sum(len(one.blocks) for one in self._windows) > MAXIMUM_BLOCKS
        ):
            del self._windows[0]
        return remembered

    def holding(self, key: str | None, *, compactions: int) -> EarlierWindow | None:
        """Return the window before the last *compactions*; without any, the latest that holds *key*."""
        compacted = [window for window in self._windows if window.compacted]
        if compactions:
            undone = compacted[-compactions:]
            return undone[0] if len(undone) == compactions else None
        return next((window for window in reversed(self._windows) if key in window.keys), None)

    def clear(self) -> None:
        """Forget all: the session continues with an empty window."""
        self._windows.clear()
        self._without_text.clear()

    def _lighter(self, block: Block) -> Block:
        """Return a block without its text, the same object for every window that it is in."""
        lighter = self._without_text.get(block.id)
        if lighter is None:
            if len(self._without_text) >= MAXIMUM_BLOCKS:
                self._without_text.clear()
            lighter = self._without_text[block.id] = replace(block, text=None)
        return lighter


def not_in(blocks: Iterable[Block], others: Collection[Block]) -> list[Block]:
    """Return those of *blocks* that are not among *others*, by id."""
    ids = {block.id for block in others}
    return [block for block in blocks if block.id not in ids]
