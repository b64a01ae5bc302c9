"""The redactor: secrets found by every recognizer, merged and replaced until none remains."""

from __future__ import annotations

import re
from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from windowpane.core.redaction import cards, encodings, keys, locations, names, shapes, tables
from windowpane.core.redaction.cards import card_code_spans, number_spans
from windowpane.core.redaction.character_classes import long_runs
from windowpane.core.redaction.encodings import (
    encoded_runs,
    encoded_spans,
    hexadecimal_spans,
    percent_encoded_spans,
    unescaped_parts,
    visible_text,
)
from windowpane.core.redaction.keys import key_spans
from windowpane.core.redaction.literals import LiteralSearch, fold
from windowpane.core.redaction.locations import located_spans
from windowpane.core.redaction.names import named_spans
from windowpane.core.redaction.shape import Span
from windowpane.core.redaction.shapes import discord_spans, shaped_spans
from windowpane.core.redaction.tables import table_spans
from windowpane.core.redaction.values import is_plain_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MAXIMUM_PASSES: Final = 8
"""A secret that ends where another one starts is found once that one is replaced."""
_JOINT_CHARACTERS: Final = 4_096
"""Searched on both sides of a boundary for a secret that crosses it."""
_MINIMUM_CHARACTERS: Final = 8
_MAXIMUM_DEPTH: Final = 2
"""Text that is encoded twice is decoded so often."""
_MAXIMUM_ID_CHARACTERS: Final = 64
_ID: Final = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[0-9:.]{5,15}(?:Z|[+-]\d\d:\d\d)?"
    r"|(?:toolu|call|msg|req|resp|chatcmpl|rs|fc)_[A-Za-z0-9]*"
)
"""A UUID, a time or the id of a message or a call: the most frequent texts, and never a secret."""


_LITERALS: Final = LiteralSearch(
    {
        *keys.LITERALS,
        *shapes.LITERALS,
        *locations.LITERALS,
        *names.LITERALS,
        *cards.LITERALS,
        *encodings.LITERALS,
        *tables.LITERALS,
    }
)


class Redaction(NamedTuple):
    """A text without its secrets."""

    text: str
    counts: Mapping[str, int] = MappingProxyType({})
    """Number of replaced secrets by kind; empty for a clean text."""


def redact(text: str) -> Redaction:
    """Replace every secret in *text*; see the package."""
    spans = _spans(text)
    if not spans:
        return Redaction(text)
    counts: Counter[str] = Counter()
    for _ in range(_MAXIMUM_PASSES):
        text = _replaced(text, spans)
        counts.update(span.kind for span in spans)
        spans = _spans(text)
        if not spans:
            return Redaction(text, counts)
    return Redaction("[redacted:nested_secrets]", {"nested_secrets": 1})


def join_split_secrets(texts: Sequence[str]) -> list[str]:
    """Return *texts*, which follow each other directly, without secrets across them; see the package."""
    parts = list(texts)
    for number in range(len(parts) - 1):
        first, second = parts[number], parts[number + 1]
        start = max(0, len(first) - _JOINT_CHARACTERS)
        boundary = len(first) - start
        for span in _spans(first[start:] + second[:_JOINT_CHARACTERS]):
            if span.start <= boundary < span.end and not _ends_with_secret(first[start:], second, span):
                parts[number] = f"{first[: start + span.start]}[redacted:{span.kind}]"
                parts[number + 1] = second[span.end - boundary :]
    return parts


def _ends_with_secret(first: str, second: str, joint: Span) -> bool:
    """Return True if *joint* is a secret at the end of *first* and an ordinary word of *second*."""
    if not is_plain_text(second[: joint.end - len(first)]):
        return False
    return any(span.start == joint.start and span.end == len(first) for span in _spans(first))


def _replaced(text: str, spans: Sequence[Span]) -> str:
    parts: list[str] = []
    position = 0
    for span in spans:
        parts += (text[position : span.start], f"[redacted:{span.kind}]")
        position = span.end
    return "".join([*parts, text[position:]])


def _spans(text: str, depth: int = 0) -> list[Span]:
    """Return the secrets in *text*, sorted and apart from each other."""
    if len(text) < _MINIMUM_CHARACTERS or (len(text) <= _MAXIMUM_ID_CHARACTERS and _ID.fullmatch(text)):
        return []
    folded = fold(text)
    occurrences = _LITERALS.occurrences(folded)
    visible = visible_text(text, occurrences)
    if visible is not None:
        return _merged([visible.original(span) for span in _spans(visible.text, depth)])
    spans = list(number_spans(text))
    if occurrences:
        for unescaped in unescaped_parts(text, occurrences) if depth < _MAXIMUM_DEPTH else ():
            spans += map(unescaped.original, _spans(unescaped.text, depth + 1))
        for recognized in (key_spans, card_code_spans, located_spans, shaped_spans):
            spans += recognized(text, occurrences)
        spans += named_spans(text, folded, occurrences)
        if "\n" in text or "\\n" in text or "insert into" in occurrences:
            spans += table_spans(text, folded, occurrences)
        if depth < _MAXIMUM_DEPTH:
            spans += percent_encoded_spans(text, occurrences, lambda decoded: bool(_spans(decoded, depth + 1)))
    runs = long_runs(text)
    if runs:
        spans += discord_spans(text, runs)
        if depth < _MAXIMUM_DEPTH and (encoded := encoded_runs(text, runs)):
            spans += encoded_spans(text, encoded, lambda decoded: bool(_spans(decoded, depth + 1)))
            spans += hexadecimal_spans(text, encoded, lambda decoded: bool(_spans(decoded, depth + 1)))
    return _merged(sorted(spans)) if spans else []


def _merged(spans: list[Span]) -> list[Span]:
    """Join overlapping spans of sorted *spans*."""
    merged: list[Span] = []
    for span in spans:
        if merged and span.start < merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return merged
