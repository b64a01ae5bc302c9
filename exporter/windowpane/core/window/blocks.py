"""A block: one piece of content in the window."""

from __future__ import annotations

from collections.abc import Iterable

from windowpane.core.fast_dataclass import FastDataclass
from windowpane.core.vocabulary import COMPONENT_OF, Component, ContentType, CountSource


class Block(FastDataclass, frozen=True):
    """One piece of content in the window, with its text or only its digest."""

    id: str
    """Unique in its session."""
    content_type: ContentType
    tokens: int
    """Counted at ingest for the session's model."""
    turn: int
    """Turn in which it was created."""
    group: str
    """Id of its atomic unit: reasoning, a tool call and all its results, or a single message."""
    exchange: int
    """Exchange it belongs to, from 1; 0 before the first user message."""
    digest: str
    """Keyed digest of the text; for a tool call, of tool name and arguments."""
    chars: int
    """Length of the text in characters."""
    count_source: CountSource
    text: str | None = None
    """None if the source did not record it. Never serialized with an event."""
    tool_call_id: str | None = None
    tool_name: str | None = None
    pinned: bool = False
    """Never removed."""
    replaces: str | None = None
    """Id of the (first) block that this placeholder or summary replaces."""
    handle: str | None = None
    """Handle by which the original of a placeholder can be retrieved."""
    target: str | None = None
    """File or command of a tool call and of its result, redacted; None where the arguments name none."""


def tokens_by_component(blocks: Iterable[Block]) -> dict[Component, int]:
    """Return the tokens of *blocks* by the budget component they count for."""
    sums: dict[Component, int] = {}
    for block in blocks:
        component = COMPONENT_OF[block.content_type]
        sums[component] = sums.get(component, 0) + block.tokens
    return sums
