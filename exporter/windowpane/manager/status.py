"""What the manager decided at the start of a turn, and the state of the window as the agent may read it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from windowpane.core.events import PressureMeasured
from windowpane.core.fast_dataclass import fast_dataclass
from windowpane.core.vocabulary import Component, CountSource, Zone
from windowpane.manager.levels import Levels

Action = Literal["none", "prepare", "evict", "compact", "roll"]
"""What is done before a call, mildest first."""
Urgency = Literal["unknown", "normal", "warning", "critical"]
CRITICAL_TURNS: Final = 3
WARNING_TURNS: Final = 10


def urgency_of(turns: float | None) -> Urgency:
    """How soon something is used up: critical under 3 turns, warning under 10."""
    if turns is None:
        return "unknown"
    return "critical" if turns < CRITICAL_TURNS else "warning" if turns < WARNING_TURNS else "normal"


@dataclass(frozen=True, slots=True)
class ComponentStatus:
    """One component against its budget; None is unknown, or without a budget."""

    used_tokens: int
    budget_tokens: int | None = None
    reserved_tokens: int = 0
    """Set aside for content that is on its way."""
    utilization: float | None = None
    state: Literal["normal", "soft", "hard"] | None = None
    """Which limit of its budget it has reached."""
    burn_rate: float | None = None
    """Tokens a turn, mean of the last 20."""
    turns_until_exhausted: float | None = None

    @property
    def urgency(self) -> Urgency:
        """How soon its budget is used up."""
        return urgency_of(self.turns_until_exhausted)


@fast_dataclass
class Status:
    """The window at the last measurement; None is unknown."""

    used_tokens: int
    limit_tokens: int | None
    utilization: float | None
    zone: Zone | None
    turn: int
    window_id: int
    turns_until_red: float | None = None
    used_by_component: dict[Component, int] = field(default_factory=dict)
    usable_tokens: int | None = None
    velocity: float | None = None
    """Tokens a turn, mean of the last 5."""
    burn_rate: float | None = None
    """Tokens a turn, mean of the last 20."""
    turns_until_exhausted: float | None = None
    """Until the output reserve is all that is left."""
    count_source: CountSource = "estimate"
    components: dict[Component, ComponentStatus] = field(default_factory=dict)
    """Each against its budget; only in the status that is asked for, not in decisions."""
    output_tokens: int | None = None
    """Kept free for output."""
    breaker_open: bool = False
    """Whether compaction is stopped because it made no progress."""
    audit_events: int = 0
    """Decisions in the audit trail."""
    subtasks: dict[str, str] = field(default_factory=dict)
    """Of the task, with their status."""

    @property
    def urgency(self) -> Urgency:
        """How soon the window is used up."""
        return urgency_of(self.turns_until_exhausted)

    def __str__(self) -> str:
        """One line an agent can read."""
        if self.limit_tokens is not None and self.utilization is None:
            return (
                f"Context window: {self.used_tokens:,} of {self.limit_tokens:,} tokens used, not measured yet, "
                f"turn {self.turn}."
            )
        if self.limit_tokens is None or self.utilization is None:
            return f"Context window: {self.used_tokens:,} tokens used, size unknown, turn {self.turn}."
        ahead = ""
        if self.turns_until_red is not None and self.turns_until_red < 50:
            turns = round(self.turns_until_red)
            ahead = f" About {turns} turn{'' if turns == 1 else 's'} until it is nearly full." if turns else ""
            ahead = ahead or " It is nearly full."
        return (
            f"Context window: {self.used_tokens:,} of {self.limit_tokens:,} tokens used "
            f"({self.utilization:.0%}, {self.zone}), turn {self.turn}, window {self.window_id}.{ahead}"
        )


@fast_dataclass
class Decision:
    """What a hook did."""

    action: Action
    """The strongest that was taken; `prepare` when only candidates were looked at."""
    status: Status
    done: tuple[str, ...] = ()
    """What was done, one line each."""
    freed_tokens: int = 0
    retry: bool = False
    """After an overflow: whether the call should be made once more, with `messages()` as they are now."""
    reason: str = ""


def due(used_tokens: int, levels: Levels) -> Action:
    """The action that *used_tokens* call for."""
    if used_tokens >= levels.roll:
        return "roll"
    if used_tokens >= levels.compact:
        return "compact"
    if used_tokens >= levels.evict:
        return "evict"
    return "prepare" if used_tokens >= levels.prepare else "none"


def status_of(measured: PressureMeasured | None, *, turn: int, window_id: int, used_tokens: int) -> Status:
    """The status from the last measurement; before the first only the count is known."""
    if measured is None:
        return Status(used_tokens, None, None, None, turn, window_id)
    return Status(
        used_tokens=measured.used_tokens,
        limit_tokens=measured.limit_tokens,
        utilization=measured.utilization,
        zone=measured.zone,
        turn=turn,
        window_id=window_id,
        turns_until_red=measured.turns_until_red,
        used_by_component=measured.used_by_component,
        usable_tokens=measured.usable_tokens,
        velocity=measured.velocity,
        burn_rate=measured.burn_rate,
        turns_until_exhausted=measured.turns_until_exhausted,
        count_source=measured.count_source,
    )
