"""Text of a recording in the markup of the report's page."""

from __future__ import annotations

import html

from windowpane.core.characters import plain


def escape(text: str) -> str:
    """Return text that HTML and SVG show literally, without characters that act."""
    return html.escape(plain(text))
