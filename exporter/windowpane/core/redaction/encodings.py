"""Secrets inside an encoding: Base64, percent-encoding, and text interrupted by terminal colors."""

from __future__ import annotations

import base64
import html
import re
import zlib
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from windowpane.core.redaction.literals import positions_of
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
_TEXT: Final = re.compile(r"[\t\n\r -~\u00a0-\U0010ffff]*")
_COMPRESSED_STARTS: Final = (
    "H4sI",
    *(
        f"e{level}{rest}"
        for level, ends in (("A", "EFGH"), ("F", "4567"), ("J", "wxyz"), ("N", "opqr"))
        for rest in ends
    ),
)
"""The headers of gzip and of the levels of zlib, in Base64."""
_ANY_HEADER: Final = 47
"""The parameter by which zlib reads its own header and that of gzip."""
_MAXIMUM_EXPANSION: Final = 32
_HEXADECIMAL_START: Final = r"(?:0[xX])?(?:[2-7][0-9A-Fa-f]|0[9AaDd]){10}"
_HEXADECIMAL: Final = re.compile(
    rf"(?={_HEXADECIMAL_START})(?:0[xX])?(?P<digits>(?:[0-9A-Fa-f]{{2}})*+)[0-9A-Fa-f]?"
)
"""Digits of ASCII text; those of a digest are others at once."""
_ENCODED_START: Final = re.compile(
    rf"(?:{'|'.join(_COMPRESSED_STARTS)}|{_BASE64_START.pattern}|{_HEXADECIMAL_START})"
)
"""The start of anything that is decoded; nearly every run of letters and digits is something else."""
_PERCENT_ENCODED: Final = re.compile(r"[A-Za-z0-9%._~+*!()-]{8,}+")
_ENCODED_BYTE: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_PERCENT_LITERALS: Final = ("%0a", "%22", "%27", "%2c", "%3a", "%3c", "%3d")
"""Quotation marks and what else stands between a name and its value."""
_ZERO_WIDTH: Final = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
_INVISIBLE: Final = re.compile(
    r"(?:\x1b|\\u001b|\\x1b|\\033|\\e)(?:\[[0-9;:?]{0,24}[A-Za-z]|\][^\x07\x1b\\]{0,200}(?:\x07|\x1b\\))"
    r"|[\u00ad\u200b-\u200d\u2060\ufeff]"
)
_INVISIBLE_LITERALS: Final = ("\x1b", "\\u001b", "\\x1b", "\\033", "\\e[", *_ZERO_WIDTH)
_ESCAPED: Final = re.compile(
    r"\\{1,4}(?:u00|x|u\{)(?P<code>[2-7][0-9A-Fa-f]|0[9AaDd])\}?"
    r"|&(?:amp;)?(?P<entity>#[xX][0-9A-Fa-f]{2,6};|#\d{2,7};|quot;|apos;|amp;|lt;|gt;|equals;|colon;|num;)"
    r"|\\(?:\r?\n|\\(?:r\\\\)?\\n)(?=\S)"
)
"""A character as an escape of JSON, Python or HTML, and a line break that the shell removes."""
_ESCAPE_LITERALS: Final = (
    *(f"\\{mark}{digit}" for mark in ("u00", "x", "u{") for digit in "234567"),
    *(
        "&#",
        "&quot;",
        "&apos;",
        "&amp;",
        "&lt;",
        "&gt;",
        "&equals;",
        "&colon;",
        "&num;",
        "\\\n",
        "\\\r\n",
        "\\\\\\n",
    ),
)
_MARGIN: Final = 600
"""Characters around an escape that are read with it: those of a name and its value."""
_MAXIMUM_LINE: Final = 1_024
LITERALS: Final = (*_INVISIBLE_LITERALS, *_ESCAPE_LITERALS, *_PERCENT_LITERALS)


def encoded_runs(text: str, runs: Iterable[Run]) -> list[Run]:
    """Return those of *runs* that can be the start of an encoded text."""
    return [run for run in runs if _ENCODED_START.match(text, run[0])]


def encoded_spans(text: str, runs: Iterable[Run], has_secret: Callable[[str], bool]) -> Iterator[Span]:
    """Yield the parts in Base64, each from one of *runs*, whose decoded text has a secret by *has_secret*."""
    after = 0
    for start, _ in runs:
        is_compressed = start >= after and text.startswith(_COMPRESSED_STARTS, start)
        if start < after or not (is_compressed or _BASE64_START.match(text, start)):
            continue
        match = _BASE64.match(text, start)
        if match is None:
            continue
        after = match.end()
        encoded = match[0].replace("\n", "")
        decoded = _decompressed(encoded) if is_compressed else None
        if decoded is None and _decoded(encoded[:_SAMPLE_CHARACTERS]) is None:
            continue
        decoded = decoded or _decoded(encoded)
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
    return _as_text(_decoded_bytes(encoded))


def _decoded_bytes(encoded: str) -> bytes:
    body = encoded.rstrip("=")
    body = body[:-1] if len(body) % 4 == 1 else body  # cut off
    return base64.urlsafe_b64decode(body.replace("+", "-").replace("/", "_") + "=" * (-len(body) % 4))


