"""Text of an agent is displayed literally and has no effect."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from windowpane_dashboard.charts.layout import CONFIG, escape_label
from windowpane_dashboard.style.sanitize import LENGTH, escape_markdown, harmless_table, sanitized


@pytest.mark.parametrize("acting", ["\u202e", "\u2066", "\u200f", "\x1b", "\x00", "\x9b", "\ufeff", "\ud800"])
def test_control_characters_are_made_visible(acting: str) -> None:
    assert sanitized(f"a{acting}b") == "a\ufffdb"
    assert acting not in escape_label(f"a{acting}b")
    assert acting not in escape_markdown(f"a{acting}b")


def test_other_scripts_are_unchanged() -> None:
    text = "العربية עברית é 👩‍💻 日本語\nnext\ttab"

    assert sanitized(text) == text


@given(st.text(), st.integers(2, 50))
def test_a_text_is_cut_to_the_requested_length(text: str, length: int) -> None:
    visible = sanitized(text, length=length)

    assert len(visible) <= length + 40
    if len(text) <= length:
        assert len(visible) == len(text)


def test_a_word_of_a_million_characters_is_cut() -> None:
    visible = sanitized("x" * 1_000_000)

    assert len(visible) < LENGTH + 40
    assert "998,000 characters" in visible


def test_hover_text_is_escaped() -> None:
    assert escape_label("<a href='javascript:x'>x</a> & <b>") == (
        "&lt;a href=&#x27;javascript:x&#x27;&gt;x&lt;/a&gt; &amp; &lt;b&gt;"
    )
    assert CONFIG["showSendToCloud"] is False
    assert CONFIG["displaylogo"] is False


def test_tables_hold_no_acting_characters() -> None:
    frame = pd.DataFrame(
        {
            "text": ["safe \u202eeslaf\u202c", "line\nnext", "\x1b[31m"],
            "tokens": [1, 2, 3],
            "mixed": ["\u2066", None, 4],
        }
    )

    clean = harmless_table(frame)

    assert list(clean["text"]) == ["safe \ufffdeslaf\ufffd", "line\nnext", "\ufffd[31m"]
    assert list(clean["tokens"]) == [1, 2, 3]
    assert list(clean["mixed"]) == ["\ufffd", None, 4]
    assert frame["text"].iloc[0] == "safe \u202eeslaf\u202c"


def test_styled_tables_are_sanitized_as_well() -> None:
    def page() -> None:
        import pandas as pd

        from windowpane_dashboard.page import widgets

        frame = pd.DataFrame({"name": ["\u202eeman"], "tokens": [1]})
        widgets.table(frame.style.map(lambda _: "color: red", subset=["name"]), key="styled", alt="A table")

    app = AppTest.from_function(page).run()

    assert not app.exception
    assert app.dataframe[0].value["name"].iloc[0] == "\ufffdeman"
