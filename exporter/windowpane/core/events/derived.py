"""Derived events, which follow from facts. Only the session tracker and the alert engine emit them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

import msgspec

from windowpane.core.fast_dataclass import FastDataclass
from windowpane.core.vocabulary import (
    CacheBreakCause,
    CompactionEvidence,
    Component,
    ContentType,
    CountSource,
    LimitSource,
    Misstep,
    Phase,
    Severity,
    Zone,
)

ALERT_STREAM: Final = "/alerts"
"""Ending of the stream of a session's alerts, after that of the events that caused them."""


class Pressure(FastDataclass, frozen=True):
    """Fill, composition, growth and forecast of a context window at one moment.

    The one declaration of these values: the event `PressureMeasured` is a `Pressure` with a phase; statuses and
    rows of the store refer to it. None is unknown, never zero and never healthy.
    """

    used_tokens: int
    """Tokens that the next call would send; at phase `final` the total that the turn's call sent."""
    used_by_component: dict[Component, int]
    """Sums to `used_tokens`."""
    count_source: CountSource
    limit_tokens: int | None = None
    limit_source: LimitSource | None = None
    usable_tokens: int | None = None
    """Limit minus output reserve minus safety margin."""
    utilization: float | None = None
    """used / limit."""
    usable_utilization: float | None = None
    """used / usable."""
    zone: Zone | None = None
    red_tokens: int | None = None
    """Used tokens from which on the window is in zone red."""
    added_tokens: int = 0
    """Tokens added in this turn so far, before any reduction."""
    added_by_component: dict[Component, int] = msgspec.field(default_factory=dict)
    velocity: float | None = None
    """Tokens per turn, mean of the last 5 turns; None before the second turn."""
    turns_until_red: float | None = None
    """Median forecast; 0 in red, infinite when the window does not grow."""
    turns_until_red_p10: float | None = None
    """Early end of the 10–90 band."""
    turns_until_red_p90: float | None = None
    """Late end of the 10–90 band."""
    burn_rate: float | None = None
    """Tokens per turn, mean of the last 20 turns."""
    turns_until_exhausted: float | None = None
    """Turns until used reaches limit minus output reserve at the burn rate."""
    budget_utilization: dict[Component, float] = msgspec.field(default_factory=dict)
    tool_result_ratio: float | None = None
    """Tool results / used."""
    duplicate_ratio: float | None = None
    stale_ratio: float | None = None
    duplicate_tokens: int = 0
    """Tokens of content that the window holds more than once."""
    stale_tokens: int = 0
    """Stale and not duplicate; the rest of the used tokens is fresh."""
    eviction_rate: float = 0.0
    """Blocks per turn over the last 5 turns."""
    estimate_error: float | None = None
    """(estimated - reported) / reported of the last call, signed."""
    cache_hit_ratio: float | None = None
    """Cache read / input total of the last call."""
    blocks: int = 0
    """Number of blocks in the window."""
    compaction_tokens: int | None = None
    """Used tokens at which the agent compacts by itself; None without evidence."""
    compaction_evidence: CompactionEvidence | None = None
    turns_until_compaction: float | None = None
    """Median forecast of the calls that the agent still makes before it compacts; 0 where it does so before the
    next one, infinite when the window does not grow."""
    turns_until_compaction_p10: float | None = None
    """Early end of the 10–90 band."""
    turns_until_compaction_p90: float | None = None
    """Late end of the 10–90 band."""

    @property
    def is_estimated(self) -> bool:
        """True if the tokens were counted by a heuristic."""
        return self.count_source == "estimate"


class PressureMeasured(Pressure, frozen=True, kw_only=True):
    """The window was measured: before a call, after a reduction, with the provider's count (`final`), or with the
    reply, as the next call would send it (`next`)."""

    type: ClassVar[str] = "pressure.measured"
    phase: Phase


@dataclass(frozen=True, slots=True)
class ZoneChanged:
    """The window entered another zone."""

    type: ClassVar[str] = "zone.changed"
    from_zone: Zone
    to_zone: Zone
    used_tokens: int
    utilization: float


