"""Which blocks later content refers to, found by identifiers that few blocks hold.

A file path, a long number, a dotted or camel-case name, a hexadecimal id or a quoted symbol that stands in at
most three blocks of the window names them well enough. Work is linear in new text and bounded for each block;
blocks that left are forgotten.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from windowpane.core.vocabulary import ContentType

IDENTIFIERS_PER_BLOCK: Final = 32
MAXIMUM_HOLDERS: Final = 3
"""An identifier that more blocks hold refers to none of them."""
MAXIMUM_CHARACTERS: Final = 200_000
"""Of one text; the rest of a longer one is not read."""
MAXIMUM_CANDIDATES: Final = 4_096
"""Distinct identifiers of one text that are looked at."""
MAXIMUM_USED: Final = 512
"""Identifiers remembered as used; those not used for longest are forgotten first."""
INDEXED_TYPES: Final[frozenset[ContentType]] = frozenset({"tool_result", "memory_injection", "user_message"})
"""Types of content that can be referred to."""
REFERRING_TYPES: Final[frozenset[ContentType]] = frozenset({"assistant_response", "tool_call"})
"""Types of content, written by the model, whose identifiers refer to other blocks."""

_WORD: Final = re.compile(r"[A-Za-z0-9_~/][A-Za-z0-9_./\-]{3,159}")
_QUOTED: Final = re.compile(r"[`'\"]([A-Za-z_][A-Za-z0-9_\-]{3,63})[`'\"]")
_ARGUMENT_NAME: Final = re.compile(r'(?<!\\)"[\w\-]{1,64}"\s*:')
_CAMEL: Final = re.compile(r"[a-z0-9][A-Z]")
_LONG_NUMBER_DIGITS: Final = 5
_HEXADECIMAL: Final = re.compile(r"(?=[0-9a-f-]*\d)(?=[0-9a-f-]*[a-f])[0-9a-f-]{7,64}")


def identifiers(text: str) -> list[str]:
    """The distinct identifiers of *text*, in order of first appearance."""
    text = text[:MAXIMUM_CHARACTERS]
    found: dict[str, None] = {}
    for match in _WORD.finditer(text):
        word = match.group().rstrip("./-")
        if word not in found and _identifies(word):
            found[word] = None
            if len(found) >= MAXIMUM_CANDIDATES:
                return list(found)
    for match in _QUOTED.finditer(text):
        found[match.group(1)] = None
        if len(found) >= MAXIMUM_CANDIDATES:
            break
    return list(found)


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


class ReferenceIndex:
    """The rare identifiers of the blocks in one window."""

    def __init__(self) -> None:
        self._holders: dict[str, dict[str, None]] = {}
        self._held: dict[str, tuple[str, ...]] = {}
        self._used: dict[str, int] = {}

    def __len__(self) -> int:
        """How many blocks are indexed."""
        return len(self._held)

    def add(self, block_id: str, text: str) -> None:
        """Index a block by its rarest identifiers, those that the fewest other blocks hold; longer ones first."""
        holders = self._holders
        candidates = identifiers(text)
        if len(candidates) > IDENTIFIERS_PER_BLOCK:
            candidates.sort(key=lambda name: (len(holders.get(name, ())), -len(name)))
            del candidates[IDENTIFIERS_PER_BLOCK:]
        if not candidates:
            return
        self.forget(block_id)
        self._held[block_id] = tuple(candidates)
        for name in candidates:
            holders.setdefault(name, {})[block_id] = None

    def forget(self, block_id: str) -> None:
        """The block has left the window."""
        for name in self._held.pop(block_id, ()):
            holders = self._holders[name]
            del holders[block_id]
            if not holders:
                del self._holders[name]

    def clear(self) -> None:
        """Every block has left."""
        self._holders.clear()
        self._held.clear()

    def mentioned(self, text: str, *, turn: int = 0) -> tuple[str, ...]:
        """The blocks that *text* refers to, each once; what it refers to them by counts as used in *turn*."""
        found: dict[str, None] = {}
        holders, used = self._holders, self._used
        for name in identifiers(text):
            blocks = holders.get(name)
            if blocks is None and name not in used:
                continue
            used.pop(name, None)
            used[name] = turn
            if blocks is not None and len(blocks) <= MAXIMUM_HOLDERS:
                found.update(blocks)
        while len(used) > MAXIMUM_USED:
            del used[next(iter(used))]
        return tuple(found)

    @property
    def used(self) -> tuple[str, ...]:
        """Identifiers of content that later text used, the last used one last; they outlive their blocks."""
        return tuple(self._used)

    def in_use(self, since_turn: int) -> dict[str, list[str]]:
        """The blocks that identifiers used from *since_turn* on refer to, with these, last used ones first."""
        found: dict[str, list[str]] = {}
        for name, turn in reversed(self._used.items()):
            if turn < since_turn:
                break
            holders = self._holders.get(name, ())
            if len(holders) <= MAXIMUM_HOLDERS:
                for block_id in holders:
                    found.setdefault(block_id, []).append(name)
        return found

    def held(self, block_id: str) -> tuple[str, ...]:
        """The identifiers a block is indexed by."""
        return self._held.get(block_id, ())

    def holders(self, name: str) -> Collection[str]:
        """The blocks that are indexed by an identifier."""
        return self._holders.get(name, {}).keys()
