"""Pieces of a page that several pages share."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from pandas.io.formats.style import Styler

from windowpane_dashboard.charts.layout import CONFIG
from windowpane_dashboard.style.sanitize import inert
from windowpane_dashboard.style.theme import Palette, palette

_MARKDOWN: Final = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:&@^=/])")

_AUTOLINK: Final = re.compile(r"(https?|ftp|www|mailto|xmpp)(?=[:.])", re.IGNORECASE)
"""What Markdown makes a link of without any sign, even after backslashes; a word joiner breaks it."""


def escaped(text: str) -> str:
    """Text that Streamlit's Markdown shows letter by letter: no link, markup, colour, formula or `:name:`."""
    joined = _AUTOLINK.sub("\\1\u2060", " ".join(inert(text).split())).replace("@", "\u2060@")
    return _MARKDOWN.sub(r"\\\1", joined)


def said(text: str) -> None:
    """A text that holds words of an agent, letter by letter."""
    st.text(inert(text))


def current_palette() -> Palette:
    """The palette of the theme that this browser shows."""
    return palette(st.context.theme.type)


def answer(text: str) -> None:
    """The page's one-sentence answer."""
    st.subheader(escaped(text), anchor=False)


def chart(
    figure: go.Figure,
    *,
    key: str,
    alt: str,
    data: Callable[[], pd.DataFrame],
    data_title: str,
) -> None:
    """A figure with its text alternative: a description for screen readers and the figures as a table."""
    st.plotly_chart(figure, key=key, alt=alt, theme=None, config=CONFIG)
    folded_table(data_title, data, key=f"{key}_data", alt=data_title)


@st.fragment
def folded_table(title: str, data: Callable[[], pd.DataFrame], *, key: str, alt: str) -> None:
    """A table that is made and sent only once somebody opens it."""
    place = st.expander(title, icon=":material/table_rows:", key=f"{key}_open", on_change="rerun")
    if place.open:
        with place:
            table(data(), key=key, alt=alt)


def picture(figure: go.Figure, *, key: str, alt: str, on_select: Callable[[], None] | None = None) -> None:
    """A small figure without buttons, whose data stands beside it already."""
    config = {**CONFIG, "displayModeBar": False}
    selecting: dict[str, Any] = {}
    if on_select is not None:
        selecting = {"on_select": on_select, "selection_mode": "points"}
    st.plotly_chart(figure, key=key, alt=alt, theme=None, config=config, **selecting)


def choice(
    place: st.delta_generator.DeltaGenerator,
    label: str,
    options: Sequence[str],
    asked: str | None,
    *,
    part: dict[str, Any],
    words: Callable[[str], str] = str,
) -> None:
    """A filter at what the address asks, which may be none of the *options*; *part* is of `address.part`."""
    if asked is not None and asked not in options:
        options = (*options, asked)
    place.selectbox(label, options, placeholder="any", format_func=words, **part)


def table(data: pd.DataFrame | Styler, *, key: str, alt: str, **options: Any) -> Any:
    """A table in the shared look: no index, unknown as `–`."""
    return st.dataframe(data, key=key, alt=alt, hide_index=True, placeholder="–", **options)
