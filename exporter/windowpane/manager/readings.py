"""Readings of a session's texts, made ahead of the hooks that need the facts of the whole window."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from windowpane.core.vocabulary import ContentType
from windowpane.core.window.blocks import Block
from windowpane.fidelity.facts import Reading, read_text

BATCH_CHARACTERS: Final = 8_000
"""Characters that are read together ahead; fewer are read where they are needed."""
MAXIMUM_READINGS: Final = 4_000
"""Texts whose readings are remembered; one more starts anew."""

ReadAhead = Callable[[Callable[[], None], int], object]
"""Takes a reading to make later, off the agent's path, and the characters of its texts."""


class Readings:
    """The readings of texts in a window, by type and text; without *later* each is made when it is needed."""

    def __init__(self, later: ReadAhead | None = None) -> None:
        self.later = later
        self._readings: dict[tuple[ContentType, str], Reading] = {}
        self._new: list[Block] = []
        self._characters = 0

    def read(self, content_type: ContentType, text: str) -> Reading:
        """Return the reading of a text; called on any thread."""
        key = (content_type, text)
        reading = self._readings.get(key)
        if reading is None:
            reading = read_text(content_type, text)
            if self.later is not None:
                if len(self._readings) >= MAXIMUM_READINGS:
                    self._readings.clear()
                self._readings[key] = reading
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
        self._readings.pop((block.content_type, block.text or ""), None)

    def _read_all(self, blocks: list[Block]) -> None:
        for block in blocks:
            self.read(block.content_type, block.text or "")
