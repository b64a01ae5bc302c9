"""The readers of this release."""

from __future__ import annotations

from windowpane.sources.base import Reader
from windowpane.sources.claude_code import ClaudeCodeReader


def all_readers(*, complete: bool | None = None) -> tuple[Reader, ...]:
    """One reader a format, the most particular first.

    *complete* says whether files are finished; None: those not written to for two minutes are. What a file that
    is still growing leaves open is held back.
    """
    return (ClaudeCodeReader(complete=complete),)
