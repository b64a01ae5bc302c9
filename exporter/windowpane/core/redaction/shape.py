"""The shape of one provider's tokens, and the search for it."""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_DIGIT = re.compile(r"[0-9]")
_NAME_BEFORE = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z]{2,16}(?:[_-][A-Za-z]{2,16}){0,2}[_-]{1,2}\Z")
"""Only from the start of a run of word characters, so that in a long run few positions are tried."""
_NAME_CHARACTERS = 24


class Span(NamedTuple):
    """One secret in a text."""

    start: int
    rank: int
    """Of spans with the same start the lower rank names the kind: a known shape before an assignment."""
    end: int
    kind: str


class Shape(NamedTuple):
    """A token that is recognized wherever it occurs."""

    kind: str
    literals: tuple[str, ...]
    """Each match contains one, *offset* characters after its start."""
    pattern: str
    """Only its group `secret` is replaced, if it has one."""
    entropy: float = 0.0
    """The least number of bits in a character of a token."""
    offset: int = 0
    at_edge: bool = False
    """True if the token must not be inside a longer word (`task-`, `xeyJ`)."""
    needs_digit: bool = False
    """True if a match without any digit is a word (`sk-spinner-double-bounce`), not a secret."""

    def spans(self, literal: str, positions: Sequence[int], text: str) -> Iterator[Span]:
        """Yield the tokens that contain *literal*, which is at *positions* of *text* in any case."""
        after = 0
        for position in positions:
            first = position - self.offset
            if position < after or first < 0 or not text.startswith(literal, position):
                continue
            if self.at_edge and not at_edge(text, first):
                continue
            match = compiled(self.pattern).match(text, first)
            if match is not None and self._is_token(match):
                start, after = match.span("secret" if "secret" in match.re.groupindex else 0)
                yield Span(start, 0, after, self.kind)

    def _is_token(self, match: re.Match[str]) -> bool:
        if self.needs_digit and not _DIGIT.search(match[0]):
            return False
        return not self.entropy or bits_per_character(match[0]) >= self.entropy


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Return *pattern*, compiled at the first text that contains its literal."""
    return re.compile(pattern)


def at_edge(text: str, position: int) -> bool:
    """Return True if no word continues into *position*.

    An escaped line break (`\\n` in JSON) and the last line of a private key end a word too, and so does the
    word that a file's name starts with (`api_key-sk-….txt`).
    """
    before = text[max(0, position - 5) : position]
    if not before or not (before[-1].isalnum() or before[-1] in "_-"):
        return True
    if before == "-----" or before.endswith(("\\n", "\\r", "\\t")):
        return True
    return (
        before[-1] in "_-"
        and _NAME_BEFORE.search(text, max(0, position - _NAME_CHARACTERS), position) is not None
    )


def bits_per_character(text: str) -> float:
    """Return the Shannon entropy of *text*."""
    size = len(text)
    return sum(-count / size * math.log2(count / size) for count in Counter(text).values())
