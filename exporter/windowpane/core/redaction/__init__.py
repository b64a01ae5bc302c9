"""Redaction of secrets in text before it is stored: each becomes `[redacted:kind]`.

A secret is recognized by the shape its provider gives it (`shapes`, `published_shapes`), by the name it is assigned
to (`names`), by the place where only a secret can be (`places`), or inside an encoding (`encodings`).
"""

from windowpane.core.redaction.redactor import Redaction, redact, redact_parts

__all__ = ["Redaction", "redact", "redact_parts"]
