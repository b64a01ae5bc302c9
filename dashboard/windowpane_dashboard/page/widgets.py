"""Widgets that several pages share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal

import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from pandas.io.formats.style import Styler

from windowpane.core.characters import plain
from windowpane.text.terms import explain
from windowpane_dashboard.charts.layout import CONFIG
from windowpane_dashboard.charts.legend import legend_html
from windowpane_dashboard.page import address
from windowpane_dashboard.page.number_formats import Numbers, formatted, frame_of, number_columns
from windowpane_dashboard.page.width import page_width
from windowpane_dashboard.style.sanitize import escape_markdown, harmless_table, sanitized
from windowpane_dashboard.style.theme import Palette, palette

WRAPPING_PIXELS: Final = 82
"""Height of a table's row whose text wraps, in at most four lines."""


def show_text(text: str) -> None:
    """Show text that may be an agent's, literally."""
    st.text(sanitized(text))


def current_palette() -> Palette:
    """Return the palette of the theme that this browser shows."""
    return palette(st.context.theme.type)


def headline(text: str, page: str = "") -> None:
    """Show the page's one-sentence summary, and what the terms of the *page* mean."""
    st.subheader(escape_markdown(text), anchor=False, help=explain(page))


def chart(figure: go.Figure, *, key: str, alt: str) -> None:
    """Show a small chart without buttons, whose data stands next to it already."""
    config = {**CONFIG, "displayModeBar": False}
    st.plotly_chart(figure, key=key, alt=alt, theme=None, config=config)


def main_chart(figure: go.Figure, *, key: str, alt: str) -> None:
    """Show a window's chart below its legend, with Plotly's buttons; the page has its values as a table."""
    st.html(legend_html(figure))
    st.plotly_chart(figure, key=key, alt=alt, theme=None, config=CONFIG)


def part(*, key: str | None = None) -> st.delta_generator.DeltaGenerator:
    """Return a container for a part of a page that is empty at times; empty, it takes no room.

    Streamlit recognizes an element by its position. One that appears above a chart without a container moves the
    chart to the next position, so the browser makes it anew: until it is drawn the page is shorter, and a reader
    further down loses the place.
    """
    return st.container(gap="xsmall", key=key)


@st.fragment
def folded_table(
    title: str, data: Callable[[], pd.DataFrame], *, key: str, alt: str, numbers: Numbers = MappingProxyType({})
) -> None:
    """Show an expander whose table is made and sent only when it is opened."""
    expander = st.expander(title, icon=":material/table_rows:", key=f"{key}_open", on_change="rerun")
    if expander.open:
        with expander:
            table(data(), key=key, alt=alt, numbers=numbers)


def control_bar(*, alignment: Literal["bottom", "center"] = "bottom") -> st.delta_generator.DeltaGenerator:
    """Return the page's row of controls, which has as many lines as their widths need.

    Each control is drawn in a container of the row. So the style sheet can hide the one that another replaces
    under a fresh key, as in columns.
    """
    return st.container(horizontal=True, vertical_alignment=alignment, gap="small", key="control_bar")


def wrapping_columns(
    spec: Sequence[float], *, narrowest: Literal["table", "text"]
) -> list[st.delta_generator.DeltaGenerator]:
    """Return columns that stand one above the other where the narrowest would be too narrow for its content."""
    return st.container(key=f"wrapping_{narrowest}").columns(spec, gap="medium")


def filter_select(
    bar: st.delta_generator.DeltaGenerator,
    label: str,
    options: Sequence[str],
    selected: str | None,
    *,
    page: str,
    name: str = "",
    clears: tuple[str, ...] = (),
    format_func: Callable[[str], str] = str,
) -> None:
    """Show a filter in *bar*; *selected* comes from the address and may not be one of the *options*.

    The parameter of the address has the *name*, else that of the label; a choice removes those that it *clears*.
    """
    bound = address.bound_widget(page, name or label.lower(), selected, clears=clears)
    if selected is not None and selected not in options:
        options = (*options, selected)
    bar.container().selectbox(
        label, options, placeholder="any", format_func=lambda option: plain(format_func(option)), **bound
    )


def without_empty(frame: pd.DataFrame, *optional: str) -> pd.DataFrame:
    """Return the table without those of the *optional* columns that have no value in any row."""
    return frame.drop(columns=[name for name in optional if name in frame and not _has_value(frame[name])])


def alike(frame: pd.DataFrame) -> list[str]:
    """Return the columns that repeat one value, or are empty, in all rows; none of a table with one row."""
    return [str(name) for name in frame if len(frame) > 1 and frame[name].nunique(dropna=False) == 1]


def without_repeated(frame: pd.DataFrame, **optional: str) -> tuple[pd.DataFrame, str]:
    """Return the table without *optional* columns that repeat one value, and a sentence for each: ` Why: old.`"""
    same = [name for name in alike(frame) if name in optional and pd.notna(frame[name].iloc[0])]
    return frame.drop(columns=same), "".join(f" {optional[name]}: {frame[name].iloc[0]}." for name in same)


def _has_value(column: pd.Series) -> bool:
    is_text = pd.api.types.is_string_dtype(column) or pd.api.types.is_bool_dtype(column)
    return bool((column.fillna("") if is_text else column.notna()).any())


def table(
    data: pd.DataFrame | Styler,
    *,
    key: str,
    alt: str,
    numbers: Numbers = MappingProxyType({}),
    on_row: Callable[[int], None] | None = None,
    narrow: Mapping[str, int] = MappingProxyType({}),
    **options: Any,
) -> Any:
    """Show a table in the shared style: no index, unknown values as `–`, text sanitized.

    Numbers are in full with thousands separated; *numbers* are the formats of columns with other ones. A selected
    row calls *on_row* with its position. A narrow page shows only the columns of *narrow*, of these
    widths, and their text wraps.
    """
    rows = len(frame_of(data))
    if narrow and page_width() == "narrow":
        config = options.get("column_config", {})
        widths = {name: config.get(name, {}) | {"width": width} for name, width in narrow.items()}
        options |= {"column_order": list(narrow), "column_config": widths, "row_height": WRAPPING_PIXELS}
        options["height"] = "content" if rows < 7 else 620
    if on_row is not None:
        options |= {"selection_mode": "single-row", "on_select": lambda: _choose_row(key, rows, on_row)}
    options["column_config"] = number_columns(frame_of(data), numbers, options.get("column_config", {}))
    data = formatted(data, numbers)
    if isinstance(data, Styler):
        data.data = harmless_table(frame_of(data))  # type: ignore[attr-defined]  # pandas does not declare it
    else:
        data = harmless_table(data)
    return st.dataframe(data, key=key, alt=alt, hide_index=True, placeholder="–", **options)


def _choose_row(key: str, rows: int, on_row: Callable[[int], None]) -> None:
    selected = st.session_state[key].selection.rows
    if selected and selected[0] < rows:  # the table may have shrunk since
        on_row(selected[0])
