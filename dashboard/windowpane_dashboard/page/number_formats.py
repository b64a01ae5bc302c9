"""The numbers of tables, in the words of `windowpane.text.formats` as everywhere else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from windowpane.text import formats

STYLED_ROWS: Final = 1_000
"""Rows of a table whose numbers are formatted here; a longer one is formatted by the browser."""


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """The format of the numbers of one column."""

    browser: str
    """The format of Streamlit that is the same, or comes nearest."""
    text: Callable[[float], str] | None = None
    """None where the browser's format is the same, which costs nothing here."""


WHOLE: Final = NumberFormat("localized")
"""Tokens, turns and counts in full: the format of every column without another one."""
DOLLARS: Final = NumberFormat("$%.2f", formats.dollars)
SHARE: Final = NumberFormat("percent", formats.percent)
SMALL_SHARE: Final = NumberFormat("percent", formats.small_percent)
SECONDS: Final = NumberFormat("%.1f s", formats.seconds)

Numbers = Mapping[str, NumberFormat | None]
"""The formats of columns by name; None where the table's style formats them already."""


def formatted(data: pd.DataFrame | Styler, numbers: Numbers) -> pd.DataFrame | Styler:
    """Return the table with *numbers* formatted, unless it is too long for that."""
    frame = frame_of(data)
    texts: dict[Any, Any] = {
        name: form.text for name, form in numbers.items() if form and form.text and name in frame
    }
    if not texts or len(frame) > STYLED_ROWS:
        return data
    style = data.style if isinstance(data, pd.DataFrame) else data
    return style.format(texts, subset=list(texts), na_rep=formats.UNKNOWN)


def number_columns(frame: pd.DataFrame, numbers: Numbers, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the column configuration with the format of each column of numbers."""
    result = dict(config)
    for name in map(str, frame.select_dtypes("number")):
        form = numbers.get(name, WHOLE)
        is_styled = form is None or (form.text is not None and len(frame) <= STYLED_ROWS)
        column = dict(result.get(name) or st.column_config.NumberColumn())
        column["type_config"] = column["type_config"] | {
            "format": None if is_styled or form is None else form.browser
        }
        result[name] = column
    return result


def frame_of(data: pd.DataFrame | Styler) -> pd.DataFrame:
    """Return the values of a table, styled or not."""
    if isinstance(data, pd.DataFrame):
        return data
    frame: pd.DataFrame = data.data  # type: ignore[attr-defined]  # pandas does not declare it
    return frame
