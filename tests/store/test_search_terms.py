"""The parts of an event that both indexes hold."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from windowpane.store.search.events import words_of


@given(st.one_of(st.text(), st.text(st.characters(max_codepoint=127))))
def test_ascii_texts_are_split_as_the_expression_splits_them(text: str) -> None:
    assert words_of(text) == re.findall(r"\w+", text.lower())