@dataclass(frozen=True, slots=True)
class VelocitySpiked:
    """A turn added far more than the turns before it."""

    type: ClassVar[str] = "velocity.spiked"
    added_tokens: int
    baseline_tokens: float
    """Winsorized mean of the turns before."""


@dataclass(frozen=True, slots=True)
class CompactionMeasured:
    """The provider counted the window after a compaction: its size before and after, by the totals around it."""

    type: ClassVar[str] = "compaction.measured"
    of: str
    """Event id of the compaction."""
    tokens_before: int
    """Total of the last call before; without one the size that the agent stated."""
    tokens_after: int
    """Total of the first call after."""
    source_before: Literal["usage", "reported"] = "usage"
    """`reported` if the agent stated the size before."""
    limit_tokens: int | None = None
    """Limit of the window before."""
    zone_before: Zone | None = None


@dataclass(frozen=True, slots=True)
class CacheBroken:
    """A call sent more than half of a cached prefix as new input instead of reading it from the prompt cache."""

    type: ClassVar[str] = "cache.broken"
    rewritten_tokens: int
    """Tokens of the cached prefix that were sent as new input."""
    cached_tokens: int
    """Tokens that the call before left in the cache."""
    cause: CacheBreakCause
    block_id: str | None = None
    """The first block that changed; None where nothing visible changed."""
    dollars: float | None = None
    """Price of the call less its price if the prefix had been read from the cache; None if unknown."""
    idle_seconds: float | None = None
    """Time since the call before started."""
    lifetime_seconds: int | None = None
    """Time for which the provider keeps what was written; None where no call reports its writes."""


@dataclass(frozen=True, slots=True)
class ContentRegretted:
    """Removed content was fetched again within the regret window."""

    type: ClassVar[str] = "content.regretted"
    cause: Literal["eviction", "compression"]
    match: Literal["same_call", "same_digest", "identifier"]
    block_id: str
    """The removed block."""
    by: str
    """The block that fetched it again."""
    tokens: int
    """Tokens of the removed block."""
    turn_left: int
    """Turn in which it was removed."""
    cause_event_id: str
    """Id of the eviction or compression."""
    content_type: ContentType | None = None
    """Of the removed block; None from releases that did not record it."""
    tool_name: str | None = None
    """Tool that read it."""
    target: str | None = None
    """File or command that it was read from, redacted."""


@dataclass(frozen=True, slots=True)
class MisstepObserved:
    """A tool call failed, a read or another call was repeated, or the user corrected the agent."""

    type: ClassVar[str] = "misstep.observed"
    misstep: Misstep
    block_id: str
    """The failed result, the repeated call or the message."""
    call_turn: int
    """Turn of the model call that it is a misstep of."""
    utilization: float | None = None
    """Used over limit at that call, by the last measurement."""


@dataclass(frozen=True, slots=True)
class AlertFired:
    """The condition of an alert held for its number of turns."""

    type: ClassVar[str] = "alert.fired"
    alert: str
    severity: Severity
    crossing_turn: int
    """Turn in which the condition first held; with session and alert it identifies this firing."""
    value: float | None
    threshold: float | None
    summary: str = ""
    """Numbers, never content."""
    subject: str = ""
    """The file or command that the alert is about, only where content may be stored."""


@dataclass(frozen=True, slots=True)
class AlertResolved:
    """The condition of a firing alert no longer holds."""

    type: ClassVar[str] = "alert.resolved"
    alert: str
    severity: Severity
    crossing_turn: int
    value: float | None
    threshold: float | None
    fired_turn: int = 0


@dataclass(frozen=True, slots=True)
class NotificationDelivered:
    """A channel accepted a message about an alert."""

    type: ClassVar[str] = "notification.delivered"
    alert: str
    crossing_turn: int
    channel: str
    """Kind of the channel, such as `json` or `mailto`; never its address."""
    state: Literal["firing", "resolved"]
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class NotificationFailed:
    """A channel refused a message about an alert, all retries included."""

    type: ClassVar[str] = "notification.failed"
    alert: str
    crossing_turn: int
    channel: str
    state: Literal["firing", "resolved"]
    attempts: int
    reason: str = ""
