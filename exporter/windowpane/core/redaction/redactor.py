"""The redactor: secrets found by every recognizer, merged and replaced until none remains."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from windowpane.core.redaction.cards import card_spans, has_long_number
from windowpane.core.redaction.encodings import encoded_spans, visible_text
from windowpane.core.redaction.keys import key_spans
from windowpane.core.redaction.names import named_spans
from windowpane.core.redaction.places import placed_spans
from windowpane.core.redaction.shape import Span
from windowpane.core.redaction.shapes import shaped_spans, token_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MAXIMUM_PASSES: Final = 8
"""A secret that ends where another one starts is found once that one is replaced."""
_MINIMUM_CHARACTERS: Final = 8
_MAXIMUM_DEPTH: Final = 2
"""Base64 within Base64 is decoded so often."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """A text without its secrets."""

    text: str
    counts: Mapping[str, int] = field(default_factory=dict)
    """Number of replaced secrets by kind; empty for a clean text."""


def redact(text: str) -> Redaction:
    """Replace every secret in *text*; a text without secrets is returned as the same string.

    Redacting twice changes nothing more, and the time is linear in the length of any text. A replacement is at most
    64 characters longer than its secret.
    """
    counts: Counter[str] = Counter()
    for _ in range(_MAXIMUM_PASSES):
        spans = _spans(text)
        if not spans:
            return Redaction(text, counts)
        text = _replaced(text, spans)
        counts.update(span.kind for span in spans)
    if _spans(text):
        return Redaction("[redacted:nested_secrets]", {"nested_secrets": 1})
    return Redaction(text, counts)


def redact_parts(texts: Sequence[str]) -> list[str]:
    """Replace the secrets in texts that follow each other directly, also one that continues in the next text.

    The replacement of such a secret is in the text where it starts.
    """
    joined = "".join(texts)
    clean = [redact(text).text for text in texts]
    spans = [span for span in _spans(joined) if _crosses(span, texts)]
    if not spans:
        return clean
    starts = [0, *accumulate(map(len, texts))]
    parts = list(texts)
    for span in reversed(spans):
        first, last = bisect_right(starts, span.start) - 1, bisect_right(starts, span.end - 1) - 1
        parts[last] = parts[last][span.end - starts[last] :]
        for between in range(first + 1, last):
            parts[between] = ""
        parts[first] = f"{parts[first][: span.start - starts[first]]}[redacted:{span.kind}]"
    return [redact(part).text for part in parts]


def _crosses(span: Span, texts: Sequence[str]) -> bool:
    starts = [0, *accumulate(map(len, texts))]
    return bisect_right(starts, span.start) != bisect_right(starts, span.end - 1)


def _replaced(text: str, spans: Sequence[Span]) -> str:
    parts: list[str] = []
    position = 0
    for span in spans:
        parts += (text[position : span.start], f"[redacted:{span.kind}]")
        position = span.end
    return "".join([*parts, text[position:]])


def _spans(text: str, depth: int = 0) -> list[Span]:
    """Return the secrets in *text*, sorted and apart from each other."""
    if len(text) < _MINIMUM_CHARACTERS:
        return []
    visible = visible_text(text)
    if visible is not None:
        return _merged([visible.original(span) for span in _spans(visible.text, depth)])
    folded = _fold(text)
    parts = text.split()
    words = token_words(parts)
    spans = [*key_spans(text), *placed_spans(text, folded), *named_spans(text, folded)]
    if any(map(str.isdigit, parts)) or has_long_number(words):
        spans += card_spans(text, folded)
    if words:
        spans += shaped_spans(text, words)
    if words and depth < _MAXIMUM_DEPTH:
        spans += encoded_spans(text, words, lambda decoded: bool(_spans(decoded, depth + 1)))
    return _merged(sorted(spans))


def _fold(text: str) -> str:
    """Return *text* in lower case with unchanged positions."""
    folded = text.lower()
    return folded if len(folded) == len(text) else "".join(map(_fold_character, text))


def _fold_character(character: str) -> str:
    folded = character.lower()
    return folded if len(folded) == 1 else character


def _merged(spans: list[Span]) -> list[Span]:
    """Join overlapping spans of sorted *spans*."""
    merged: list[Span] = []
    for span in spans:
        if merged and span.start < merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return merged
