"""Limits of the window: its size, reserve, safety margin and zones, and the settings of the tracker."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final

from windowpane.core.vocabulary import ZONES, Component, ContentType, LimitSource, Zone
from windowpane.core.zones import (
    default_margin,
    default_reserve,
    default_thresholds,
    largest_output,
    level_tokens,
    zone_of,
)

MAXIMUM_TOKENS: Final = 2**40
"""A larger window or count is a mistake of a recording, reply or setting; a replay without a limit uses one."""

DEFAULT_LIFETIMES: Final[dict[ContentType, int]] = {
    "tool_result": 8,
    "thinking": 2,
    "memory_injection": 20,
    "assistant_response": 30,
}
"""Turns without a reference after which a type of content is stale; other types never are."""

DEFAULT_BUDGET: Final[dict[Component, float]] = {
    "system_prompt": 0.06,
    "tool_definitions": 0.04,
    "message_history": 0.60,
    "tool_results": 0.12,
    "memory_injection": 0.08,
}
"""Shares of the limit; with 5% for output and 5% for the safety margin they sum to 1."""

PROFILES: Final[dict[str, dict[Component, float]]] = {
    "default": dict(DEFAULT_BUDGET),
    "code_review": {
        "system_prompt": 0.06,
        "tool_definitions": 0.05,
        "message_history": 0.60,
        "tool_results": 0.18,
        "memory_injection": 0.06,
    },
    "research": {
        "system_prompt": 0.05,
        "tool_definitions": 0.05,
        "message_history": 0.55,
        "tool_results": 0.15,
        "memory_injection": 0.15,
    },
    "customer_support": {
        "system_prompt": 0.08,
        "tool_definitions": 0.03,
        "message_history": 0.70,
        "tool_results": 0.08,
        "memory_injection": 0.06,
    },
}
"""Shares by kind of task, beside 5% for output. Only the default has a safety margin of another 5%: the others
rely on the warning at the soft limit."""

EVICT_RATIO: Final = 0.75
"""Utilization at which reductions start at the earliest, unless zones are configured. Small windows enter orange
before: a quarter of them is reserved, and reducing them earlier would waste half of an 8K window."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Lower ends of the zones as shares of the limit.

    Used tokens must fall `hysteresis` below a threshold to return to the lower zone.
    """

    yellow: float = 0.50
    orange: float = 0.75
    red: float = 0.90
    hysteresis: float = 0.03

    def __post_init__(self) -> None:
        if not 0 < self.yellow < self.orange < self.red <= 1:
            raise ValueError(
                f"zone thresholds must rise within 0 to 1, got yellow {self.yellow}, orange {self.orange}, "
                f"red {self.red}"
            )
        if not 0 <= self.hysteresis < self.yellow:
            raise ValueError(f"hysteresis must be 0 or more and below yellow, got {self.hysteresis}")

    @classmethod
    def for_limit(cls, limit_tokens: int) -> Thresholds:
        """Return the default thresholds: lower ones for windows below 32K, higher ones from 200K."""
        return cls(*default_thresholds(limit_tokens))


@dataclass(frozen=True, slots=True)
class WindowLimits:
    """The size of a window and its usable part, in tokens."""

    limit_tokens: int
    source: LimitSource
    reserved_tokens: int
    """Reserve for output."""
    margin_tokens: int
    """Safety margin for errors of client-side counting."""
    thresholds: Thresholds = field(default_factory=Thresholds)
    usable_tokens: int = field(init=False)
    """limit − reserved − margin."""
    overflow_tokens: int = field(init=False)
    """Usable plus margin; more used tokens take up the output reserve."""
    yellow_tokens: int = field(init=False)
    """Used tokens from which on the zone is yellow; likewise orange and red."""
    orange_tokens: int = field(init=False)
    red_tokens: int = field(init=False)

    def __post_init__(self) -> None:
        usable = self.limit_tokens - self.reserved_tokens - self.margin_tokens
        object.__setattr__(self, "usable_tokens", usable)
        object.__setattr__(self, "overflow_tokens", usable + self.margin_tokens)
        for zone in ("yellow", "orange", "red"):
            object.__setattr__(self, f"{zone}_tokens", self.at(getattr(self.thresholds, zone)))
        if self.limit_tokens < 1:
            raise ValueError(f"limit_tokens must be at least 1, got {self.limit_tokens}")
        if self.reserved_tokens < 0 or self.margin_tokens < 0 or self.usable_tokens < 1:
            raise ValueError(
                f"reserve {self.reserved_tokens} and margin {self.margin_tokens} leave no usable tokens "
                f"of {self.limit_tokens}"
            )

    @property
    def has_usual_zones(self) -> bool:
        """True if the thresholds are the default ones of this size."""
        return self.thresholds == Thresholds.for_limit(self.limit_tokens)

    @classmethod
    def of(
        cls,
        limit_tokens: int,
        source: LimitSource,
        *,
        requested_output_tokens: int = 0,
        thresholds: Thresholds | None = None,
    ) -> WindowLimits:
        """Make limits with a margin of 5% that reserve the requested output if it fits, else the default."""
        return cls(
            limit_tokens=limit_tokens,
            source=source,
            reserved_tokens=default_reserve(limit_tokens, requested_output_tokens=requested_output_tokens),
            margin_tokens=default_margin(limit_tokens),
            thresholds=thresholds or Thresholds.for_limit(limit_tokens),
        )

    def reserving(self, output_tokens: int) -> WindowLimits:
        """Return limits that reserve at least *output_tokens*, unless they cannot be reserved."""
        if not self.reserved_tokens < output_tokens <= largest_output(self.limit_tokens):
            return self
        return replace(self, reserved_tokens=output_tokens)

    def at(self, ratio: float) -> int:
        """Return the used tokens of the threshold *ratio* z: min(z × limit, z / 0.90 × usable)."""
        return level_tokens(ratio, limit_tokens=self.limit_tokens, usable_tokens=self.usable_tokens)

    def zone_of(self, used_tokens: int, *, previous: Zone | None = None) -> Zone:
        """Return the zone of *used_tokens*.

        Upwards, a zone is entered at its threshold. Downwards from *previous*, a zone ends only when used
        falls below its threshold by the hysteresis share of the limit, so a window at a threshold does not flap.
        """
        if previous == "green" and used_tokens < self.yellow_tokens:
            return "green"  # most often
        entered = self._highest_zone(used_tokens)
        if previous in (None, entered) or ZONES.index(entered) >= ZONES.index(previous):
            return entered
        slack = int(self.thresholds.hysteresis * self.limit_tokens)
        return min(self._highest_zone(used_tokens + slack), previous, key=ZONES.index)

    def _highest_zone(self, used_tokens: int) -> Zone:
        levels = self.yellow_tokens, self.orange_tokens, self.red_tokens
        return zone_of(used_tokens, levels, overflow_tokens=self.overflow_tokens)


BURN_TURNS: Final = 20
REGRET_TURNS: Final = 20
REGRET_MINIMUM_TOKENS: Final = 32
"""Smaller content is too common to call its return a regret."""
SPIKE_MULTIPLE: Final = 3.0
SPIKE_MINIMUM_TOKENS: Final = 2_000
SPIKE_MINIMUM_TURNS: Final = 5
SPIKE_SHARE: Final = 0.10
"""Share of the limit that a turn has to add to be a spike, where the limit is known."""


@dataclass(frozen=True, slots=True)
class TrackerSettings:
    """Settings by which the tracker derives events from facts; turns and ratios."""

    velocity_turns: int = 5
    lifetimes: dict[ContentType, int] = field(default_factory=lambda: dict(DEFAULT_LIFETIMES))
    budget: dict[Component, float] = field(default_factory=lambda: dict(DEFAULT_BUDGET))
    remembered_blocks: int = 5_000
    """Removed blocks that are watched for their return; the oldest are discarded first."""


def limit_fields(limits: WindowLimits | None) -> dict[str, Any]:
    """Return the fields of events that report limits; empty for unknown limits."""
    if limits is None:
        return {}
    return {
        "limit_tokens": limits.limit_tokens,
        "limit_source": limits.source,
        "reserved_tokens": limits.reserved_tokens,
        "margin_tokens": limits.margin_tokens,
        "yellow_ratio": limits.thresholds.yellow,
        "orange_ratio": limits.thresholds.orange,
        "red_ratio": limits.thresholds.red,
    }
