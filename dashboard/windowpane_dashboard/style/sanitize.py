"""Text of an agent made harmless to display, without Streamlit.

It is never given to the browser as HTML. Characters that act, such as changes of direction, are shown as U+FFFD.
"""

from __future__ import annotations

import re
from typing import Final

import pandas as pd

from windowpane.core.characters import harmless

LENGTH: Final = 2_000
"""Characters of one text that are shown."""
_MARKDOWN: Final = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:&@^=/])")
_AUTOLINK: Final = re.compile(r"(https?|ftp|www|mailto|xmpp)(?=[:.])", re.IGNORECASE)
"""Text that Markdown turns into a link without any markup, even after backslashes; a word joiner prevents it."""


def sanitized(text: str, *, length: int = LENGTH) -> str:
    """Return *text* with control characters replaced, and its middle omitted where it is longer than *length*."""
    if len(text) > length:
        half = length // 2
        text = f"{text[:half]} … {len(text) - 2 * half:,} characters … {text[-half:]}"
    return text if text.isprintable() else harmless(text)


def harmless_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with its names and text sanitized, whatever column they are in."""
    texts = frame.select_dtypes(include=["object", "string"]).columns
    changed = {name: frame[name].map(_harmless_value) for name in texts}
    return frame.assign(**changed) if changed else frame


def _harmless_value(value: object) -> object:
    return harmless(value) if isinstance(value, str) and not value.isprintable() else value


def escape_markdown(text: str) -> str:
    """Return text that Streamlit's Markdown shows literally: no link, markup, color, formula or `:name:`."""
    joined = _AUTOLINK.sub("\\1\u2060", " ".join(sanitized(text).split())).replace("@", "\u2060@")
    return _MARKDOWN.sub(r"\\\1", joined)
