"""Text in lower case with unchanged positions."""

from __future__ import annotations


def fold(text: str) -> str:
    """Return *text* in lower case; a character whose lower case is longer stays."""
    folded = text.lower()
    return folded if len(folded) == len(text) else "".join(map(_fold_character, text))


def _fold_character(character: str) -> str:
    folded = character.lower()
    return folded if len(folded) == 1 else character
