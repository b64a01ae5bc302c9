"""Words of an agent are shown, and do nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane_dashboard.charts.layout import escape_label
from windowpane_dashboard.style.sanitize import LENGTH, escape_markdown, sanitized


@pytest.mark.parametrize("acting", ["\u202e", "\u2066", "\u200f", "\x1b", "\x00", "\x9b", "\ufeff", "\ud800"])
def test_what_acts_unseen_is_seen(acting: str) -> None:
    """Direction marks, escapes and half characters become a sign that something was there."""
    assert sanitized(f"a{acting}b") == "a\ufffdb"
    assert acting not in escape_label(f"a{acting}b")
    assert acting not in escape_markdown(f"a{acting}b")


def test_other_scripts_are_left_alone() -> None:
    """Arabic, Hebrew, combining marks, emoji sequences and line breaks are no threat."""
    text = "العربية עברית é 👩‍💻 日本語\nnext\ttab"

    assert sanitized(text) == text


@given(st.text(), st.integers(2, 50))
def test_a_text_is_never_much_longer_than_asked(text: str, length: int) -> None:
    """Short ones stay whole, of long ones both ends do, with how much is missing between."""
    shown = sanitized(text, length=length)

    assert len(shown) <= length + 40
    if len(text) <= length:
        assert len(shown) == len(text)


def test_a_word_of_a_million_characters_is_folded() -> None:
    """Its beginning, its end and its length are told."""
    shown = sanitized("x" * 1_000_000)

    assert len(shown) < LENGTH + 40
    assert "998,000 characters" in shown
