"""The content of a session that compactions and rewinds removed, and that returns with its branch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from msgspec.structs import replace

from windowpane.core.vocabulary import STATIC_TYPES
from windowpane.core.window.blocks import Block

MAXIMUM_WINDOWS: Final = 32
"""Windows before a compaction that are remembered, the latest."""
MAXIMUM_KEYS: Final = 20_000
"""Keys whose removed content is remembered, the latest."""
_SENT_ALWAYS: Final = frozenset({"tool_definition", "unattributed"})
"""Content that belongs to no branch."""

Keys = Mapping[str, Sequence[str]]
"""Ids of blocks by the recording's key."""
_NOT_RENAMED: Final[Mapping[str, str]] = {}


class Move(NamedTuple):
    """A change of the window from one branch to another, after the content that both start with."""

    last_kept: str | None
    abandoned: tuple[Block, ...]
    returning: tuple[Block, ...]


def move(window: Iterable[Block], wanted: Sequence[Block]) -> Move:
    """Return what changes *window* into *wanted*; content that belongs to no branch stays."""
    present = [block for block in window if block.content_type not in _SENT_ALWAYS]
    common = 0
    for block, other in zip(present, wanted, strict=False):
        if block.id != other.id:
            break
        common += 1
    last_kept = present[common - 1].id if common else None
    return Move(last_kept, tuple(present[common:]), tuple(wanted[common:]))


def up_to(blocks: Sequence[Block], block_ids: Collection[str]) -> list[Block]:
    """Return the content up to the last of *block_ids*; without any, what every branch starts with."""
    for number in range(len(blocks) - 1, -1, -1):
        if blocks[number].id in block_ids:
            return [block for block in blocks[: number + 1] if block.content_type not in _SENT_ALWAYS]
    return [block for block in blocks if block.content_type in STATIC_TYPES - _SENT_ALWAYS]


class BlockKeys(Mapping[str, Sequence[str]]):
    """The ids of the blocks in the window, by the recording's keys.

    Most keys are those of one block: its id is held without a sequence around it.
    """

    def __init__(self) -> None:
        self._ids: dict[str, str | list[str]] = {}

    def __getitem__(self, key: str) -> Sequence[str]:
        ids = self._ids[key]
        return (ids,) if isinstance(ids, str) else ids

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, key: str, block_id: str) -> None:
        """Add a block to those of *key*."""
        ids = self._ids.setdefault(key, block_id)
        if isinstance(ids, list):
            ids.append(block_id)
        elif ids is not block_id:
            self._ids[key] = [ids, block_id]

    def retain(self, window: Container[str], renamed: Mapping[str, str] = _NOT_RENAMED) -> None:
        """Keep the blocks in *window*, some of them under a new id."""
        for key, block_ids in list(self.items()):
            self._set(key, [name for old in block_ids if (name := renamed.get(old, old)) in window])

    def discard(self, block_ids: Iterable[str]) -> Keys:
        """Remove blocks, and return their ids by key."""
        order = {block_id: number for number, block_id in enumerate(block_ids)}
        discarded = {}
        for key, present in list(self.items()) if order else ():
            if removed := [block_id for block_id in present if block_id in order]:
                discarded[key] = sorted(removed, key=order.__getitem__)
                self._set(key, [block_id for block_id in present if block_id not in order])
        return discarded

    def _set(self, key: str, block_ids: list[str]) -> None:
        if not block_ids:
            del self._ids[key]
        else:
            self._ids[key] = block_ids if len(block_ids) > 1 else block_ids[0]

    def clear(self) -> None:
        """Remove all keys."""
        self._ids.clear()


@dataclass(frozen=True, slots=True)
class _Window:
    blocks: tuple[Block, ...]
    keys: Keys


class RemovedContent:
    """The removed content of one session, without its texts."""

    def __init__(self) -> None:
        self._windows: list[_Window] = []
        """Those before the compactions that no rewind has undone."""
        self._by_key: dict[str, tuple[Block, ...]] = {}
        self._keys: dict[str, list[str]] = {}
        """The recording's keys by block."""

    def compact(self, window: Iterable[Block], keys: Keys) -> None:
        """Remember the window before a compaction."""
        blocks = tuple(map(_without_text, window))
        copied = {key: tuple(block_ids) for key, block_ids in keys.items()}
        self._windows.append(_Window(blocks, copied))
        del self._windows[:-MAXIMUM_WINDOWS]
        self.remember(blocks, copied)

    def remember(self, blocks: Iterable[Block], keys: Keys) -> None:
        """Remember content that is removed, by its keys."""
        by_id = {block.id: _without_text(block) for block in blocks}
        for key, block_ids in keys.items():
            removed = tuple(by_id[block_id] for block_id in block_ids if block_id in by_id)
            if removed:
                self._by_key.pop(key, None)
                self._by_key[key] = removed
            for block in removed:
                self._keys.setdefault(block.id, []).append(key)
        while len(self._by_key) > MAXIMUM_KEYS:
            for block in self._by_key.pop(next(iter(self._by_key))):
                self._keys.pop(block.id, None)

    def keys_of(self, block_id: str) -> Sequence[str]:
        """Return the recording's keys of removed content."""
        return tuple(dict.fromkeys(self._keys.get(block_id, ())))

    def undo(self, compactions: int, key: str | None) -> list[Block] | None:
        """Return the content up to *key* before the last *compactions*, which are undone; None if unknown."""
        undone = self._windows[-compactions:]
        del self._windows[-compactions:]
        if len(undone) < compactions:
            return None
        return up_to(undone[0].blocks, frozenset(undone[0].keys.get(key, ()) if key is not None else ()))

    def content(self, keys: Iterable[str], present: Callable[[str], Sequence[Block]]) -> list[Block]:
        """Return the blocks of *keys* in order, those that are *present* in the window or removed ones."""
        return [block for key in keys for block in present(key) or self._by_key.get(key, ())]

    def clear(self) -> None:
        """Forget all: the session continues with an empty window."""
        self._windows.clear()
        self._by_key.clear()
        self._keys.clear()


def _without_text(block: Block) -> Block:
    return block if block.text is None else replace(block, text=None)