def _as_text(data: bytes) -> str | None:
    """Return *data* as text, or None if it is not text."""
    try:
        text = data.decode("utf-8")
    except ValueError:
        return None
    return text if _TEXT.fullmatch(text) else None


def _decompressed(encoded: str) -> str | None:
    """Return the text that is compressed in *encoded*, as far as it is readable; None if it is not text.

    Data that expands more than texts do is not read on, so the time is linear in the length of *encoded*.
    """
    data = _decoded_bytes(encoded)
    try:
        plain = zlib.decompressobj(_ANY_HEADER).decompress(data, _MAXIMUM_EXPANSION * len(data))
    except zlib.error:
        return None
    return plain.decode("utf-8", "replace") if plain else None


def hexadecimal_spans(text: str, runs: Iterable[Run], has_secret: Callable[[str], bool]) -> Iterator[Span]:
    """Yield the parts in hexadecimal, each from one of *runs*, whose text has a secret by *has_secret*."""
    after = 0
    for start, end in runs:
        match = _HEXADECIMAL.match(text, start) if start >= after else None
        if match is None:
            continue
        after = match.end()
        if after < end:
            continue
        decoded = _as_text(bytes.fromhex(match["digits"]))
        if decoded is not None and has_secret(decoded):
            yield Span(start, 3, after, "hexadecimal_secret")


class DecodedText(NamedTuple):
    """A text without colors and invisible characters, or without escapes, and where its pieces come from."""

    text: str
    starts: Sequence[int]
    """Position of each piece in this text."""
    origins: Sequence[int]
    """Position of each piece in the original text."""
    ends: Sequence[int]
    """End of each piece in the original text."""

    def original(self, span: Span) -> Span:
        """Return a span of this text as one of the original."""
        first, last = self._piece(span.start), self._piece(span.end - 1)
        piece_end = self.starts[last + 1] if last + 1 < len(self.starts) else len(self.text)
        return span._replace(
            start=self.origins[first] + span.start - self.starts[first],
            end=self.ends[last] if span.end == piece_end else self.origins[last] + span.end - self.starts[last],
        )

    def decoded(self, position: int) -> int:
        """Return the position in this text of an unescaped character of the original."""
        piece = bisect_right(self.origins, position) - 1
        return self.starts[piece] + position - self.origins[piece]

    def _piece(self, position: int) -> int:
        return bisect_right(self.starts, position) - 1


def visible_text(text: str, occurrences: Occurrences) -> DecodedText | None:
    """Return *text* as a person sees it, or None if it is all visible."""
    if occurrences.keys().isdisjoint(_INVISIBLE_LITERALS):
        return None
    return without(_INVISIBLE, text, lambda _: "")


def unescaped_parts(text: str, occurrences: Occurrences) -> Iterator[DecodedText]:
    """Yield the lines around escapes as the program reads them that they are escaped for."""
    if occurrences.keys().isdisjoint(_ESCAPE_LITERALS):
        return
    start = end = -1
    for position in positions_of(_ESCAPE_LITERALS, occurrences):
        if position < end:
            end = max(end, position + _MARGIN)
            continue
        if end > 0:
            yield from _unescaped_part(text, start, _line_end(text, end))
        start, end = max(_line_start(text, position - _MARGIN), _line_end(text, end)), position + _MARGIN
    yield from _unescaped_part(text, start, _line_end(text, end))


def _line_start(text: str, position: int) -> int:
    lowest = max(0, position - _MAXIMUM_LINE)
    return max(lowest, text.rfind("\n", lowest, max(0, position)) + 1)


def _line_end(text: str, position: int) -> int:
    if position < 0:
        return 0
    end = text.find("\n", position, position + _MAXIMUM_LINE)
    return end + 1 if end >= 0 else min(len(text), position + _MAXIMUM_LINE)


def _unescaped_part(text: str, start: int, end: int) -> Iterator[DecodedText]:
    decoded = without(_ESCAPED, text, _unescaped, start, end)
    if decoded is not None:
        yield decoded


def _unescaped(escape: re.Match[str]) -> str:
    if escape["code"]:
        return chr(int(escape["code"], 16))
    return html.unescape(f"&{escape['entity']}")[:1] if escape["entity"] else ""


def without(
    escapes: re.Pattern[str],
    text: str,
    decode: Callable[[re.Match[str]], str],
    start: int = 0,
    end: int | None = None,
) -> DecodedText | None:
    """Return a part of *text* with all *escapes* decoded, or None if it has none."""
    pieces, origins, ends = [], [], []
    position, limit = start, len(text) if end is None else end
    for escape in escapes.finditer(text, start, limit):
        if escape.start() > position:
            pieces.append(text[position : escape.start()])
            origins.append(position)
            ends.append(escape.start())
        position = escape.end()
        if decoded := decode(escape):
            pieces.append(decoded)
            origins.append(escape.start())
            ends.append(position)
    if position == start:
        return None
    if position < limit:
        pieces.append(text[position:limit])
        origins.append(position)
        ends.append(limit)
    starts = [0, *accumulate(map(len, pieces))][:-1]
    return DecodedText("".join(pieces), starts, origins, ends)
