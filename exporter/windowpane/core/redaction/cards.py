"""Numbers of payment cards: the prefix and length of a network, and the check digit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from windowpane.core.redaction.shape import Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Set

_NUMBER: Final = re.compile(
    r"(?:4\d{3}|5[1-5]\d\d|2[2-7]\d\d|6011|65\d\d|35\d\d)"
    r"(?P<gap>[ -]?)\d{4}(?P=gap)\d{4}(?P=gap)\d{4}(?![\w-]|[.,]\d)"
    r"|3[47]\d\d(?P<three>[ -]?)\d{6}(?P=three)\d{5}(?![\w-]|[.,]\d)"
    r"|3[068]\d\d(?P<diners>[ -]?)\d{6}(?P=diners)\d{4}(?![\w-]|[.,]\d)"
)
_LONG_NUMBER: Final = re.compile(r"[0-9][0-9]{3}(?:[0-9]{9}|-[0-9]{4,6}-[0-9]{4})")
_GROUP_DIGITS: Final = (4, 6)
"""Digits of a group between two others."""
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


_DIGITS: Final = "@digits"
"""A number, which may be the code of a card."""
_GROUP: Final = "@group"
"""A number that may be one of a card, or a group of it."""
CLUES: Final = ("cvv", "cvc", "security")


def number_clues(part: str) -> Iterator[str]:
    """Yield the clues that numbers in a part of a text are."""
    is_long = _LONG_NUMBER.search(part) is not None
    if is_long or part.isdigit():
        yield _DIGITS
    if is_long or (part.isdigit() and len(part) in _GROUP_DIGITS):
        yield _GROUP


def card_spans(text: str, clues: Set[str]) -> Iterator[Span]:
    """Yield the numbers and codes of cards in *text*, whose parts have *clues*."""
    if _GROUP in clues:
        yield from _numbers(text)
    if _DIGITS in clues and not clues.isdisjoint(CLUES):
        for match in _CODE.finditer(text):
            yield Span(match.start("secret"), 1, match.end("secret"), "card_code")


def _numbers(text: str) -> Iterator[Span]:
    """Yield the numbers of cards; one without groups counts only near a word that speaks of cards."""
    for match in _NUMBER.finditer(text):
        before = text[match.start() - 1 : match.start()]
        grouped = " " in match[0] or "-" in match[0]
        if before.isalnum() or (before and before in _NOT_BEFORE and grouped) or not _has_check_digit(match[0]):
            continue
        nearby = text[max(0, match.start() - _NEARBY_CHARACTERS) : match.end() + _NEARBY_CHARACTERS]
        if grouped or _NEARBY.search(nearby):
            yield Span(match.start(), 1, match.end(), "card_number")


def _has_check_digit(number: str) -> bool:
    """Return True if the digits satisfy Luhn's formula and are not one digit repeated."""
    digits = [int(character) for character in number if character.isdigit()]
    if len(set(digits)) < 3:
        return False
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0
