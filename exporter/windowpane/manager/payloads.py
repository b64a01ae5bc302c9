"""What a block's text does not say: a provider's own form of it, and the finding of a tool result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Payload:
    """Kept beside a block while it is in the window."""

    raw: Mapping[str, Any] | None = None
    """The content part as it came: an image, or thinking with its signature."""
    finding: str = ""
    """One line of what a tool result found, taken when it came in."""
    media: tuple[Mapping[str, Any], ...] = ()
    """Images and documents in a tool's output, as they came."""
    is_error: bool = False
    """A tool's result that says it failed."""
    joined: bool = False
    """Part of the same message as the block before it."""
