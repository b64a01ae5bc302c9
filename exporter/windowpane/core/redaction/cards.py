"""Numbers of payment cards: the prefix and length of a network, and the check digit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from windowpane.core.redaction.character_classes import CharacterClasses
from windowpane.core.redaction.literals import positions_of
from windowpane.core.redaction.shape import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windowpane.core.redaction.literals import Occurrences

_NUMBER: Final = re.compile(
    r"(?:4\d{3}|5[1-5]\d\d|2[2-7]\d\d|6011|65\d\d|35\d\d)"
    r"(?P<gap>[ -]?)\d{4}(?P=gap)\d{4}(?P=gap)\d{4}(?![\w-]|[.,]\d)"
    r"|3[47]\d\d(?P<three>[ -]?)\d{6}(?P=three)\d{5}(?![\w-]|[.,]\d)"
    r"|3[068]\d\d(?P<diners>[ -]?)\d{6}(?P=diners)\d{4}(?![\w-]|[.,]\d)"
)
_CLASSES: Final = CharacterClasses({"0": "0123456789", "-": " -"})
_MINIMUM_DIGITS: Final = 14
_BEGINNINGS: Final = (b"0000-0000", b"0" * _MINIMUM_DIGITS)
"""Signs of the first digits of a number in groups, and of one without."""
_NOT_BEFORE: Final = "_.,/-+:="
_NEARBY: Final = re.compile(
    r"(?<![a-z])(?:card|visa|master-?card|amex|american express|discover|diners|pan|cvv|cvc|payment|credit|debit)"
    r"(?![a-z])|card_?num|cardnumber|credit_?card|_card|card_",
    re.IGNORECASE,
)
_NEARBY_CHARACTERS: Final = 120
_CODE: Final = re.compile(
    r"(?<![a-z])(?:cvv2?|cvc2?|security.code)[\"'\\]{0,4}\s{0,2}[:=]?\s{0,2}[\"'\\]{0,4}(?P<secret>\d{3,4})(?!\d)",
    re.IGNORECASE,
)
LITERALS: Final = ("cvv", "cvc", "security")


def card_code_spans(text: str, occurrences: Occurrences) -> Iterator[Span]:
    """Yield the codes of cards in *text* by the *occurrences* of literals in it."""
    for position in positions_of(LITERALS, occurrences):
        match = _CODE.match(text, position)
        if match is not None:
            yield Span(match.start("secret"), 1, match.end("secret"), "card_code")


def number_spans(text: str) -> Iterator[Span]:
    """Yield the numbers of cards; one without groups counts only near a word that speaks of cards."""
    after = 0
    for position in _beginnings(text):
        match = _NUMBER.match(text, position) if position >= after else None
        if match is None:
            continue
        after = match.end()
        before = text[position - 1 : position]
        grouped = " " in match[0] or "-" in match[0]
        if before.isalnum() or (before and before in _NOT_BEFORE and grouped) or not _has_check_digit(match[0]):
            continue
        nearby = text[max(0, position - _NEARBY_CHARACTERS) : after + _NEARBY_CHARACTERS]
        if grouped or _NEARBY.search(nearby):
            yield Span(position, 1, after, "card_number")


def _beginnings(text: str) -> list[int]:
    """Return where the number of a card may start."""
    if len(text) < _MINIMUM_DIGITS:
        return []
    markers = _CLASSES.markers(text)
    positions = []
    for beginning in _BEGINNINGS:
        position = markers.find(beginning)
        while position >= 0:
            positions.append(position)
            position = markers.find(beginning, position + 1)
    return sorted(positions)


def _has_check_digit(number: str) -> bool:
    """Return True if the digits satisfy Luhn's formula and are not one digit repeated."""
    digits = [int(character) for character in number if character.isdigit()]
    if len(set(digits)) < 3:
        return False
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0
