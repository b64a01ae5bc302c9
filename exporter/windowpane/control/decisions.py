"""What the manager decided at the start of a turn, and the state of the window as the agent may read it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from windowpane.control.pressure import Levels
from windowpane.events import PressureMeasured
from windowpane.vocabulary import Component, Zone

Action = Literal["none", "prepare", "evict", "compact", "roll"]

ACTIONS: Final[tuple[Action, ...]] = ("none", "prepare", "evict", "compact", "roll")
"""Mildest first."""


@dataclass(frozen=True, slots=True)
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

    def __str__(self) -> str:
        """One line an agent can read."""
        if self.limit_tokens is None or self.utilization is None:
            return f"Context window: {self.used_tokens:,} tokens used, size unknown, turn {self.turn}."
        ahead = ""
        if self.turns_until_red is not None and self.turns_until_red < 50:
            ahead = f" About {self.turns_until_red:.0f} turns until it is nearly full."
        return (
            f"Context window: {self.used_tokens:,} of {self.limit_tokens:,} tokens used "
            f"({self.utilization:.0%}, {self.zone}), turn {self.turn}, window {self.window_id}.{ahead}"
        )


@dataclass(frozen=True, slots=True)
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
        used_by_component=dict(measured.used_by_component),
    )
