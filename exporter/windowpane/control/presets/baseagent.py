"""BaseAgent: prune old tool results at 85% of what is usable, then compact; cap every result middle-out.

Of a window of 200,000 tokens 32,000 are kept for output. Pruning protects the newest 40,000 tokens of results and
clears the older ones if more than 20,000 would go; what is still too full becomes one summary. In other windows
these numbers hold as the same shares. Two faults of the source are mended: a run with a single instruction is
pruned too, and the instruction and the open tool cycle survive a compaction.
"""

from __future__ import annotations

from typing import Final

from windowpane.control.cascade import Rung, compact_unless_stopped
from windowpane.control.compression.compaction import Shape
from windowpane.control.core import Core
from windowpane.control.eviction.engine import EvictionPlan
from windowpane.control.presets.preset import CharacterEstimate, Preset, acting_at, reserving
from windowpane.control.presets.pruning import Pruning, plan_prune
from windowpane.control.pressure import Levels
from windowpane.control.reduction import NOTHING, Outcome, evict_by
from windowpane.control.requests import Program
from windowpane.control.settings import SAFETY_NET, ControlSettings
from windowpane.control.snapshot import Snapshot
from windowpane.protocols import LimitSource
from windowpane.settings import WindowLimits

CONTEXT_TOKENS: Final = 200_000
"""The window all numbers are made for."""
OUTPUT_TOKENS: Final = 32_000
COMPACT_RATIO: Final = 0.85
"""Of usable; acted on strictly above it."""
PROTECT_TOKENS: Final = 40_000
MINIMUM_TOKENS: Final = 20_000
RESULT_TOKENS: Final = 2_500
SUMMARY_TOKENS: Final = 4_096
IMAGE_TOKENS: Final = 1_000
MESSAGE_TOKENS: Final = 4
"""For role and structure of each message."""
PREFIX: Final = "[compaction]"
"""How its log lines begin."""


def window(limit_tokens: int, source: LimitSource, requested_output_tokens: int = 0) -> WindowLimits:
    """32,000 of 200,000 tokens for output, the same share of another window, or what is asked for."""
    reserved = requested_output_tokens or min(OUTPUT_TOKENS, OUTPUT_TOKENS * limit_tokens // CONTEXT_TOKENS)
    return reserving(limit_tokens, source, reserved)


def threshold(limits: WindowLimits) -> int:
    """The most tokens that need no action."""
    return int(COMPACT_RATIO * limits.usable_tokens)


def levels(limits: WindowLimits, checkpoint_ratio: float) -> Levels:
    """Everything begins above the threshold, and getting below it is enough."""
    most = threshold(limits)
    return acting_at(limits, most + 1, target=most, checkpoint_ratio=checkpoint_ratio)


def pruning_of(limits: WindowLimits) -> Pruning:
    """Its bounds, in a smaller window as the same shares."""
    share = min(1.0, limits.limit_tokens / CONTEXT_TOKENS)
    return Pruning(int(PROTECT_TOKENS * share), int(MINIMUM_TOKENS * share), policy="baseagent.prune")


def log_context(core: Core) -> None:
    """The status line of every turn."""
    if core.limits is None:
        return
    used, usable = core.used(), core.limits.usable_tokens
    core.journal.note(
        PREFIX,
        f"{PREFIX} Context: {used} tokens ({used / usable:.1%} of {usable})",
        tokens=used,
        usable=usable,
        percent=round(100 * used / usable, 1),
    )


def _prune(core: Core, limits: WindowLimits, levels: Levels) -> Program[Outcome]:
    pruning = pruning_of(limits)
    before = core.used()
    scan = plan_prune(core.snapshot(limits), pruning, counter=core.counter)
    core.journal.note(
        PREFIX,
        f"{PREFIX} Prune scan: {scan.scanned_tokens} total tokens, {scan.prunable_tokens} prunable",
        total_tokens=scan.scanned_tokens,
        prunable=scan.prunable_tokens,
    )

    def plan_of(snapshot: Snapshot, handles: bool) -> EvictionPlan | None:  # noqa: FBT001 (the seam's shape)
        return plan_prune(snapshot, pruning, counter=core.counter, handles=handles).plan

    outcome = yield from evict_by(core, limits, plan_of, lambda _plan: 1)
    if not outcome:
        return NOTHING
    after = core.used()
    core.journal.note(
        PREFIX,
        f"{PREFIX} Pruning {scan.results} tool outputs, recovering ~{scan.prunable_tokens} tokens",
        outputs=scan.results,
        recovered=scan.prunable_tokens,
    )
    if after < levels.evict:
        core.journal.note(
            PREFIX, f"{PREFIX} Pruning sufficient: {before} -> {after} tokens", before=before, after=after
        )
    return outcome


def _compact(core: Core, limits: WindowLimits, levels: Levels) -> Program[Outcome]:
    before = core.used()
    outcome = yield from compact_unless_stopped(core, limits, levels, trigger="overflow", shape=SHAPE)
    if outcome:
        after = core.used()
        core.journal.note(PREFIX, f"{PREFIX} Compacted: {before} -> {after} tokens", before=before, after=after)
    return outcome


def _over(core: Core, levels: Levels) -> bool:
    return core.used() >= levels.evict


SHAPE: Final = Shape(tail_tokens=0, tail_ratio=0.0, user_tokens=0, user_ratio=0.0, summary_tokens=SUMMARY_TOKENS)
"""System prompt and summary are all that stays, beside what never leaves."""

BASEAGENT: Final = Preset(
    name="baseagent",
    window=window,
    control=ControlSettings(
        ladder=(Rung("evict", _over, _prune), Rung("compact", _over, _compact), *SAFETY_NET),
        levels_of=levels,
        watch=log_context,
        result_tokens=RESULT_TOKENS,
        image_tokens=IMAGE_TOKENS,
    ),
    counter=CharacterEstimate(4, overhead_characters=4 * MESSAGE_TOKENS),
    fixed={
        "compression.cascade": "it prunes, then compacts",
        "compression.compaction_utilization_threshold": "it acts above 85% of what is usable",
        "compression.background": "it compacts before a call, never between turns",
        "compression.summarization_threshold_tokens": "every result over 2,500 tokens loses its middle",
        "embedder": "it merges nothing",
    },
)
