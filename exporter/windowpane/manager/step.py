"""A step of the cascade: one reduction, the condition under which it is due, and its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from windowpane.core.limits import WindowLimits
from windowpane.effects.commands import Effect
from windowpane.manager.levels import Levels
from windowpane.manager.status import Action


class HasUsedTokens(Protocol):
    """The part of an engine that decides whether a step is due; the manager passes an `Engine`."""

    def used(self) -> int:
        """Return the tokens that the next call would send."""
        ...


E = TypeVar("E", bound=HasUsedTokens)


@dataclass(frozen=True, slots=True)
class StepResult:
    """The effect of one step; falsy if nothing was done."""

    done: str = ""
    """One line that describes it; empty when nothing was done."""
    freed_tokens: int = 0
    shortfall: bool = False
    """True if the step missed its target."""

    def __bool__(self) -> bool:
        return bool(self.done)


NOT_DONE: Final = StepResult(shortfall=True)


@dataclass(frozen=True, slots=True)
class Step(Generic[E]):
    """One reduction, and the condition under which it is due."""

    action: Action
    due: Callable[[E, Levels], bool]
    """Evaluated when the cascade reaches the step, after the steps before it have run."""
    run: Callable[[E, WindowLimits, Levels], Effect[StepResult]]
    skipped_before_rollover: bool = False
    """Skip the step from the rollover level on: a rollover compacts too."""

    def is_due(self, engine: E, levels: Levels) -> bool:
        """Return whether to run the step now."""
        return not (self.skipped_before_rollover and engine.used() >= levels.roll) and self.due(engine, levels)


class CascadeResult:
    """Combined results of the steps that one hook call has run."""

    def __init__(self) -> None:
        self.action: Action = "none"
        self.done: list[str] = []
        self.freed = 0

    def add(self, action: Action, result: StepResult) -> None:
        """Add the result of a step, if it did anything."""
        if result:
            self.action = action
            self.done.append(result.done)
            self.freed += result.freed_tokens
