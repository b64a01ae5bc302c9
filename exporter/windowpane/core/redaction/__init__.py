"""Redaction of secrets in text before it is stored: each becomes `[redacted:kind]`.

A secret is recognized by the shape its provider gives it (`shapes`, `published_shapes`, `keys`, `cards`), by the
name it is assigned to (`names`), or by its location, where only a secret can be (`locations`, `command_lines`);
also in Base64 (compressed too), hexadecimal, percent-encoding and escapes, and between colors (`encodings`). The
literals of all recognizers are searched for at once (`literals`). The recognizers are loaded with the first text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windowpane.core.redaction.stored_names import LONGEST_NAME_BYTES, bounded_name, stored_id, stored_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windowpane.core.redaction.redactor import Redaction

__all__ = ["LONGEST_NAME_BYTES", "bounded_name", "join_split_secrets", "redact", "stored_id", "stored_name"]


def redact(text: str) -> Redaction:
    """Replace every secret in *text*; a text without secrets is returned as the same string.

    Redacting twice changes nothing more, and the time is linear in the length of any text. A replacement is at
    most 32 characters longer than its secret.
    """
    from windowpane.core.redaction import redactor

    return redactor.redact(text)


def join_split_secrets(texts: Sequence[str]) -> list[str]:
    """Return *texts*, which follow each other directly, without the secrets that continue from one to the next.

    The replacement of such a secret is in the text where it starts. Secrets within one text remain: `redact` is
    for those.
    """
    from windowpane.core.redaction import redactor

    return redactor.join_split_secrets(texts)
