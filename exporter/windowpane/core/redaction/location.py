"""A location where only a secret can be, and what counts as one there."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final, NamedTuple

from windowpane.core.redaction.shape import Span
from windowpane.core.redaction.values import is_explicit

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterator, Sequence

QUOTE: Final = r"\\{0,3}[\"'`]?"
"""A quotation mark, also within JSON, or none."""


class Location(NamedTuple):
    """A pattern around a secret, with the literals that it is searched by."""

    kind: str
    literals: tuple[str, ...]
    """In lower case; the pattern is tried at each."""
    pattern: re.Pattern[str]
    """Its group `secret` is judged and replaced."""
    is_secret: Callable[[str], bool]
    elsewhere: str = ""
    """A literal that the text contains, too."""

    def spans(self, positions: Sequence[int], text: str) -> Iterator[Span]:
        """Yield the secrets in *text* at this location, one of whose literals is at *positions*."""
        after = 0
        for position in positions:
            match = self.pattern.match(text, position) if position >= after else None
            if match is not None and self.is_secret(match["secret"]):
                yield Span(match.start("secret"), 2, match.end("secret"), self.kind)
                after = match.end("secret")


def is_random(value: str) -> bool:
    """Return True for an explicit value with a digit."""
    return any(character.isdigit() for character in value) and is_explicit(value)


def is_login(value: str) -> bool:
    """Return True for Base64 of `user:password`."""
    try:
        decoded = base64.b64decode(value + "=" * (-len(value) % 4), validate=True).decode("ascii")
    except ValueError:
        return False
    return 0 < decoded.find(":") < len(decoded) - 1 and decoded.isprintable()


def is_credential(value: str) -> bool:
    """Return True for a long random value and for a login."""
    return (is_random(value) and len(value) >= 16) or is_login(value)
