"""What a compression made of what: both texts side by side, line by line, with the facts marked.

The texts are an agent's: every character is escaped for Markdown, and nothing is given to the browser as HTML.
"""

from __future__ import annotations

import unicodedata
from typing import Final

import streamlit as st

from windowpane.text.formats import count
from windowpane_dashboard.page import widgets as elements
from windowpane_dashboard.queries.text_diff import Difference, Line, Piece, Shown, difference
from windowpane_dashboard.queries.window import ContentSide

PIXELS: Final = 380
SIGNS: Final = {"same": "\u2007", "gone": "−", "new": "\\+"}
_FACTS: Final = {
    "kept": ("green", "✓"),
    "recoverable": ("grey", "↺"),
    "lost": ("red", "✕"),
    "contradicted": ("violet", "≠"),
}


def before_and_after(before: ContentSide, after: ContentSide, facts: dict[str, str]) -> None:
    """Draw both sides beside each other with a legend."""
    found = difference(
        [text for text in before.texts if text is not None],
        [text for text in after.texts if text is not None],
        facts,
    )
    st.markdown(legend(found))
    left, right = st.columns(2, gap="medium")
    for place, title, side, shown in (
        (left, "Before", before, found.before),
        (right, "After", after, found.after),
    ):
        with place:
            st.markdown(f"**{title}**: {count(len(side.blocks), 'block')}, {_lines_words(shown)}")
            if shown.lines:
                with st.container(height=PIXELS, key=f"side_{title.lower()}"):
                    st.markdown("  \n".join(line_words(line) for line in shown.lines))
            _left_out(side, shown)


def legend(found: Difference) -> str:
    """The signs in use, as Markdown."""
    marked = {
        piece.outcome
        for shown in (found.before, found.after)
        for line in shown.lines
        for piece in line.pieces
        if piece.outcome
    }
    facts = [f":{colour}-background[{sign} {name}]" for name, (colour, sign) in _FACTS.items() if name in marked]
    signs = ["− only before", "+ only after", "no sign: in both"]
    return ":small[" + " · ".join([*signs, *facts]) + "]"


def line_words(line: Line) -> str:
    """One line as Markdown in which nothing of the text is markup."""
    return f"{SIGNS[line.state]} " + "".join(_piece_words(piece) for piece in line.pieces)


def _piece_words(piece: Piece) -> str:
    text = _inert(piece.text)
    if piece.outcome is None or not text.strip():
        return text
    colour, sign = _FACTS[piece.outcome]
    return f":{colour}-background[{sign}\u00a0{text.strip()}]"


def _inert(text: str) -> str:
    """Escaped, spaces kept; control and direction characters replaced, so that no line turns another around."""
    seen = "".join(
        " " if character == "\t" else "\ufffd" if unicodedata.category(character) in ("Cc", "Cf") else character
        for character in text
    )
    inner = elements.escaped(seen)
    before = len(seen) - len(seen.lstrip())
    return "\u00a0" * before + inner + (" " if seen != seen.rstrip() and inner else "")


def _lines_words(shown: Shown) -> str:
    return f"{count(shown.changed, 'line')} of {len(shown.lines) + shown.left_out:,} only here"


def _left_out(side: ContentSide, shown: Shown) -> None:
    missing = sum(text is None for text in side.texts)
    notes = [f"{count(shown.left_out, 'further line')} not shown"] if shown.left_out else []
    notes += [f"{count(missing, 'block')} without a captured text"] if missing else []
    if notes:
        st.caption(f"{'; '.join(notes)}.")
