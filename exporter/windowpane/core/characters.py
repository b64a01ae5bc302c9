"""Characters that act where a text is shown, instead of being shown themselves.

Names and texts come from agents. Control characters steer a terminal, direction marks reverse the text around
them, line separators and invisible characters let one name pass for another, and half a surrogate pair cannot be
encoded.
"""

from __future__ import annotations

import re
from typing import Final

_INVISIBLE: Final = (
    r"\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    r"\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff"
)
_IN_A_LINE: Final = re.compile(rf"[\x00-\x1f{_INVISIBLE}]")
_IN_LINES: Final = re.compile(rf"[\x00-\x08\x0b-\x1f{_INVISIBLE}]")


def encodable(text: str) -> str:
    """Return a text with halves of surrogate pairs as `\\udce9`: a file name that is not UTF-8 has them."""
    return text.encode("utf-8", "backslashreplace").decode()


def plain(text: str) -> str:
    """Return a name or sentence as one line that only shows itself; what would act becomes a question mark."""
    return text if text.isprintable() else _IN_A_LINE.sub("?", text)


def harmless(text: str) -> str:
    """Return a text with its line breaks and tabs; any other character that would act becomes U+FFFD."""
    return text if text.isprintable() else _IN_LINES.sub("\ufffd", text)
