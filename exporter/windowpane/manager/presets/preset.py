"""A preset: the numbers, the order of reductions and the words of another system, on this engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from windowpane.core.limits import DEFAULT_BUDGET, DEFAULT_LIFETIMES, Thresholds, TrackerSettings, WindowLimits
from windowpane.core.protocols import TokenCounter
from windowpane.core.vocabulary import Component, ContentType, CountSource, LimitSource
from windowpane.manager.levels import CHECKPOINT_RATIO, Levels
from windowpane.manager.settings import EngineSettings

LimitsOf = Callable[[int, LimitSource, int], WindowLimits]
"""From the window's size, where that comes from, and the output the agent asks for (0 for unknown)."""


@dataclass(frozen=True, slots=True)
class Preset:
    """How another system manages a window."""

    name: str
    window: LimitsOf
    control: EngineSettings
    budget: Mapping[Component, float] = field(default_factory=lambda: dict(DEFAULT_BUDGET))
    lifetimes: Mapping[ContentType, int] = field(default_factory=lambda: dict(DEFAULT_LIFETIMES))
    counter: TokenCounter | None = None
    """Its own estimator of a text's tokens; None for the model's tokenizer."""
    fixed: Mapping[str, str] = field(default_factory=dict)
    """What the source decides itself, by the key of the configuration, and how: it cannot be set beside it."""

    def limits(self, limit_tokens: int, source: LimitSource, *, requested_output_tokens: int = 0) -> WindowLimits:
        """A window of *limit_tokens* as the source shares it out."""
        return self.window(limit_tokens, source, requested_output_tokens)

    def settings(self, *, requested_output_tokens: int = 0) -> EngineSettings:
        """The control settings; a size learnt later is shared out as the source does."""
        return replace(
            self.control,
            limits_of=lambda limit_tokens, source: self.window(limit_tokens, source, requested_output_tokens),
        )

    def tracking(self, settings: TrackerSettings | None = None) -> TrackerSettings:
        """*settings* with the budget and the lifetimes of the source."""
        return replace(settings or TrackerSettings(), budget=dict(self.budget), lifetimes=dict(self.lifetimes))


@dataclass(frozen=True, slots=True)
class CharacterEstimate:
    """Tokens by a number of characters each, rounded down; labelled an estimate.

    *overhead_characters* are added to every text that is not empty, for role and structure.
    """

    characters: int
    tokens: int = 1
    """So many tokens for *characters*: 5 and 2 are two and a half characters a token."""
    overhead_characters: int = 0

    @property
    def source(self) -> CountSource:
        """Always an estimate."""
        return "estimate"

    def count(self, text: str) -> int:
        """Tokens of *text*; at least 1 unless it is empty."""
        if not text:
            return 0
        return max(1, (len(text) + self.overhead_characters) * self.tokens // self.characters)


def limits_with_reserve(limit_tokens: int, source: LimitSource, reserved_tokens: int) -> WindowLimits:
    """A window without a safety margin: all but the reserve is usable. At least 1 token always is."""
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
    """Levels of a system that knows one threshold: everything begins at *act* used tokens."""
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
