"""The BaseAgent preset: prunes old tool results at 85% of usable, then compacts; caps results middle-out.

Of a window of 200,000 tokens 32,000 are kept for output. Pruning protects the newest 40,000 tokens of results and
clears older ones if that removes more than 20,000; if the window is still too full, the rest becomes one summary.
In other windows the same shares apply. Two faults of the source are repaired: a run with a single instruction is
pruned too, and the instruction and the open tool cycle survive a compaction.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from windowpane.core.choices import FIXED_BY_PRESET
from windowpane.core.limits import WindowLimits
from windowpane.core.protocols import TokenCounter
from windowpane.core.vocabulary import LimitSource
from windowpane.effects.commands import Effect
from windowpane.exceptions import ConfigurationError
from windowpane.manager.engine import Engine
from windowpane.manager.levels import Levels
from windowpane.manager.plans.compaction import CompactionBounds
from windowpane.manager.plans.eviction import EvictionPlan, Removal
from windowpane.manager.plans.placeholders import handle_of
from windowpane.manager.plans.protection import never_removed
from windowpane.manager.plans.truncation import middle_out
from windowpane.manager.presets.preset import CharacterEstimate, Preset, levels_at, limits_with_reserve
from windowpane.manager.settings import SAFETY_NET, EngineSettings
from windowpane.manager.snapshot import Item, Snapshot, groups_of
from windowpane.manager.step import NOT_DONE, Step, StepResult
from windowpane.manager.steps.cascade import compact_with_breaker
from windowpane.manager.steps.eviction import evict_planned

SUMMARY_TOKENS: Final = 4_096
IMAGE_TOKENS: Final = 1_000
MESSAGE_TOKENS: Final = 4
"""For role and structure of each message."""
CHARACTERS_PER_TOKEN: Final = 4
PREFIX: Final = "[compaction]"
"""Prefix of its log lines."""
TRUNCATED: Final = "[...truncated...]"
"""Replaces the middle of a result that was too large."""
MARKER_CHARACTERS: Final = 50
"""Characters reserved for the marker on each side."""
CLEARED: Final = "[Old tool result content cleared]"
"""Prefix of a cleared result, by which it is recognized."""


@dataclass(frozen=True, slots=True)
class Pruning:
    """Bounds of the pruning of tool results. Raises `ConfigurationError` for a negative number."""

    protect_tokens: int
    """Tokens of the newest results that are protected; the result that exceeds them is cleared first."""
    minimum_tokens: int
    """Nothing is cleared unless this is exceeded."""
    skipped_user_turns: int = 2
    """Results since this many user messages are skipped, unless there is nothing before those messages."""
    keep_results: int = 0
    """Number of the newest results that are protected whatever their size."""
    protected_tools: Collection[str] = ()
    policy: str = "prune"

    def __post_init__(self) -> None:
        for name in ("protect_tokens", "minimum_tokens", "skipped_user_turns", "keep_results"):
            value = getattr(self, name)
            if value < 0:
                raise ConfigurationError(f"pruning.{name}", f"{value} is negative", expected=">= 0")


@dataclass(frozen=True, slots=True)
class PrunePlan:
    """The result of a scan; the plan is None if too little would be cleared."""

    scanned_tokens: int
    """Tokens of all scanned results."""
    prunable_tokens: int
    results: int
    plan: EvictionPlan | None


def plan_prune(
    snapshot: Snapshot, pruning: Pruning, *, counter: TokenCounter, handles: bool = False
) -> PrunePlan:
    """Return the plan that clears all but the newest results; the same snapshot gives the same plan.

    The scan runs backwards and stops at the first result that was cleared before, so pruning twice changes
    nothing. Content that is never removed counts as protected. A run without a user message before the skipped
    ones (one long instruction) skips no result: else it would never be pruned.
    """
    retained = never_removed(snapshot, groups_of(snapshot.items))
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
        if scanned <= pruning.protect_tokens or seen <= pruning.keep_results or block.group in retained:
            continue
        prunable += block.tokens
        removal = _cleared(item, counter, handles=handles)
        if removal is not None:
            removals.append(removal)
    plan = None
    if prunable > pruning.minimum_tokens and removals:
        plan = EvictionPlan.of(snapshot, removals[::-1], policy=pruning.policy)
    return PrunePlan(scanned, prunable, len(removals), plan)


def _scanned(snapshot: Snapshot, pruning: Pruning) -> tuple[Item, ...]:
    """Return the items before the skipped user messages; all if there are fewer messages."""
    if not pruning.skipped_user_turns:
        return snapshot.items
    users = [at for at, item in enumerate(snapshot.items) if item.block.content_type == "user_message"]
    if len(users) <= pruning.skipped_user_turns:
        return snapshot.items
    return snapshot.items[: users[-pruning.skipped_user_turns]]


def _cleared(item: Item, counter: TokenCounter, *, handles: bool) -> Removal | None:
    """Return the removal that replaces a result by the marker; None if that is not smaller."""
    block = item.block
    handle = (block.handle or handle_of(block.id)) if handles else None
    text = f"{CLEARED} {handle}" if handle else CLEARED
    tokens = counter.count(text)
    if tokens >= block.tokens:
        return None
    return Removal("mask", (block,), 0.0, {}, "beyond the protected results", text, tokens)


@dataclass(frozen=True, slots=True)
class BaseAgentSettings:
    """Settings under the source's names. Raises `ConfigurationError` for values out of range."""

    model_context_limit: int = 200_000
    """The window size that all defaults refer to."""
    output_token_max: int = 32_000
    auto_compact_threshold: float = 0.85
    """Share of usable; acted on strictly above it."""
    prune_protect: int = 40_000
    prune_minimum: int = 20_000
    max_output_tokens: int = 2_500
    """Maximum size of one tool result."""

    def __post_init__(self) -> None:
        if not 0 < self.auto_compact_threshold <= 1:
            problem = f"{self.auto_compact_threshold}"
            raise ConfigurationError("auto_compact_threshold", problem, expected="above 0 to 1")
        for name in ("prune_protect", "prune_minimum", "output_token_max"):
            if getattr(self, name) < 0:
                raise ConfigurationError(name, f"{getattr(self, name)} is negative", expected=">= 0")
        if self.max_output_tokens < 1:
            raise ConfigurationError("max_output_tokens", f"{self.max_output_tokens}", expected=">= 1")
        if self.model_context_limit <= self.output_token_max:
            problem = f"{self.model_context_limit} has no room beside the output"
            raise ConfigurationError("model_context_limit", problem, expected="more than output_token_max")

    def window(self, limit_tokens: int, source: LimitSource, requested_output_tokens: int = 0) -> WindowLimits:
        """Return limits that reserve the requested output, else 32,000 of 200,000 tokens or the same share."""
        share = self.output_token_max * limit_tokens // self.model_context_limit
        return limits_with_reserve(
            limit_tokens, source, requested_output_tokens or min(self.output_token_max, share)
        )

    def levels(self, limits: WindowLimits, checkpoint_ratio: float) -> Levels:
        """Return levels at the threshold: reductions start above it and aim just below it."""
        most = int(self.auto_compact_threshold * limits.usable_tokens)
        return levels_at(limits, most + 1, target=most, checkpoint_ratio=checkpoint_ratio)

    def pruning_of(self, limits: WindowLimits) -> Pruning:
        """Return the bounds of pruning, scaled down in a smaller window."""
        share = min(1.0, limits.limit_tokens / self.model_context_limit)
        return Pruning(int(self.prune_protect * share), int(self.prune_minimum * share), policy="baseagent.prune")

    def prune(self, engine: Engine, limits: WindowLimits, levels: Levels) -> Effect[StepResult]:
        """Clear old results, with the log lines of the source."""
        pruning = self.pruning_of(limits)
        before = engine.used()
        engine.journal.record(PREFIX, f"{PREFIX} Context overflow detected, managing...")
        scan = plan_prune(engine.snapshot(limits), pruning, counter=engine.counter)
        engine.journal.record(
            PREFIX,
            f"{PREFIX} Prune scan: {scan.scanned_tokens} total tokens, {scan.prunable_tokens} prunable",
            total_tokens=scan.scanned_tokens,
            prunable=scan.prunable_tokens,
        )

        def plan_of(snapshot: Snapshot, handles: bool) -> EvictionPlan | None:  # noqa: FBT001 (the protocol's shape)
            return plan_prune(snapshot, pruning, counter=engine.counter, handles=handles).plan

        outcome = yield from evict_planned(engine, limits, plan_of, lambda _plan: 1)
        if not outcome:
            return NOT_DONE
        after = engine.used()
        engine.journal.record(
            PREFIX,
            f"{PREFIX} Pruning {scan.results} tool outputs, recovering ~{scan.prunable_tokens} tokens",
            outputs=scan.results,
            recovered=scan.prunable_tokens,
        )
        if after < levels.evict:
            engine.journal.record(
                PREFIX, f"{PREFIX} Pruning sufficient: {before} -> {after} tokens", before=before, after=after
            )
        return outcome


