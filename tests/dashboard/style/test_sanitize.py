"""Text of an agent is displayed literally and has no effect."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane_dashboard.charts.layout import CONFIG, escape_label
from windowpane_dashboard.style.sanitize import LENGTH, escape_markdown, sanitized


@pytest.mark.parametrize("acting", ["\u202e", "\u2066", "\u200f", "\x1b", "\x00", "\x9b", "\ufeff", "\ud800"])
def test_control_characters_are_made_visible(acting: str) -> None:
    """Direction marks, escapes and lone surrogates become a replacement character."""
    assert sanitized(f"a{acting}b") == "a\ufffdb"
    assert acting not in escape_label(f"a{acting}b")
    assert acting not in escape_markdown(f"a{acting}b")


def test_other_scripts_are_unchanged() -> None:
    """Arabic, Hebrew, combining marks, emoji sequences and line breaks are kept."""
    text = "العربية עברית é 👩‍💻 日本語\nnext\ttab"

    assert sanitized(text) == text


@given(st.text(), st.integers(2, 50))
def test_a_text_is_cut_to_the_requested_length(text: str, length: int) -> None:
    """Short texts stay whole; long ones keep both ends and the number of omitted characters."""
    visible = sanitized(text, length=length)

    assert len(visible) <= length + 40
    if len(text) <= length:
        assert len(visible) == len(text)


def test_a_word_of_a_million_characters_is_cut() -> None:
    """Its beginning, its end and the number of omitted characters are kept."""
    visible = sanitized("x" * 1_000_000)

    assert len(visible) < LENGTH + 40
    assert "998,000 characters" in visible


def test_hover_text_is_escaped() -> None:
    """Plotly's pseudo-HTML is escaped and nothing is sent to a cloud."""
    assert escape_label("<a href='javascript:x'>x</a> & <b>") == (
        "&lt;a href=&#x27;javascript:x&#x27;&gt;x&lt;/a&gt; &amp; &lt;b&gt;"
    )
    assert CONFIG["showSendToCloud"] is False
    assert CONFIG["displaylogo"] is False
