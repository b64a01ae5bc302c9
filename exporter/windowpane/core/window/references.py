"""References of later content to blocks, recognized by identifiers that few blocks contain.

A file path, a long number, a dotted or camel-case name, a hexadecimal id or a quoted symbol refers to a block if
at most three blocks of the window contain it. The time is linear in new text and bounded for each block; removed
blocks are discarded from the index.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import chain, islice
from typing import Final

from windowpane.core.remembered import Remembered
from windowpane.core.vocabulary import ContentType

IDENTIFIERS_PER_BLOCK: Final = 32
MAXIMUM_HOLDERS: Final = 3
"""An identifier in more blocks refers to none of them."""
MAXIMUM_CHARACTERS: Final = 200_000
"""Characters of one text that are read."""
MAXIMUM_CANDIDATES: Final = 4_096
"""Distinct identifiers of one text that are considered."""
MAXIMUM_USED: Final = 512
"""Identifiers remembered as used; the least recently used are discarded first."""
INDEXED_TYPES: Final[frozenset[ContentType]] = frozenset({"tool_result", "memory_injection", "user_message"})
"""Types of content that can be referenced."""
REFERRING_TYPES: Final[frozenset[ContentType]] = frozenset({"assistant_response", "tool_call"})
"""Types of content, written by the model, whose identifiers refer to other blocks."""

_WORD: Final = re.compile(rb"[A-Za-z0-9_~/][A-Za-z0-9_./\-]{3,159}")
_QUOTED: Final = re.compile(rb'"([A-Za-z_][A-Za-z0-9_\-]{3,63})"')
_ONE_QUOTE: Final = bytes.maketrans(b"`'", b'""')
"""Makes all quotes the same, so that their search is one for a character."""
_ARGUMENT_NAME: Final = re.compile(r'(?<!\\)"[\w\-]{1,64}"\s*:')
_CAMEL: Final = re.compile(r"[a-z0-9][A-Z]")
_LONG_NUMBER_DIGITS: Final = 5
_HEXADECIMAL: Final = re.compile(r"(?=[0-9a-f-]*\d)(?=[0-9a-f-]*[a-f])[0-9a-f-]{7,64}")


def identifiers(text: str) -> list[str]:
    """Return the distinct identifiers of *text* in order of first appearance, quoted symbols last."""
    data = text[:MAXIMUM_CHARACTERS].encode("ascii", "replace").translate(_ONE_QUOTE)
    spelled_out = filter(None, map(_IDENTIFIERS.__getitem__, dict.fromkeys(_WORD.findall(data))))
    quoted = map(bytes.decode, _QUOTED.findall(data))
    return list(islice(dict.fromkeys(chain(spelled_out, quoted)), MAXIMUM_CANDIDATES))


def argument_values(text: str) -> str:
    """Arguments of a tool call without their names: those are the tool's words, not a use of any content."""
    return _ARGUMENT_NAME.sub(" ", text)


def _identifies(word: str) -> bool:
    if len(word) < 4:
        return False
    if word.isdigit():
        return len(word) >= _LONG_NUMBER_DIGITS
    inner = word.strip("/_.-~")
    if not inner or inner.replace(".", "").isdigit():
        return False
    return (
        "/" in inner
        or "_" in inner
        or "." in inner
        or _CAMEL.search(word) is not None
        or _HEXADECIMAL.fullmatch(word) is not None
    )


def _identifier_of(word: bytes) -> str:
    """Return the identifier in a word, without the punctuation that ends it; empty for any other word."""
    if word.isalpha() and word[1:].islower():
        return ""
    identifier = word.decode().rstrip("./-")
    return identifier if _identifies(identifier) else ""


_IDENTIFIERS: Final = Remembered(_identifier_of)


class ReferenceIndex:
    """An index of the blocks of one window by their rare identifiers."""

    def __init__(self) -> None:
        self._holders: dict[str, dict[str, None]] = {}
        self._held: dict[str, tuple[str, ...]] = {}
        self._used: dict[str, int] = {}

    def __len__(self) -> int:
        """Return the number of indexed blocks."""
        return len(self._held)

    def add(self, block_id: str, text: str) -> None:
        """Index a block by its rarest identifiers, those in the fewest other blocks; longer ones first."""
        holders = self._holders
        candidates = identifiers(text)
        if len(candidates) > IDENTIFIERS_PER_BLOCK:
            candidates.sort(key=len, reverse=True)
            candidates.sort(key=lambda name: len(holders.get(name, ())))
            del candidates[IDENTIFIERS_PER_BLOCK:]
        if not candidates:
            return
        self.discard(block_id)
        self._held[block_id] = tuple(candidates)
        for name in candidates:
            holders.setdefault(name, {})[block_id] = None

    def discard(self, block_id: str) -> None:
        """Remove a block from the index."""
        for name in self._held.pop(block_id, ()):
            holders = self._holders[name]
            del holders[block_id]
            if not holders:
                del self._holders[name]

    def clear(self) -> None:
        """Remove all blocks from the index."""
        self._holders.clear()
        self._held.clear()

    def referenced(self, text: str, *, turn: int = 0) -> tuple[str, ...]:
        """Return the blocks that *text* refers to; the identifiers count as used in *turn*."""
        block_ids: dict[str, None] = {}
        holders, used = self._holders, self._used
        for name in identifiers(text):
            blocks = holders.get(name)
            if blocks is None and name not in used:
                continue
            used.pop(name, None)
            used[name] = turn
            if blocks is not None and len(blocks) <= MAXIMUM_HOLDERS:
                block_ids.update(blocks)
        while len(used) > MAXIMUM_USED:
            del used[next(iter(used))]
        return tuple(block_ids)

    @property
    def used(self) -> tuple[str, ...]:
        """Identifiers that later text used, least recent first, including those of removed blocks."""
        return tuple(self._used)

    def in_use(self, since_turn: int) -> dict[str, list[str]]:
        """Return the blocks with identifiers used since *since_turn*, and these, most recent first."""
        names: dict[str, list[str]] = {}
        for name, turn in reversed(self._used.items()):
            if turn < since_turn:
                break
            holders = self._holders.get(name, ())
            if len(holders) <= MAXIMUM_HOLDERS:
                for block_id in holders:
                    names.setdefault(block_id, []).append(name)
        return names

    def held(self, block_id: str) -> tuple[str, ...]:
        """Return the identifiers by which a block is indexed."""
        return self._held.get(block_id, ())

    def holders(self, name: str) -> Collection[str]:
        """Return the blocks that are indexed by an identifier."""
        return self._holders.get(name, {}).keys()
