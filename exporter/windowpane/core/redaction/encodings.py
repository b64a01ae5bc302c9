"""Secrets inside an encoding: Base64, percent-encoding, and text interrupted by terminal colors."""

from __future__ import annotations

import base64
import re
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from windowpane.core.redaction.shape import Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from windowpane.core.redaction.character_classes import Run
    from windowpane.core.redaction.literals import Occurrences

_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{20,}+(?:\n[A-Za-z0-9+/]{4,}+)*+={0,2}")
_SAMPLE_CHARACTERS: Final = 16
_BASE64_START: Final = re.compile(
    r"[CDI-Za-f](?<![A-Za-z0-9+/_-].)[A-Za-z0-9+/_-]{3}(?:[CDI-Za-f][A-Za-z0-9+/_-]{3}){3}(?=[A-Za-z0-9+/_-]{4})"
)
"""Each third byte of a text starts a new group of four characters; the first of them shows that it is ASCII."""
_TEXT: Final = re.compile(r"[\t\n\r -~]*")
_PERCENT_ENCODED: Final = re.compile(r"[A-Za-z0-9%._~+*!()-]{8,}+")
_ENCODED_BYTE: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_PERCENT_LITERALS: Final = ("%22", "%27", "%3a", "%3d")
"""Quotation marks, a colon and an equals sign: what stands between a name and its value."""
_ZERO_WIDTH: Final = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
_INVISIBLE: Final = re.compile(
    r"(?:\x1b|\\u001b|\\x1b|\\033|\\e)(?:\[[0-9;:?]{0,24}[A-Za-z]|\][^\x07\x1b\\]{0,200}(?:\x07|\x1b\\))"
    r"|[\u00ad\u200b-\u200d\u2060\ufeff]"
)
_INVISIBLE_LITERALS: Final = ("\x1b", "\\u001b", "\\x1b", "\\033", "\\e[", *_ZERO_WIDTH)
LITERALS: Final = (*_INVISIBLE_LITERALS, *_PERCENT_LITERALS)


def encoded_spans(text: str, runs: Iterable[Run], has_secret: Callable[[str], bool]) -> Iterator[Span]:
    """Yield the parts in Base64, each from one of *runs*, whose decoded text has a secret by *has_secret*."""
    after = 0
    for start, _ in runs:
        if start < after or not _BASE64_START.match(text, start):
            continue
        match = _BASE64.match(text, start)
        if match is None:
            continue
        after = match.end()
        encoded = match[0].replace("\n", "")
        if _decoded(encoded[:_SAMPLE_CHARACTERS]) is None:
            continue
        decoded = _decoded(encoded)
        if decoded is not None and has_secret(decoded):
            yield Span(start, 3, after, "base64_secret")


def percent_encoded_spans(
    text: str, occurrences: Occurrences, has_secret: Callable[[str], bool]
) -> Iterator[Span]:
    """Yield the parts in percent-encoding whose decoded text has a secret by *has_secret*."""
    if occurrences.keys().isdisjoint(_PERCENT_LITERALS):
        return
    for match in _PERCENT_ENCODED.finditer(text):
        folded = match[0].lower()
        if any(literal in folded for literal in _PERCENT_LITERALS) and has_secret(_percent_decoded(match[0])):
            yield Span(match.start(), 3, match.end(), "percent_encoded_secret")


def _percent_decoded(encoded: str) -> str:
    """Return the text encoded in *encoded*; a character beyond ASCII is one for each of its bytes."""
    return _ENCODED_BYTE.sub(lambda byte: chr(int(byte[1], 16)), encoded.replace("+", " "))


def _decoded(encoded: str) -> str | None:
    """Return the text encoded in *encoded*, or None if it is not text."""
    body = encoded.rstrip("=")
    if len(body) % 4 == 1:
        return None
    try:
        decoded = base64.urlsafe_b64decode(body.replace("+", "-").replace("/", "_") + "=" * (-len(body) % 4))
        text = decoded.decode("ascii")
    except ValueError:
        return None
    return text if _TEXT.fullmatch(text) else None


class VisibleText(NamedTuple):
    """A text without colors and invisible characters, and where its pieces come from."""

    text: str
    starts: Sequence[int]
    """Position of each piece in the visible text."""
    origins: Sequence[int]
    """Position of each piece in the original text."""

    def original(self, span: Span) -> Span:
        """Return a span of the visible text as one of the original."""
        return span._replace(start=self._origin(span.start), end=self._origin(span.end - 1) + 1)

    def _origin(self, position: int) -> int:
        piece = bisect_right(self.starts, position) - 1
        return self.origins[piece] + position - self.starts[piece]


def visible_text(text: str, occurrences: Occurrences) -> VisibleText | None:
    """Return *text* as a person sees it, or None if it is all visible."""
    if occurrences.keys().isdisjoint(_INVISIBLE_LITERALS):
        return None
    origins, pieces = [0], []
    for invisible in _INVISIBLE.finditer(text):
        pieces.append(text[origins[-1] : invisible.start()])
        origins.append(invisible.end())
    if not pieces:
        return None
    pieces.append(text[origins[-1] :])
    starts = [0, *accumulate(map(len, pieces))][:-1]
    return VisibleText("".join(pieces), starts, origins)
