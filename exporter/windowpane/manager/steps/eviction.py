"""Eviction and truncation: applies eviction plans, and truncates the content of the turn as the last resort.

Each is a generator that yields commands and re-plans if the window changed meanwhile. Results are reported
through the tracker; nothing is applied that does not make the window smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from windowpane.core.events import BlocksEvicted, ContentCompressed, EvictedBlock
from windowpane.core.limits import WindowLimits
from windowpane.core.vocabulary import COMPONENT_OF, ContentType
from windowpane.core.window.blocks import Block
from windowpane.effects.commands import ArchiveOriginals, Effect
from windowpane.manager.engine import Engine
from windowpane.manager.levels import Levels, cache_break_even
from windowpane.manager.plans.eviction import EvictionPlan, Removal, plan_eviction
from windowpane.manager.plans.placeholders import handle_of
from windowpane.manager.plans.policies import STORED_TERMS, Policy
from windowpane.manager.plans.protection import Grade
from windowpane.manager.plans.truncation import clip_arguments, middle_out, shorten_result
from windowpane.manager.snapshot import Snapshot
from windowpane.manager.step import NOT_DONE, StepResult

REPLANS: Final = 3
"""Maximum plans for one reduction if the window keeps changing meanwhile."""
CUT_ORDER: Final[tuple[tuple[ContentType, int], ...]] = (
    ("tool_result", 64),
    ("memory_injection", 64),
    ("assistant_response", 128),
    ("tool_call", 128),
    ("user_message", 256),
)
"""Types of content that are truncated within a turn, in order, with the minimum tokens retained of each."""


_SHORTEN: Final = {"tool_call": clip_arguments, "tool_result": shorten_result}


EvictionPlanner = Callable[[Snapshot, bool], EvictionPlan | None]
"""Plans the eviction for a snapshot, or None; the flag is True if placeholders may name handles."""


def evict(
    engine: Engine,
    limits: WindowLimits,
    levels: Levels,
    *,
    grades: Sequence[Grade],
    minimum_tokens: int,
    target_used: int | None = None,
    policy: Policy | None = None,
) -> Effect[StepResult]:
    """Evict down to the target, unless that frees less than *minimum_tokens* or does not pay its cache cost."""
    target = levels.target if target_used is None else target_used
    chosen = policy or engine.settings.policy
    if chosen is None:
        return NOT_DONE

    def plan_of(snapshot: Snapshot, handles: bool) -> EvictionPlan:  # noqa: FBT001 (the protocol's shape)
        needed = engine.raw(max(0, engine.used() - target))
        return _best_plan(engine, snapshot, needed, policy=chosen, grades=grades, handles=handles)

    if engine.used() <= target:
        return StepResult()
    return (
        yield from evict_planned(
            engine, limits, plan_of, lambda plan: _worth(engine, levels, plan, minimum_tokens)
        )
    )


def evict_planned(
    engine: Engine, limits: WindowLimits, plan_of: EvictionPlanner, worth: Callable[[EvictionPlan], int]
) -> Effect[StepResult]:
    """Apply the plan of *plan_of*, unless it frees less than the tokens that *worth* requires of it."""
    handles = engine.settings.archive
    for _ in range(REPLANS):
        plan = plan_of(engine.snapshot(limits), handles)
        if plan is None or not plan.needed_tokens:
            return StepResult()
        if plan.freed_tokens < worth(plan):
            engine.reduction.fruitless_used = engine.used()
            return NOT_DONE
        if handles:
            reply = yield ArchiveOriginals(_originals(plan))
            if reply.failed:
                handles = False
                continue
            if engine.tracker.window.version != plan.version:
                continue
        _apply_eviction(engine, plan, handles=handles)
        count = sum(len(removal.blocks) for removal in plan.removals)
        done = f"evicted {count} blocks by {plan.policy}, {plan.freed_tokens:,} tokens freed"
        return StepResult(done, plan.freed_tokens, plan.shortfall_tokens > 0)
    return NOT_DONE


def _best_plan(
    engine: Engine, snapshot: Snapshot, needed: int, *, policy: Policy, grades: Sequence[Grade], handles: bool
) -> EvictionPlan:
    """Return the plan of the first grade of protection that frees enough, else of the last grade."""
    plan = None
    for grade in grades:
        plan = plan_eviction(
            snapshot, needed, policy=policy, counter=engine.counter, grade=grade, handles=handles
        )
        if not plan.shortfall_tokens:
            break
    assert plan is not None, "at least one grade"
    return plan


def _worth(engine: Engine, levels: Levels, plan: EvictionPlan, minimum_tokens: int) -> int:
    """Return the tokens that the plan has to free to be applied."""
    needed = min(minimum_tokens, plan.needed_tokens) if minimum_tokens > 1 else minimum_tokens
    usage = engine.last_usage
    if usage is not None and usage.cache_read_tokens > 0 and engine.used() < levels.compact:
        needed = max(needed, cache_break_even(plan.cache_cost_tokens, engine.settings.expected_turns))
    return max(1, needed)


def _originals(plan: EvictionPlan) -> tuple[tuple[str, str], ...]:
    return tuple(
        (handle_of(block.id), block.text)
        for removal in plan.removals
        for block in removal.blocks
        if block.text and block.handle is None
    )


def _apply_eviction(engine: Engine, plan: EvictionPlan, *, handles: bool) -> None:
    tracker = engine.tracker
    evicted: list[EvictedBlock] = []
    placeholders: list[Block] = []
    for removal in plan.removals:
        placeholder = _placeholder(engine, removal, handles=handles)
        if placeholder is not None:
            placeholders.append(placeholder)
            engine.carry_finding(removal.blocks[0], placeholder)
        evicted.extend(_evicted(removal, block, placeholder, handles=handles) for block in removal.blocks)
    tracker.evict(
        BlocksEvicted(
            policy=plan.policy,
            blocks=tuple(evicted),
            tokens_removed=sum(block.tokens for block in evicted),
            tokens_freed=plan.freed_tokens,
            target_tokens=plan.needed_tokens,
            shortfall_tokens=plan.shortfall_tokens,
            cache_cost_tokens=plan.cache_cost_tokens,
            candidates=plan.candidates,
        ),
        placeholders,
    )
    engine.forget([block for removal in plan.removals for block in removal.blocks])


def _placeholder(engine: Engine, removal: Removal, *, handles: bool) -> Block | None:
    if removal.placeholder is None:
        return None
    block = removal.blocks[0]
    return engine.tracker.make_replacement(
        "placeholder",
        removal.placeholder,
        removal.placeholder_tokens,
        replaces=block.id,
        count_source=engine.counter.source,
        handle=(block.handle or handle_of(block.id)) if handles else None,
    )


def _evicted(removal: Removal, block: Block, placeholder: Block | None, *, handles: bool) -> EvictedBlock:
    return EvictedBlock(
        block_id=block.id,
        content_type=block.content_type,
        tokens=block.tokens,
        form=removal.form,
        reason=removal.reason,
        score=round(removal.score, 4),
        terms={STORED_TERMS.get(name, name): round(value, 4) for name, value in removal.terms.items()},
        replacement=None if placeholder is None else placeholder.id,
        replacement_tokens=removal.placeholder_tokens,
        handle=(block.handle or handle_of(block.id)) if handles and block.text else None,
        turn_added=block.turn,
        tool_name=block.tool_name,
    )


def truncate_turn(engine: Engine, *, target_used: int) -> Effect[StepResult]:
    """Truncate the longest content middle-out: tool results, then memory, responses, calls and user messages.

    The last resort, until *target_used* is reached: also content that may not be removed. Originals are archived.
    """
    freed = 0
    for content_type, smallest in CUT_ORDER:
        excess = engine.used() - target_used
        if excess <= 0:
            break
        blocks = [
            block
            for block in engine.tracker.window
            if block.content_type == content_type and block.text and not block.pinned
        ]
        level = common_limit([block.tokens for block in blocks], engine.raw(excess), smallest)
        for block in blocks:
            if block.tokens > level:
                freed += yield from _shorten(engine, block, level)
    if not freed:
        return NOT_DONE
    return StepResult(
        f"shortened the turn's own content, {freed:,} tokens freed", freed, engine.used() > target_used
    )


def common_limit(sizes: Sequence[int], excess: int, smallest: int) -> int:
    """Return the size to which all larger ones are truncated to save *excess*; at least *smallest*."""
    low, high = smallest, max(sizes, default=smallest)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(max(0, size - middle) for size in sizes) >= excess:
            low = middle
        else:
            high = middle - 1
    return low


def archive_original(
    engine: Engine, block: Block, *, root: str = "", text: str | None = None
) -> Effect[str | None]:
    """Archive the original of *block* and return its handle; None if it is not archived.

    *root* and *text* are the id and text of the first block, if *block* was shortened before.
    """
    if block.handle is not None or not engine.settings.archive:
        return block.handle
    handle = handle_of(root or block.id)
    reply = yield ArchiveOriginals(((handle, (block.text or "") if text is None else text),))
    return None if reply.failed else handle


def _shorten(engine: Engine, block: Block, max_tokens: int) -> Effect[int]:
    tracker = engine.tracker
    handle = yield from archive_original(engine, block)
    if block.id not in tracker.window:
        return 0
    note = f", original: {handle}" if handle else ""
    shorten = _SHORTEN.get(block.content_type, middle_out)
    text = shorten(block.text or "", max_tokens, engine.counter, note=note)
    tokens = engine.counter.count(text) + (
        engine.counter.count(block.tool_name or "") if block.content_type == "tool_call" else 0
    )
    if tokens >= block.tokens:
        return 0
    short = tracker.make_shortened(block, text, tokens, count_source=engine.counter.source, handle=handle)
    tracker.compress(
        ContentCompressed(
            strategy="truncation",
            trigger="overflow",
            outcome="accepted",
            tokens_before=block.tokens,
            tokens_after=tokens,
            removed=(block.id,),
            results=(short.id,),
            removed_by_component={COMPONENT_OF[block.content_type]: block.tokens},
            method="middle_out",
        ),
        (short,),
    )
    engine.transfer(block, short)
    return block.tokens - tokens
