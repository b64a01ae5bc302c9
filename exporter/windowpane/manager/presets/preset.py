"""A preset: thresholds, order of reductions and log texts of another system, on this engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from windowpane.core.limits import DEFAULT_BUDGET, DEFAULT_LIFETIMES, Thresholds, TrackerSettings, WindowLimits
from windowpane.core.protocols import TokenCounter
from windowpane.core.vocabulary import Component, ContentType, CountSource, LimitSource
from windowpane.manager.levels import CHECKPOINT_RATIO, Levels
from windowpane.manager.settings import EngineSettings

LimitsOf = Callable[[int, LimitSource, int], WindowLimits]
"""Returns limits from the window's size, the source of the size, and the requested output (0 if unknown)."""


@dataclass(frozen=True, slots=True)
class Preset:
    """The window management of another system."""

    name: str
    window: LimitsOf
    control: EngineSettings
    budget: Mapping[Component, float] = field(default_factory=lambda: dict(DEFAULT_BUDGET))
    lifetimes: Mapping[ContentType, int] = field(default_factory=lambda: dict(DEFAULT_LIFETIMES))
    default_limit_tokens: int | None = None
    """The window that the source assumes for a model of unknown size; None if it assumes none."""
    counter: TokenCounter | None = None
    """The source's token estimator; None for the model's tokenizer."""
    fixed: Mapping[str, str] = field(default_factory=dict)
    """Configuration keys that cannot be set beside the preset, each with the reason."""

    def limits(self, limit_tokens: int, source: LimitSource, *, requested_output_tokens: int = 0) -> WindowLimits:
        """Return the limits of a window of *limit_tokens*, divided as the source does."""
        return self.window(limit_tokens, source, requested_output_tokens)

    def settings(self) -> EngineSettings:
        """Return the engine settings; a window size learnt later is divided as the source does."""
        return replace(
            self.control,
            limits_of=lambda limit_tokens, source: self.window(limit_tokens, source, 0),
        )

    def tracking(self, settings: TrackerSettings | None = None) -> TrackerSettings:
        """Return *settings* with the budget and the lifetimes of the source."""
        return replace(settings or TrackerSettings(), budget=dict(self.budget), lifetimes=dict(self.lifetimes))


@dataclass(frozen=True, slots=True)
class CharacterEstimate:
    """Token counter by a number of characters per token, rounded down; labeled an estimate.

    *overhead_characters* are added to every text that is not empty, for role and structure.
    """

    characters: int
    tokens: int = 1
    """Tokens for *characters*: 2 tokens for 5 characters are two and a half characters per token."""
    overhead_characters: int = 0

    @property
    def source(self) -> CountSource:
        """Always an estimate."""
        return "estimate"

    def count(self, text: str) -> int:
        """Return the tokens of *text*; at least 1 unless it is empty."""
        if not text:
            return 0
        return max(1, (len(text) + self.overhead_characters) * self.tokens // self.characters)


def limits_with_reserve(limit_tokens: int, source: LimitSource, reserved_tokens: int) -> WindowLimits:
    """Return limits without a safety margin: all but the reserve is usable, at least 1 token."""
    return WindowLimits(
        limit_tokens=limit_tokens,
        source=source,
        reserved_tokens=min(reserved_tokens, limit_tokens - 1),
        margin_tokens=0,
        thresholds=Thresholds(),
    )


def levels_at(
    limits: WindowLimits, act: int, *, target: int, checkpoint_ratio: float = CHECKPOINT_RATIO
) -> Levels:
    """Return the levels of a system with one threshold: every reduction starts at *act* used tokens."""
    return Levels(
        prepare=min(limits.yellow_tokens, act),
        target=target,
        evict=act,
        checkpoint=max(limits.at(checkpoint_ratio), act),
        compact=act,
        roll=max(act, limits.overflow_tokens) + 1,
        ceiling=limits.overflow_tokens,
        minimum_saving=0,
    )
