"""Cutting a long text where its token count does not change.

tiktoken splits text with a backtracking regular expression whose stack overflows, as a panic that no
`except Exception` catches, on a run of about a million blanks; and merging a run of many million letters
takes seconds. So no piece handed to it is longer than `PIECE_CHARACTERS`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PIECE_CHARACTERS = 65_536
"""Runs of 500,000 blanks were seen to work and 1,000,000 to panic; this leaves a wide margin."""

_SAFE_CUT = re.compile(r"\n(?=[A-Za-z0-9])")
"""Both encodings always end a token after a line feed that a letter or digit follows: no pattern that
takes letters or digits takes a line feed before them."""


def pieces(text: str) -> Iterator[str]:
    """*text* in order, in parts of at most `PIECE_CHARACTERS`.

    Each cut is at a place where every tokenization ends a token, if the second half of a part has one.
    Only a part without any such line start is cut anywhere, which can change the sum by a few tokens a cut.
    """
    start = 0
    while len(text) - start > PIECE_CHARACTERS:
        end = start + PIECE_CHARACTERS
        cut = _SAFE_CUT.search(text, start + PIECE_CHARACTERS // 2, end)
        end = cut.end() if cut else end
        yield text[start:end]
        start = end
    yield text[start:]
