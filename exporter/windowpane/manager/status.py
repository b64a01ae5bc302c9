"""The decision of a hook, and the status of the window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from windowpane.core.events import PressureMeasured
from windowpane.core.fast_dataclass import FastDataclass
from windowpane.core.vocabulary import Component, CountSource, Zone
from windowpane.manager.levels import Levels

Action = Literal["none", "prepare", "evict", "compact", "roll"]
"""Actions of a hook, mildest first."""
Urgency = Literal["unknown", "normal", "warning", "critical"]
CRITICAL_TURNS: Final = 3
WARNING_TURNS: Final = 10


def urgency_of(turns: float | None) -> Urgency:
    """Return the urgency of something that lasts for *turns*: critical under 3 turns, warning under 10."""
    if turns is None:
        return "unknown"
    return "critical" if turns < CRITICAL_TURNS else "warning" if turns < WARNING_TURNS else "normal"


@dataclass(frozen=True, slots=True)
class ComponentStatus:
    """One component against its budget; None means unknown, or without a budget."""

    used_tokens: int
    budget_tokens: int | None = None
    reserved_tokens: int = 0
    """Tokens reserved for content that is about to be added."""
    utilization: float | None = None
    state: Literal["normal", "soft", "hard"] | None = None
    """The limit of its budget that it has reached."""
    burn_rate: float | None = None
    """Tokens per turn, mean of the last 20."""
    turns_until_exhausted: float | None = None

    @property
    def urgency(self) -> Urgency:
        """Urgency by the turns until its budget is exhausted."""
        return urgency_of(self.turns_until_exhausted)


class Status(FastDataclass, frozen=True):
    """The window at the last measurement; None means unknown."""

    used_tokens: int
    limit_tokens: int | None
    utilization: float | None
    zone: Zone | None
    turn: int
    window_id: int
    turns_until_red: float | None = None
    used_by_component: dict[Component, int] = msgspec.field(default_factory=dict)
    usable_tokens: int | None = None
    velocity: float | None = None
    """Tokens per turn, mean of the last 5."""
    burn_rate: float | None = None
    """Tokens per turn, mean of the last 20."""
    turns_until_exhausted: float | None = None
    """Turns until only the output reserve remains."""
    count_source: CountSource = "estimate"
    components: dict[Component, ComponentStatus] = msgspec.field(default_factory=dict)
    """Each component against its budget; only in `status()`, not in decisions."""
    output_tokens: int | None = None
    """Tokens reserved for output."""
    breaker_open: bool = False
    """True if compaction is stopped because it made no progress."""
    audit_events: int = 0
    """Number of decisions in the audit trail."""
    listener_failures: int = 0
    """Calls of the user's listeners and callbacks that raised an exception."""
    subtasks: dict[str, str] = msgspec.field(default_factory=dict)
    """Subtasks of the task with their status."""

    @property
    def urgency(self) -> Urgency:
        """Urgency by the turns until the window is exhausted."""
        return urgency_of(self.turns_until_exhausted)

    def __str__(self) -> str:
        """One line for the agent."""
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


class Decision(FastDataclass, frozen=True):
    """The decision of a hook."""

    action: Action
    """The strongest action taken; `prepare` if only candidates were listed."""
    status: Status
    done: tuple[str, ...] = ()
    """The actions in words, one line each."""
    freed_tokens: int = 0
    retry: bool = False
    """After an overflow: whether to repeat the call once, with the current `messages()`."""
    reason: str = ""


def due(used_tokens: int, levels: Levels) -> Action:
    """Return the action that is due at *used_tokens*."""
    if used_tokens >= levels.roll:
        return "roll"
    if used_tokens >= levels.compact:
        return "compact"
    if used_tokens >= levels.evict:
        return "evict"
    return "prepare" if used_tokens >= levels.prepare else "none"


def status_of(measured: PressureMeasured | None, *, turn: int, window_id: int, used_tokens: int) -> Status:
    """Return the status from the last measurement; before the first only the token count."""
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
