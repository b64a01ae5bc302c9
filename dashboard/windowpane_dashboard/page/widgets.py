"""Pieces of a page that several pages share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from pandas.io.formats.style import Styler

from windowpane_dashboard.charts.layout import CONFIG
from windowpane_dashboard.style.sanitize import escape_markdown, sanitized
from windowpane_dashboard.style.theme import Palette, palette


def show_text(text: str) -> None:
    """A text that holds words of an agent, letter by letter."""
    st.text(sanitized(text))


def current_palette() -> Palette:
    """The palette of the theme that this browser shows."""
    return palette(st.context.theme.type)


def headline(text: str) -> None:
    """The page's one-sentence answer."""
    st.subheader(escape_markdown(text), anchor=False)


def chart_with_table(
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


def chart(figure: go.Figure, *, key: str, alt: str, on_select: Callable[[], None] | None = None) -> None:
    """A small figure without buttons, whose data stands beside it already."""
    config = {**CONFIG, "displayModeBar": False}
    selecting: dict[str, Any] = {}
    if on_select is not None:
        selecting = {"on_select": on_select, "selection_mode": "points"}
    st.plotly_chart(figure, key=key, alt=alt, theme=None, config=config, **selecting)


def filter_select(
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
