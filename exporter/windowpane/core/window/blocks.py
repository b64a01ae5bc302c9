"""A block: one piece of content in the window, and the blocks made from others."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from windowpane.core.fast_dataclass import FastDataclass
from windowpane.core.vocabulary import COMPONENT_OF, Component, ContentType, CountSource, Mark


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
    marks: frozenset[Mark] = frozenset()
    """Measured once from its text; never serialized with an event."""


def tokens_by_component(blocks: Iterable[Block]) -> dict[Component, int]:
    """Return the tokens of *blocks* by the budget component they count for."""
    sums: dict[Component, int] = {}
    for block in blocks:
        component = COMPONENT_OF[block.content_type]
        sums[component] = sums.get(component, 0) + block.tokens
    return sums


def replacement(
    block_id: str,
    content_type: ContentType,
    text: str | None,
    tokens: int,
    *,
    turn: int,
    exchange: int,
    digest: str,
    count_source: CountSource,
    handle: str | None,
    replaces: str | None,
    old: Block | None,
    marks: frozenset[Mark],
) -> Block:
    """Return a block that replaces the block *old*, if the window holds it.

    A placeholder belongs to the group and the tool call of the block that it replaces.
    """
    replaced = old if content_type == "placeholder" else None
    return Block(
        id=block_id,
        content_type=content_type,
        tokens=tokens,
        turn=turn,
        group=replaced.group if replaced else block_id,
        exchange=old.exchange if old else exchange,
        digest=digest,
        chars=len(text) if text else 0,
        count_source=count_source,
        text=text,
        tool_call_id=replaced.tool_call_id if replaced else None,
        tool_name=replaced.tool_name if replaced else None,
        replaces=replaces,
        handle=handle,
        target=replaced.target if replaced else None,
        marks=marks,
    )


def shortened(
    block: Block,
    block_id: str,
    text: str,
    tokens: int,
    *,
    digest: str,
    count_source: CountSource,
    handle: str | None,
) -> Block:
    """Return a shorter version of *block*: same type, age, group and tool call."""
    return replace(
        block,
        id=block_id,
        tokens=tokens,
        digest=digest,
        chars=len(text),
        count_source=count_source,
        text=text,
        replaces=block.id,
        handle=handle,
    )


def renamed(blocks: Iterable[Block], new_id: Callable[[], str]) -> list[Block]:
    """Return the blocks under new ids; a group is named after the new id of its first block."""
    groups: dict[str, str] = {}
    copies = []
    for block in blocks:
        block_id = new_id()
        group = groups.setdefault(block.group, block_id)
        copies.append(replace(block, id=block_id, group=group, replaces=block.id))
    return copies
