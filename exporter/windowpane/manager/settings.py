"""How a session is managed: the choices a preset or a user makes, as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from windowpane.core.events import FidelityEvaluated
from windowpane.core.limits import WindowLimits
from windowpane.core.protocols import Embedder, TokenCounter
from windowpane.core.vocabulary import ContentType, LimitSource
from windowpane.fidelity.probe import evaluate
from windowpane.manager.budget import SOFT_RATIO
from windowpane.manager.levels import CHECKPOINT_RATIO, Levels
from windowpane.manager.plans.policies import POLICIES, Policy
from windowpane.manager.plans.summary import summarize
from windowpane.manager.plans.truncation import middle_out
from windowpane.manager.steps.step import Step

RESULT_TOKENS: Final = 25_000
RESULT_RATIO: Final = 0.50
"""A single tool result is capped at the smaller of 25,000 tokens and half of usable when it comes in."""
IMAGE_TOKENS: Final = 1_000
SAFETY_NET: Final = ("hard_eviction", "truncation", "last_eviction")
"""The steps that make a call possible that would otherwise not fit."""
DEFAULT_CASCADE: Final = (
    "eviction",
    "note_taking",
    "tool_result_summarization",
    "compaction",
    "subagent_delegation",
    "roll",
    *SAFETY_NET,
)
"""The steps before a call in the order they are run."""

LimitsOf = Callable[[int, LimitSource], WindowLimits]
"""What of a window of so many tokens can be used."""
LevelsOf = Callable[[WindowLimits, float], Levels]
"""The levels of a window, given the utilization from which checkpoints are saved."""
Shorten = Callable[[str, int, TokenCounter, str], str]
"""What goes in the place of a result that is too large: its text, the most tokens it may take, and the handle
of the original, empty without an archive."""


Summarizer = Callable[..., str]
"""As `compression.extractive.summarize`."""
Evaluate = Callable[..., FidelityEvaluated]
"""As `fidelity.evaluate`."""


def default_levels(limits: WindowLimits, checkpoint_ratio: float) -> Levels:
    """The engine's own levels."""
    return Levels.of(limits, checkpoint_ratio=checkpoint_ratio)


def head_and_tail(text: str, max_tokens: int, counter: TokenCounter, handle: str) -> str:
    """The result with its middle left out, and where the whole can be found."""
    return middle_out(text, max_tokens, counter, note=f", original: {handle}" if handle else "")


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The choices by which a session is managed; a preset or a user replaces any of them."""

    cascade: tuple[str | Step[Any], ...] = DEFAULT_CASCADE
    """Steps before a call, in order: by name, or a preset's own."""
    after_turn: tuple[Step[Any], ...] = ()
    """What is done after a turn."""
    background: bool = True
    """Whether that is done off the agent's path; if not, the hook returns when it is done."""
    after_overflow: tuple[Step[Any], ...] = ()
    """What is tried first after the provider refused a call as too large."""
    watch: Callable[[Any], object] | None = None
    """Told of the window before every call, whatever is due; for a preset's own log."""
    limits_of: LimitsOf = WindowLimits.of
    levels_of: LevelsOf = default_levels
    shorten: Shorten = head_and_tail
    policy: Policy | None = POLICIES["hybrid"]
    """None for no eviction."""
    embed: Embedder | None = None
    """Tells what is alike, for merging; None compares word shingles."""
    summarizer: Summarizer | None = summarize
    """Writes summaries without a model; None for none."""
    evaluate: Evaluate | None = evaluate
    """Tells a compression's fidelity; None where nobody asks."""
    enforce: Literal["global", "component"] = "global"
    """Whether a component over its budget is only reported, or reduced by itself and refused more."""
    soft_ratio: float = SOFT_RATIO
    """Of a component's budget, from which it is warned about."""
    compact_ratio: float | None = None
    """Utilization from which the conversation is compacted; None wherever eviction fell short."""
    protected_types: frozenset[ContentType] = frozenset()
    """Content that never leaves, beside what never leaves anyway."""
    summarize_tokens: int = 500
    """A model summarises single tool results larger than this."""
    result_tokens: int = RESULT_TOKENS
    """At most for one tool result."""
    result_ratio: float = RESULT_RATIO
    """Of usable; the smaller of both caps a result."""
    expected_turns: int = 50
    """Turns the prompt cache is expected to be read again; decides whether an edit pays for itself."""
    archive: bool = True
    subagent: bool = True
    """Whether a sub-agent may be asked."""
    checkpoint: bool = True
    environment: bool = True
    """Whether checkpoints say what surrounds the task."""
    checkpoint_ratio: float = CHECKPOINT_RATIO
    """Utilization from which checkpoints are saved."""
    model: str = ""
    """Name of the language model that may write summaries; empty for none."""
    image_tokens: int = IMAGE_TOKENS
    references: bool = True
    """Whether later content's use of earlier content is tracked; it renews lifetimes and feeds the scores."""
