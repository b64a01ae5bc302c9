"""One block next to the page: its whole captured text, and its life with a link to each turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import streamlit as st

from windowpane.core.characters import harmless, plain
from windowpane.report.block_life import LifeStep, block_name, life_steps
from windowpane.store.reads.block_life import BlockLife
from windowpane.text.formats import tokens
from windowpane_dashboard.page.store_access import StoreSnapshot
from windowpane_dashboard.queries.block_text import TextPart, excerpt, part_of, parts
from windowpane_dashboard.queries.filters import SessionAddress
from windowpane_dashboard.style.sanitize import escape_markdown

KEY: Final = "block_panel"
TEXT_PIXELS: Final = 420
HOW_TO_CAPTURE: Final = (
    "Not captured: content capture is off by default. To read the content of future sessions here, "
    "turn it on where they are recorded:"
)
CAPTURE_COMMAND: Final = "windowpane import --capture"


def block_panel(
    snapshot: StoreSnapshot, session_id: str, block_id: str, *, close: Callable[[], None], query: str = ""
) -> None:
    """Draw the block; *query* is the search that found it."""
    life = snapshot.store.block_life(session_id, block_id)
    with st.container(border=True, key=KEY):
        title, corner = st.columns([3, 1.2], vertical_alignment="center")
        corner.button("Close", key="close_block", on_click=close, width="stretch")
        if life is None:
            title.markdown("**This content is not recorded**")
            return
        title.markdown(f"**{escape_markdown(_title(life))}**")
        if life.block.content_type == "unattributed":
            st.caption("Tokens that the provider counts beyond the recorded content, so there is no text.")
        else:
            _text(snapshot.store.content(life.block.digest), block_id, query)
        st.markdown("**Its life in this session**")
        for step in life_steps(life):
            _step(session_id, step)


def how_to_capture() -> None:
    """Show why there is no text, and the command that captures later content."""
    st.caption(HOW_TO_CAPTURE)
    st.code(CAPTURE_COMMAND, language=None)


def _title(life: BlockLife) -> str:
    block = life.block
    size = tokens(block.tokens, estimated=block.count_source == "estimate")
    name = block_name(block)
    return f"{name[0].upper()}{name[1:]}, {size} tokens"


def _text(text: str | None, block_id: str, query: str) -> None:
    if text is None:
        how_to_capture()
        return
    if not text:
        st.text("The text is empty.")
        return
    visible = excerpt(text, query)
    if not visible.is_whole:
        whole = st.toggle(f"Show all {len(text):,} characters", key=f"whole_{block_id}")
        if whole:
            visible = _part(text, block_id)
    is_long = len(visible.text) > 1_200 or visible.text.count("\n") > 16
    st.code(
        harmless(visible.text),
        language=None,
        wrap_lines=True,
        height=TEXT_PIXELS if is_long else "content",
    )
    if not visible.is_whole:
        st.caption(f"Characters {visible.start + 1:,} to {visible.end:,} of {visible.total:,}.")


def _part(text: str, block_id: str) -> TextPart:
    number = parts(text)
    if number == 1:
        return part_of(text, 1)
    chosen = st.number_input(f"Part, of {number:,}", 1, number, key=f"part_{block_id}")
    return part_of(text, int(chosen))


def _step(session_id: str, step: LifeStep) -> None:
    left, right = st.columns([1.1, 4], gap="small", vertical_alignment="top")
    position = SessionAddress(session_id, turn=step.turn, block=step.block_id)
    left.page_link("views/session.py", label=f"Turn {step.turn}", query_params=position.to_query())
    with right:
        st.markdown(escape_markdown(plain(step.text)))
