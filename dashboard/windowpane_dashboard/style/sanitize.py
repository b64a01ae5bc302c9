"""An agent's words made harmless to look at, without Streamlit.

They are never given to the browser as HTML; what is left to fear is a character that is not seen but acts: one
that turns the direction of the text around it, or moves a cursor. Each is shown as `\ufffd`.
"""

from __future__ import annotations

import re
from typing import Final

LENGTH: Final = 2_000
"""Characters of one text that are shown."""
_ACTING: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_LONE: Final = re.compile(r"[\ud800-\udfff]")


def inert(text: str, *, length: int = LENGTH) -> str:
    """The text with every acting character replaced, its middle left out where it is longer than *length*."""
    if len(text) > length:
        half = length // 2
        text = f"{text[:half]} … {len(text) - 2 * half:,} characters … {text[-half:]}"
    return _LONE.sub("\ufffd", _ACTING.sub("\ufffd", text))
