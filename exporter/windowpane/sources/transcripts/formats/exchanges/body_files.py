"""The files of request and response bodies that Claude Code writes, which its telemetry names."""

from __future__ import annotations

from pathlib import Path
from typing import Final

MAXIMUM_FILE_BYTES: Final = 32 << 20
ENDS: Final = (".request.json", ".response.json")
"""Ends of the names of such files: no other file is read, whatever a sender names."""


def read_body_file(path: str) -> str | None:
    """Return the text of a body's file; None for any other file, and where it cannot be read."""
    file = Path(path)
    if not path.endswith(ENDS) or not file.is_absolute():
        return None
    try:
        if not file.is_file() or file.stat().st_size > MAXIMUM_FILE_BYTES:
            return None
        return file.read_text("utf-8", "replace")
    except (OSError, ValueError):
        return None
