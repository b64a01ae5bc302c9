"""Texts as markers of character classes, in which a search of bytes finds runs."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


class CharacterClasses:
    """Replaces each character of a text by the marker of its class."""

    def __init__(self, classes: Mapping[str, str]) -> None:
        table = bytearray(256)
        for marker, characters in classes.items():
            for character in characters:
                table[ord(character)] = ord(marker)
        self._table = bytes(table)

    def markers(self, text: str) -> bytes:
        """Return one marker per character of *text*; a character without a class is a null byte."""
        return text.encode("latin-1", "replace").translate(self._table)


Run = tuple[int, int]
"""Start and end of characters of one class that follow each other."""

_BASE64: Final = CharacterClasses({"a": f"{string.ascii_letters}{string.digits}+/_-"})
_LONG: Final = b"a" * 20
_NO_CLASS: Final = b"\0"


def long_runs(text: str) -> list[Run]:
    """Return the runs of 20 and more characters of Base64, in its alphabet for texts or for URLs."""
    if len(text) < len(_LONG):
        return []
    markers = _BASE64.markers(text)
    runs = []
    start = markers.find(_LONG)
    while start >= 0:
        end = markers.find(_NO_CLASS, start)
        runs.append((start, end if end >= 0 else len(text)))
        start = markers.find(_LONG, runs[-1][1])
    return runs
