"""Names in a session's texts, read ahead of the hooks that need those of the whole window."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from windowpane.core.window.blocks import Block
from windowpane.fidelity.facts import Names, names_of

BATCH_CHARACTERS: Final = 8_000
"""Characters that are read together ahead; fewer are read where they are needed."""
MAXIMUM_READINGS: Final = 4_000
"""Texts whose readings are remembered; one more starts anew."""

ReadAhead = Callable[[Callable[[], None], int], object]
"""Takes a reading to make later, off the agent's path, and the characters of its texts."""


class Readings:
    """The names in each text of a window; without *later* a text is read when they are needed."""

    def __init__(self, later: ReadAhead | None = None) -> None:
        self.later = later
        self._readings: dict[str, Names] = {}
        self._new: list[Block] = []
        self._characters = 0

    def read(self, text: str) -> Names:
        """Return the names in a text; called on any thread."""
        reading = self._readings.get(text)
        if reading is None:
            reading = names_of(text)
            if self.later is not None:
                if len(self._readings) >= MAXIMUM_READINGS:
                    self._readings.clear()
                self._readings[text] = reading
        return reading

    def add(self, block: Block) -> None:
        """Have a block read ahead, with others once they are many."""
        if self.later is None or not block.text:
            return
        self._new.append(block)
        self._characters += block.chars
        if self._characters >= BATCH_CHARACTERS:
            blocks, characters = self._new, self._characters
            self._new, self._characters = [], 0
            self.later(lambda: self._read_all(blocks), characters)

    def discard(self, block: Block) -> None:
        """Forget the reading of a block that was removed."""
        self._readings.pop(block.text or "", None)

    def _read_all(self, blocks: list[Block]) -> None:
        for block in blocks:
            self.read(block.text or "")
