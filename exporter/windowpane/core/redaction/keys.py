"""Private keys in the formats of OpenSSL, OpenSSH, PGP, OpenVPN and PuTTY, whole or cut off."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from windowpane.core.redaction.shape import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windowpane.core.redaction.literals import Occurrences


class _Format(NamedTuple):
    literal: str
    head: re.Pattern[str]
    end: re.Pattern[str]


_FORMATS: Final = (
    _Format(
        "-----BEGIN ",
        re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}(?:PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V1)-----"),
        re.compile(r"-----END [A-Za-z0-9 ]{0,50}-----"),
    ),
    _Format(
        "---- BEGIN SSH2 ENCRYPTED",
        re.compile(r"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----"),
        re.compile(r"---- END [A-Z0-9 ]{0,50}----"),
    ),
    _Format(
        "PuTTY-User-Key-File-",
        re.compile(r"PuTTY-User-Key-File-\d: [A-Za-z0-9-]{1,40}"),
        re.compile(r"Private-MAC: [0-9a-fA-F]{1,128}"),
    ),
)
_TEXT = r"[A-Za-z0-9+/=\s\\:,.→]"
_BODY = re.compile(rf"(?=(?:{_TEXT}|-(?!----)){{20}}){_TEXT}*+(?:-(?!----){_TEXT}*+){{0,1000}}")
"""Headers contain dashes. No possessive group: Python before 3.11.5 loses a character at the end of one."""
_MAX_KEY_CHARACTERS: Final = 16_384


LITERALS: Final = tuple(form.literal.lower() for form in _FORMATS)


def key_spans(text: str, occurrences: Occurrences) -> Iterator[Span]:
    """Yield the private keys in *text* by the *occurrences* of literals in it."""
    for form in _FORMATS:
        after = 0
        for position in occurrences.get(form.literal.lower(), ()):
            head = form.head.match(text, position) if position >= after else None
            body = _BODY.match(text, head.end()) if head else None
            if head and body:
                after = _end(form, text, head.end(), body.end())
                yield Span(position, 0, after, "private_key")


def _end(form: _Format, text: str, start: int, body_end: int) -> int:
    """Return where the key ends: behind its last line, or with its text if it is cut off."""
    following = text.find(form.literal, start)
    limit = start + _MAX_KEY_CHARACTERS if following < 0 else min(following, start + _MAX_KEY_CHARACTERS)
    last_line = form.end.search(text, start, max(limit, body_end))
    if last_line is not None:
        return last_line.end()
    if form.literal.startswith("PuTTY"):
        return min(limit, len(text))
    closing = form.end.match(text, body_end)
    return closing.end() if closing else body_end
