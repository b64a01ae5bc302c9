"""Blocks made from other blocks: replacements, shorter versions, and the same content under new ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from windowpane.core.vocabulary import ContentType, CountSource
from windowpane.core.window.blocks import Block


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