def truncated(text: str, max_tokens: int, counter: TokenCounter, handle: str) -> str:
    """Return head and tail of a result around the source's marker; under a tiny cap whatever fits."""
    keep = max_tokens * CHARACTERS_PER_TOKEN // 2 - MARKER_CHARACTERS
    marker = f"{TRUNCATED} {handle}" if handle else TRUNCATED
    short = f"{text[:keep]}\n\n{marker}\n\n{text[-keep:]}" if keep > 0 else ""
    if short and len(short) < len(text) and counter.count(short) <= max_tokens:
        return short
    return middle_out(text, max_tokens, counter, note=f", original: {handle}" if handle else "")


def log_context(engine: Engine) -> None:
    """Log the status line of a turn."""
    if engine.limits is None:
        return
    used, usable = engine.used(), engine.limits.usable_tokens
    engine.journal.record(
        PREFIX,
        f"{PREFIX} Context: {used} tokens ({used / usable:.1%} of {usable})",
        tokens=used,
        usable=usable,
        percent=round(100 * used / usable, 1),
    )


def _compact(engine: Engine, limits: WindowLimits, levels: Levels) -> Effect[StepResult]:
    before = engine.used()
    outcome = yield from compact_with_breaker(engine, limits, levels, trigger="overflow", bounds=SHAPE)
    if outcome:
        after = engine.used()
        engine.journal.record(
            PREFIX, f"{PREFIX} Compacted: {before} -> {after} tokens", before=before, after=after
        )
    return outcome


