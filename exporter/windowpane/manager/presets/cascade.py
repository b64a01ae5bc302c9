"""The cascade: six subsystems at fixed thresholds, ordered by the cost of a token freed.

Zones at 50%, 75% and 90% of the window whatever its size, one set of weights, a budget table that sums to 1
without a margin, and the map from utilization to strategy. A budget profile beside it shifts
the shares for other kinds of work.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from windowpane.core.limits import Thresholds, WindowLimits
from windowpane.core.vocabulary import Component, ContentType, LimitSource
from windowpane.manager.levels import Levels
from windowpane.manager.plans.policies import HYBRID_WEIGHTS, Policy
from windowpane.manager.presets.preset import Preset
from windowpane.manager.settings import EngineSettings
from windowpane.manager.steps.cascade import cascade_from_thresholds

YELLOW: Final = 0.50
ORANGE: Final = 0.75
RED: Final = 0.90
TARGET: Final = 0.60
CHECKPOINT: Final = 0.85
ROLL: Final = 0.95
MINIMUM_OUTPUT_TOKENS: Final = 4_096
"""A hard floor, bounded by a quarter of a small window."""
OUTPUT_SHARE: Final = 0.05
MAXIMUM_OUTPUT_SHARE: Final = 0.25

DEFAULT_LIMIT_TOKENS: Final = 128_000

CASCADE_MAP: Final[Mapping[float, str]] = {
    0.75: "tool_result_summarization",
    0.85: "progressive_summarization",
    0.92: "compaction",
    0.95: "subagent_delegation",
}
"""The utilization from which each strategy is used."""

LIFETIMES: Final[Mapping[ContentType, int]] = {
    "tool_result": 8,
    "thinking": 2,
    "memory_injection": 20,
    "assistant_response": 30,
}

BUDGET: Final[Mapping[Component, float]] = {
    "system_prompt": 0.06,
    "tool_definitions": 0.04,
    "message_history": 0.65,
    "tool_results": 0.12,
    "memory_injection": 0.08,
}
"""With 5% for output these sum to 1."""


def window(limit_tokens: int, source: LimitSource, requested_output_tokens: int = 0) -> WindowLimits:
    """Return limits that reserve 5% or the requested output, at least 4,096 tokens, and no margin."""
    usual = max(MINIMUM_OUTPUT_TOKENS, int(OUTPUT_SHARE * limit_tokens))
    return WindowLimits(
        limit_tokens=limit_tokens,
        source=source,
        reserved_tokens=max(min(usual, int(MAXIMUM_OUTPUT_SHARE * limit_tokens)), requested_output_tokens),
        margin_tokens=0,
        thresholds=Thresholds(YELLOW, ORANGE, RED),
    )


def levels(limits: WindowLimits, checkpoint_ratio: float) -> Levels:
    """Return levels that evict from 75% to 60%, save from 85% and roll over from 95%; other zones shift them."""
    zones = limits.thresholds
    ceiling = limits.overflow_tokens
    return Levels(
        prepare=limits.yellow_tokens,
        target=limits.at(zones.orange * TARGET / ORANGE),
        evict=limits.orange_tokens,
        checkpoint=limits.at(max(checkpoint_ratio, zones.orange)),
        compact=limits.red_tokens,
        roll=min(limits.at(ROLL), ceiling),
        ceiling=ceiling,
        minimum_saving=0,
    )


CASCADE: Final = Preset(
    name="cascade",
    window=window,
    control=EngineSettings(
        cascade=cascade_from_thresholds({name: ratio for ratio, name in CASCADE_MAP.items()}),
        levels_of=levels,
        policy=Policy("hybrid", HYBRID_WEIGHTS),
        checkpoint_ratio=CHECKPOINT,
    ),
    budget=BUDGET,
    default_limit_tokens=DEFAULT_LIMIT_TOKENS,
    lifetimes=LIFETIMES,
)
