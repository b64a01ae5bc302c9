"""Pruning of old tool results: everything beyond the newest so many tokens gives way to one marker.

A pure function over a snapshot, as BaseAgent and OpenCode prune, and as Anthropic's tool clearing is configured.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from windowpane.core.protocols import TokenCounter
from windowpane.exceptions import ConfigurationError
from windowpane.manager.plans.eviction import EvictionPlan, Removal
from windowpane.manager.plans.placeholders import handle_of
from windowpane.manager.plans.protection import never_removed
from windowpane.manager.snapshot import Item, Snapshot, groups_of

CLEARED: Final = "[Old tool result content cleared]"
"""How a cleared result begins, and how it is recognised."""


@dataclass(frozen=True, slots=True)
class Pruning:
    """What is kept, in tokens of tool results. Raises `ConfigurationError` for a negative number."""

    protect_tokens: int
    """Of the newest results; the one that passes it is the first to go."""
    minimum_tokens: int
    """Nothing is cleared unless more than this would be."""
    skipped_user_turns: int = 2
    """Results since this many user messages ago are not looked at, unless nothing stands before those."""
    keep_results: int = 0
    """So many of the newest results stay whatever their size."""
    protected_tools: Collection[str] = ()
    policy: str = "prune"

    def __post_init__(self) -> None:
        for name in ("protect_tokens", "minimum_tokens", "skipped_user_turns", "keep_results"):
            value = getattr(self, name)
            if value < 0:
                raise ConfigurationError(f"pruning.{name}", f"{value} is negative", expected=">= 0")


@dataclass(frozen=True, slots=True)
class PrunePlan:
    """What a scan found; the plan is None where too little would be cleared."""

    scanned_tokens: int
    """Of all results that were looked at."""
    prunable_tokens: int
    results: int
    plan: EvictionPlan | None


def plan_prune(
    snapshot: Snapshot, pruning: Pruning, *, counter: TokenCounter, handles: bool = False
) -> PrunePlan:
    """Scan backwards, protect the newest, clear the rest; the same snapshot gives the same plan.

    Stops at the first result that was cleared before, so pruning twice changes nothing. What never leaves the
    window counts as protected. A run with no user message before the skipped ones (one long instruction) skips
    none of its results: else it would never be pruned.
    """
    kept = never_removed(snapshot, groups_of(snapshot.items))
    scanned = seen = prunable = 0
    removals: list[Removal] = []
    for item in reversed(_scanned(snapshot, pruning)):
        block = item.block
        if block.content_type == "placeholder" and (block.text or "").startswith(CLEARED):
            break
        if block.content_type != "tool_result" or block.tool_name in pruning.protected_tools:
            continue
        scanned += block.tokens
        seen += 1
        if scanned <= pruning.protect_tokens or seen <= pruning.keep_results or block.group in kept:
            continue
        prunable += block.tokens
        removal = _cleared(item, counter, handles=handles)
        if removal is not None:
            removals.append(removal)
    plan = None
    if prunable > pruning.minimum_tokens and removals:
        plan = _plan(snapshot, pruning.policy, removals[::-1])
    return PrunePlan(scanned, prunable, len(removals), plan)


def _scanned(snapshot: Snapshot, pruning: Pruning) -> tuple[Item, ...]:
    """The items before the last user messages that are skipped; all where there are not so many."""
    if not pruning.skipped_user_turns:
        return snapshot.items
    users = [at for at, item in enumerate(snapshot.items) if item.block.content_type == "user_message"]
    if len(users) <= pruning.skipped_user_turns:
        return snapshot.items
    return snapshot.items[: users[-pruning.skipped_user_turns]]


def _cleared(item: Item, counter: TokenCounter, *, handles: bool) -> Removal | None:
    """The marker in the place of a result; None where it would not be smaller."""
    block = item.block
    handle = (block.handle or handle_of(block.id)) if handles else None
    text = f"{CLEARED} {handle}" if handle else CLEARED
    tokens = counter.count(text)
    if tokens >= block.tokens:
        return None
    return Removal("mask", (block,), 0.0, {}, "beyond the protected results", text, tokens)


def _plan(snapshot: Snapshot, policy: str, removals: list[Removal]) -> EvictionPlan:
    taken = {removal.blocks[0].id for removal in removals}
    first = next(at for at, item in enumerate(snapshot.items) if item.block.id in taken)
    return EvictionPlan(
        version=snapshot.version,
        policy=policy,
        grade="open_cycle",
        needed_tokens=sum(removal.freed for removal in removals),
        removals=tuple(removals),
        cache_cost_tokens=sum(item.block.tokens for item in snapshot.items[first:] if item.block.id not in taken),
    )
