"""Characters that act: none survives where a name or a text is shown."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from windowpane.core.characters import harmless, plain

ACTING = ("Cc", "Cs", "Zl", "Zp")
DIRECTION = ("LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI")


def acts(character: str) -> bool:
    return unicodedata.category(character) in ACTING or unicodedata.bidirectional(character) in DIRECTION


@given(st.text(alphabet=st.characters(categories=None), max_size=200))
def test_every_character_that_acts_is_replaced(text: str) -> None:
    assert not any(acts(character) for character in plain(text))
    assert len(plain(text)) == len(text)
    assert not any(acts(character) for character in harmless(text) if character not in "\t\n")
    plain(text).encode()


def test_every_control_of_direction_is_replaced() -> None:
    every = [chr(point) for point in range(0x110000)]

    assert [hex(ord(character)) for character in every if acts(character) and plain(character) != "?"] == []


def test_writing_stays_as_it_is() -> None:
    for text in ("Zoë", "مراجع", "レビュー\u3000担当", "18\u202f% de 20\u00a0k", "👩\u200d💻", "نمی\u200cخواهم"):
        assert plain(text) == harmless(text) == text
    assert harmless("a\tb\nc") == "a\tb\nc"
