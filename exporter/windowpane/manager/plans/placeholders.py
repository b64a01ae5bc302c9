"""Placeholders: one short line that replaces a removed tool result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from windowpane.core.protocols import TokenCounter
from windowpane.core.window.blocks import Block

MAXIMUM_TOKENS: Final = 50
NAMES: Final = 3
NAMES_TOKENS: Final = 14
"""Tokens of the placeholder that names may take; the rest is for the finding."""


def handle_of(name: str) -> str:
    """Return the archive's handle for the original of *name*."""
    return f"wp:{name}"


def placeholder_text(
    block: Block, finding: str, handle: str | None, counter: TokenCounter, *, names: Sequence[str] = ()
) -> str:
    """Return the line that replaces *block*: tool, turn, finding, names and handle, in at most 50 tokens.

    *names* are the names in the block that the agent used, the most wanted first; included as far as they fit.
    """
    name = (block.tool_name or "tool")[:60]
    where = f" Original: {handle}" if handle else ""
    names_text = _names_text(names, counter)
    while True:
        finding_text = f" {finding}" if finding else ""
        text = f"[Result of {name}, turn {block.turn}, left the window.{finding_text}{names_text}{where}]"
        if counter.count(text) <= MAXIMUM_TOKENS:
            return text
        if finding:
            finding = finding[: len(finding) * 2 // 3].rstrip("… ") + "…" if len(finding) > 12 else ""
        elif names_text:
            names_text = ""
        elif len(name) > 12:
            name = name[: len(name) // 2]
        else:
            return text


def _names_text(names: Sequence[str], counter: TokenCounter) -> str:
    text = ""
    for name in names[:NAMES]:
        longer = f"{text}, {name}" if text else f" Names: {name}"
        if counter.count(longer) > NAMES_TOKENS:
            break
        text = longer
    return f"{text}." if text else ""