def _over(engine: Engine, levels: Levels) -> bool:
    return engine.used() >= levels.evict


SHAPE: Final = CompactionBounds(
    tail_tokens=0, tail_ratio=0.0, user_tokens=0, user_ratio=0.0, summary_tokens=SUMMARY_TOKENS, summary_ratio=0.2
)
"""Retains the system prompt and the summary, beside what is never removed."""


def baseagent(
    *,
    model_context_limit: int = 200_000,
    output_token_max: int = 32_000,
    auto_compact_threshold: float = 0.85,
    prune_protect: int = 40_000,
    prune_minimum: int = 20_000,
    max_output_tokens: int = 2_500,
) -> Preset:
    """Return the preset with other settings, under the source's names. Raises `ConfigurationError`."""
    settings = BaseAgentSettings(
        model_context_limit, output_token_max, auto_compact_threshold, prune_protect, prune_minimum,
        max_output_tokens,
    )  # fmt: skip
    return Preset(
        name="baseagent",
        default_limit_tokens=settings.model_context_limit,
        window=settings.window,
        control=EngineSettings(
            cascade=(Step("evict", _over, settings.prune), Step("compact", _over, _compact), *SAFETY_NET),
            levels_of=settings.levels,
            watch=log_context,
            shorten=truncated,
            result_tokens=max_output_tokens,
            image_tokens=IMAGE_TOKENS,
        ),
        counter=CharacterEstimate(
            CHARACTERS_PER_TOKEN, overhead_characters=CHARACTERS_PER_TOKEN * MESSAGE_TOKENS
        ),
        fixed=FIXED_BY_PRESET["baseagent"],
    )


BASEAGENT: Final = baseagent()
