"""The section on content that was needed again: regrets, and stale content that later content named."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from truth.recordings import Session
from windowpane.core.events import (
    BlockAdded,
    BlocksEvicted,
    BlocksReferenced,
    ContentCompressed,
    ContentRegretted,
    WindowRolled,
)
from windowpane.core.limits import DEFAULT_LIFETIMES
from windowpane.core.window.blocks import Block


def needed_again_section(sessions: Sequence[Session]) -> list[str]:
    """Return the lines of the section."""
    return [*_regret_lines(sessions), "", *_stale_lines(sessions)]


def _regret_lines(sessions: Sequence[Session]) -> list[str]:
    """Compare what each regret fetched with what had been removed."""
    regrets: Counter[str] = Counter()
    equal: Counter[str] = Counter()
    for session in sessions:
        blocks: dict[str, Block] = {}
        results: dict[str | None, Block] = {}
        for event in session.events:
            if isinstance(event.data, BlockAdded):
                block = event.data.block
                blocks[block.id] = block
                if block.content_type == "tool_result":
                    results.setdefault(block.tool_call_id, block)
        for event in session.events:
            if isinstance(event.data, ContentRegretted):
                by = blocks[event.data.by]
                again = results.get(by.tool_call_id, by) if by.content_type == "tool_call" else by
                kind = event.data.tool_name or event.data.content_type or ""
                regrets[kind] += 1
                equal[kind] += again.digest == blocks[event.data.block_id].digest
    note = (
        "Regrets by the tool that read the content first, and how many of them fetched exactly the same. The "
        "others are files that the session had changed before they were removed, or another program since."
    )
    return [
        note,
        "",
        "| tool | regrets | the same content |",
        "| --- | ---: | ---: |",
        *(f"| {kind} | {number} | {equal[kind]} |" for kind, number in sorted(regrets.items())),
        f"| all | {sum(regrets.values())} | {sum(equal.values())} |",
    ]


class _Use(NamedTuple):
    """The uses of one block by turn, and the turn in which it left the window."""

    block: Block
    referenced: list[int]
    targeted: list[int]
    end: int


def _stale_lines(sessions: Sequence[Session]) -> list[str]:
    """Count the stale tokens of all turns, and those of blocks that were used again."""
    stale = again = 0
    for session in sessions:
        for use in _uses(session):
            lifetime = DEFAULT_LIFETIMES.get(use.block.content_type)
            if lifetime is None:
                continue
            last = max([use.block.turn, *use.referenced, *use.targeted])
            starts = [use.block.turn, *use.referenced]
            for start, following in zip(starts, [*starts[1:], use.end], strict=True):
                turns = range(start + lifetime + 1, min(following, use.end))
                stale += use.block.tokens * len(turns)
                again += use.block.tokens * len([turn for turn in turns if turn <= last + lifetime])
    text = (
        "Stale content is past the lifetime of its type since the last reference. Of its "
        f"{stale / 1e6:,.1f} million tokens over all turns {again / max(1, stale):.0%} were referenced later, or "
        "their file or command named by a later call. The finding counts the others."
    )
    return [text]


def _uses(session: Session) -> list[_Use]:
    blocks: dict[str, Block] = {}
    referenced: defaultdict[str, list[int]] = defaultdict(list)
    targeted: defaultdict[str | None, list[int]] = defaultdict(list)
    removed: dict[str, int] = {}
    last = 0
    for event in session.events:
        last = max(last, event.context.turn)
        match event.data:
            case BlockAdded(block=block):
                blocks[block.id] = block
                if block.replaces:
                    removed.setdefault(block.replaces, last)
                if block.content_type == "tool_call":
                    targeted[block.target].append(last)
            case BlocksReferenced(block_ids=block_ids):
                for block_id in block_ids:
                    referenced[block_id].append(last)
            case BlocksEvicted(blocks=evicted):
                for one in evicted:
                    removed.setdefault(one.block_id, last)
            case ContentCompressed(outcome="accepted", removed=compressed):
                for block_id in compressed:
                    removed.setdefault(block_id, last)
            case WindowRolled():
                for block_id in blocks:
                    removed.setdefault(block_id, last)
    return [
        _Use(
            block,
            referenced[block.id],
            [turn for turn in targeted[block.target] if turn > block.turn] if block.target else [],
            removed.get(block.id, last + 1),
        )
        for block in blocks.values()
    ]
