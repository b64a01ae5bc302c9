"""Content that may not be removed, and the grades in which protection of recent content is relaxed.

Never removed, whatever the pressure: system prompt, tool definitions, the unattributed remainder, the task,
the current user message, the open tool cycle, summaries, and anything pinned. Recent content is protected in
grades: the last exchanges first, then only the last tool groups, then nothing beyond the rule above.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from windowpane.core.vocabulary import ContentType
from windowpane.manager.snapshot import Group, Snapshot, groups_of

Grade = Literal["exchanges", "tool_groups", "open_cycle"]
"""Extent of the recent content that is protected beside what is never removed."""

GRADES: Final[tuple[Grade, ...]] = ("exchanges", "tool_groups", "open_cycle")
LAST_EXCHANGES: Final = 2
LAST_TOOL_GROUPS: Final = 3
RECENT_TOKENS: Final = 40_000
RECENT_RATIO: Final = 0.25
"""Share of usable; the smaller of the two bounds the recent content protected by size."""

FIXED: Final[frozenset[ContentType]] = frozenset({"system_prompt", "tool_definition", "unattributed", "summary"})


def never_removed(snapshot: Snapshot, groups: Sequence[Group]) -> set[str]:
    """Return the ids of the groups that no policy and no compaction may remove."""
    current = _current_user_blocks(snapshot)
    retained = set(snapshot.open_calls)
    fixed = FIXED | snapshot.protected_types
    for group in groups:
        for item in group.items:
            block = item.block
            if (
                block.pinned
                or block.content_type in fixed
                or block.id == snapshot.goal_block
                or block.id in current
                or (block.turn >= snapshot.turn and block.content_type != "placeholder")
            ):
                retained.add(group.id)
                break
    return retained


def protected(snapshot: Snapshot, grade: Grade, groups: Sequence[Group] | None = None) -> set[str]:
    """Return the ids of the groups that an eviction of *grade* may not remove."""
    groups = groups_of(snapshot.items) if groups is None else groups
    retained = never_removed(snapshot, groups)
    if grade == "open_cycle":
        return retained
    if grade == "exchanges" and snapshot.exchange > 1:
        oldest = snapshot.exchange - LAST_EXCHANGES + 1
        retained.update(group.id for group in groups if group.items[-1].block.exchange >= oldest)
    tool_groups = [group.id for group in groups if group.has_call]
    retained.update(tool_groups[-LAST_TOOL_GROUPS:])
    retained.update(tail(groups, recent_tokens(snapshot)))
    return retained


def recent_tokens(snapshot: Snapshot) -> int:
    """Return the tokens of the newest content that are protected by size."""
    return min(RECENT_TOKENS, int(RECENT_RATIO * snapshot.limits.usable_tokens))


def tail(groups: Sequence[Group], max_tokens: int) -> list[str]:
    """Return the ids of the newest groups that fit *max_tokens* together, newest first."""
    retained: list[str] = []
    room = max_tokens
    for group in reversed(groups):
        room -= group.tokens
        if room < 0:
            break
        retained.append(group.id)
    return retained


def _current_user_blocks(snapshot: Snapshot) -> set[str]:
    """Return the ids of the current user message: the last run of user blocks and media."""
    blocks: set[str] = set()
    for item in reversed(snapshot.items):
        kind = item.block.content_type
        if kind in ("user_message", "media"):
            blocks.add(item.block.id)
        elif blocks:
            break
    return blocks
