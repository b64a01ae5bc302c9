"""Numbers of payment cards: the prefix and length of a network, and the check digit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from windowpane.core.redaction.shape import Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_NUMBER: Final = re.compile(
    r"(?:4\d{3}|5[1-5]\d\d|2[2-7]\d\d|6011|65\d\d|35\d\d)"
    r"(?P<gap>[ -]?)\d{4}(?P=gap)\d{4}(?P=gap)\d{4}(?![\w-]|[.,]\d)"
    r"|3[47]\d\d(?P<three>[ -]?)\d{6}(?P=three)\d{5}(?![\w-]|[.,]\d)"
    r"|3[068]\d\d(?P<diners>[ -]?)\d{6}(?P=diners)\d{4}(?![\w-]|[.,]\d)"
)
_LONG_NUMBER: Final = re.compile(r"[0-9][0-9]{3}(?:[0-9]{9}|-[0-9]{4,6}-[0-9]{4})")
_GROUP_DIGITS: Final = 4
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


def card_spans(text: str, parts: Iterable[str], vocabulary: str, candidates: str) -> Iterator[Span]:
    """Yield the numbers and codes of cards in *text*.

    *parts* are its words, *vocabulary* the same joined and in lower case, and *candidates* the long ones.
    """
    numbers = list(filter(str.isdigit, parts))
    has_long_number = _LONG_NUMBER.search(candidates) is not None
    if has_long_number or any(len(number) >= _GROUP_DIGITS for number in numbers):
        yield from _numbers(text)
    if (has_long_number or numbers) and ("cvv" in vocabulary or "cvc" in vocabulary or "security" in vocabulary):
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
