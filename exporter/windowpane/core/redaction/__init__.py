"""Redaction of secrets in text before it is stored: each becomes `[redacted:kind]`.

A secret is recognized by the shape its provider gives it (`shapes`, `published_shapes`, `keys`, `cards`), by the
name it is assigned to (`names`), or by its location, where only a secret can be (`locations`, `command_lines`);
also in Base64 (compressed too), hexadecimal, percent-encoding and escapes, and between colors (`encodings`). The
literals of all recognizers are searched for at once (`literals`).
"""

from windowpane.core.redaction.redactor import Redaction, join_split_secrets, redact
from windowpane.core.redaction.stored_names import LONGEST_NAME_BYTES, bounded_name, stored_id, stored_name

__all__ = [
    "LONGEST_NAME_BYTES",
    "Redaction",
    "bounded_name",
    "join_split_secrets",
    "redact",
    "stored_id",
    "stored_name",
]
