"""Plans a compaction: the blocks that a summary replaces, and the groups that are retained.

Retained are whole groups of the tail, cut at an exchange boundary if one is near, the user's messages as far as
they fit, and everything that is never removed. The new summary carries on the previous one, and has less room
than it only where the call would not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from windowpane.core.window.blocks import Block
from windowpane.exceptions import ConfigurationError
from windowpane.manager.plans.protection import never_removed, tail
from windowpane.manager.snapshot import Group, Snapshot, groups_of

TAIL_TOKENS: Final = 15_000
TAIL_RATIO: Final = 0.10
USER_TOKENS: Final = 20_000
USER_RATIO: Final = 0.15
SUMMARY_TOKENS: Final = 10_000
SUMMARY_RATIO: Final = 0.35
"""Both bounds also hold as a share of usable, so that a small window is not filled by its own summary."""
SUMMARY_SHARE: Final = 0.5
"""Share of the replaced tokens that a summary may have in addition to the earlier summaries among them."""
TAIL_GRADES: Final = (1.0, 0.5, 0.25, 0.0)
"""Shares of the tail that are tried until the target can be met."""


GroupChoice = Callable[[Snapshot, Sequence[Group]], set[str]]
"""Returns the ids of the groups to retain, in addition to those that are never removed."""


@dataclass(frozen=True, slots=True)
class CompactionBounds:
    """Bounds of what a compaction retains; each bound in tokens also holds as a share of usable.

    Raises `ConfigurationError` for a share that is not from 0 to below 1, or a summary without room.
    """

    tail_tokens: int = TAIL_TOKENS
    tail_ratio: float = TAIL_RATIO
    user_tokens: int = USER_TOKENS
    """Tokens of the user's messages retained before the tail, newest first."""
    user_ratio: float = USER_RATIO
    summary_tokens: int = SUMMARY_TOKENS
    summary_ratio: float = SUMMARY_RATIO
    chosen_groups: GroupChoice | None = None
    """Choice of the retained groups, in place of a tail by size."""
    by_model: bool = True
    """Let a language model write the summary."""

    def __post_init__(self) -> None:
        for name in ("tail_ratio", "user_ratio", "summary_ratio"):
            share = getattr(self, name)
            if not 0 <= share < 1:
                raise ConfigurationError(f"compression.{name}", f"{share}", expected="0 to below 1")
        if self.summary_tokens < 1 or not self.summary_ratio:
            raise ConfigurationError("compression.summary_tokens", "no room for a summary", expected=">= 1")


DEFAULT_BOUNDS: Final = CompactionBounds()


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """The removed blocks, oldest first, for one version of the window."""

    version: int
    removed: tuple[Block, ...]
    partial_message: Block | None
    """A user message that fits only in part: it is replaced by a shortened form."""
    partial_tokens: int
    previous: tuple[Block, ...]
    """Earlier summaries among the removed."""
    summary_tokens: int
    """Maximum size of the summary without the goal."""
    remaining_tokens: int
    """Tokens of the window without the removed blocks."""

    @property
    def removed_tokens(self) -> int:
        """Tokens of what is removed."""
        return sum(block.tokens for block in self.removed)


def plan_compaction(
    snapshot: Snapshot, target_tokens: int, bounds: CompactionBounds = DEFAULT_BOUNDS
) -> CompactionPlan | None:
    """Return the compaction that retains most and still reaches *target_tokens*, else the one that frees most.

    None if there is nothing to compact.
    """
    groups = groups_of(snapshot.items)
    fixed = never_removed(snapshot, groups)
    usable = snapshot.limits.usable_tokens
    if bounds.chosen_groups is not None:
        return _plan(snapshot, groups, fixed | bounds.chosen_groups(snapshot, groups), bounds)
    best: CompactionPlan | None = None
    for grade in TAIL_GRADES:
        tail_tokens = int(grade * min(bounds.tail_tokens, bounds.tail_ratio * usable))
        retained = fixed | set(_at_exchange(groups, tail(groups, tail_tokens)))
        plan = _plan(snapshot, groups, retained, bounds)
        if plan is None:
            continue
        best = plan
        if plan.remaining_tokens + plan.partial_tokens + plan.summary_tokens <= target_tokens:
            break
    return best


def _at_exchange(groups: Sequence[Group], retained: Sequence[str]) -> Sequence[str]:
    """Return the tail from the start of an exchange on, if that is at least half of it; else the whole tail."""
    members = [group for group in groups if group.id in set(retained)]
    total = sum(group.tokens for group in members)
    remaining = total
    for at, group in enumerate(members):
        if group.items[0].block.content_type == "user_message" and at:
            return [member.id for member in members[at:]] if remaining >= total / 2 else retained
        remaining -= group.tokens
    return retained


def _plan(
    snapshot: Snapshot, groups: Sequence[Group], retained: set[str], bounds: CompactionBounds
) -> CompactionPlan | None:
    usable = snapshot.limits.usable_tokens
    room = int(min(bounds.user_tokens, bounds.user_ratio * usable))
    partial_message: Block | None = None
    partial_tokens = 0
    removed_groups: list[Group] = []
    for group in reversed(groups):
        block = group.items[0].block
        if block.content_type == "summary" and not block.pinned:
            removed_groups.append(group)
        elif group.id in retained:
            continue
        elif block.content_type == "user_message" and partial_message is None:
            room -= block.tokens
            if room < 0:
                if room + block.tokens >= block.tokens // 4 > 16:
                    partial_message, partial_tokens = block, room + block.tokens
                room = 0
                removed_groups.append(group)
        else:
            removed_groups.append(group)
    removed = tuple(item.block for group in reversed(removed_groups) for item in group.items)
    previous = tuple(block for block in removed if block.content_type == "summary")
    if len(removed) == len(previous):
        return None
    tokens = sum(block.tokens for block in removed)
    remaining = snapshot.tokens - tokens
    repeated = sum(block.tokens for block in previous)
    summary = min(
        bounds.summary_tokens, bounds.summary_ratio * usable, repeated + SUMMARY_SHARE * (tokens - repeated)
    )
    fitting = max(SUMMARY_SHARE * tokens, usable - remaining - partial_tokens)
    return CompactionPlan(
        version=snapshot.version,
        removed=removed,
        partial_message=partial_message,
        partial_tokens=partial_tokens,
        previous=previous,
        summary_tokens=int(min(summary, fitting)),
        remaining_tokens=remaining,
    )
