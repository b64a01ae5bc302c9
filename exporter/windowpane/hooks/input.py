"""The document that a coding agent writes to the standard input of its hooks."""

from __future__ import annotations

import json
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAXIMUM_CHARACTERS = 1_000_000


def read_document() -> dict[str, Any]:
    """Return the document; empty if it is not a JSON object."""
    try:
        document = json.loads(sys.stdin.read(MAXIMUM_CHARACTERS))
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
