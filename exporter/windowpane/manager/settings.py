"""The settings of a managed session, chosen by a preset or a user."""

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
from windowpane.manager.plans.truncation import shorten_result
from windowpane.manager.step import Step

RESULT_TOKENS: Final = 25_000
RESULT_RATIO: Final = 0.50
"""A tool result is cut to the smaller of 25,000 tokens and half of usable when it is added."""
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
"""Window size and its source to the limits of the window."""
LevelsOf = Callable[[WindowLimits, float], Levels]
"""The levels of a window, given the utilization from which checkpoints are saved."""
Shorten = Callable[[str, int, TokenCounter, str], str]
"""Text of a tool result, maximum tokens, counter and handle of the original (empty without an archive) to the
shortened text."""


Summarizer = Callable[..., str]
"""A function with the parameters of `plans.summary.summarize`."""
Evaluate = Callable[..., FidelityEvaluated]
"""A function with the parameters of `fidelity.probe.evaluate`."""


def default_levels(limits: WindowLimits, checkpoint_ratio: float) -> Levels:
    """Return the default levels of a window."""
    return Levels.of(limits, checkpoint_ratio=checkpoint_ratio)


def head_and_tail(text: str, max_tokens: int, counter: TokenCounter, handle: str) -> str:
    """Return head and tail of a tool result, with its failure and the original's handle between them."""
    return shorten_result(text, max_tokens, counter, note=f", original: {handle}" if handle else "")


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The choices by which a session is managed; a preset or a user replaces any of them."""

    cascade: tuple[str | Step[Any], ...] = DEFAULT_CASCADE
    """Steps before a call, in order: by name, or a preset's own."""
    after_turn: tuple[Step[Any], ...] = ()
    """Steps between two turns."""
    background: bool = True
    """True to run these in the background; otherwise the hook returns when they are done."""
    after_overflow: tuple[Step[Any], ...] = ()
    """Steps to try first after the provider rejected a call as too large."""
    watch: Callable[[Any], object] | None = None
    """Called with the engine before every model call; writes a preset's own log."""
    limits_of: LimitsOf = WindowLimits.of
    levels_of: LevelsOf = default_levels
    shorten: Shorten = head_and_tail
    policy: Policy | None = POLICIES["hybrid"]
    """The eviction policy; None disables eviction."""
    embed: Embedder | None = None
    """Text to vector, to find similar content for merging; None compares word shingles."""
    summarizer: Summarizer | None = summarize
    """Writes summaries without a model; None disables them."""
    evaluate: Evaluate | None = evaluate
    """Measures the fidelity of a compression; None disables it."""
    enforce: Literal["global", "component"] = "global"
    """`global` reports a component over its budget; `component` reduces it and blocks additions to it."""
    soft_ratio: float = SOFT_RATIO
    """Share of a component's budget from which it is reported."""
    compact_ratio: float | None = None
    """Utilization from which the conversation is compacted; None for the default level."""
    protected_types: frozenset[ContentType] = frozenset()
    """Content types that are never removed, beside those that never are."""
    summarize_tokens: int = 500
    """A model summarizes single tool results larger than this."""
    result_tokens: int = RESULT_TOKENS
    """Maximum size of one tool result."""
    result_ratio: float = RESULT_RATIO
    """Maximum size of one tool result as a share of usable; the smaller of both applies."""
    expected_turns: int = 50
    """Turns for which the prompt cache is expected to be read; decides whether an edit pays for itself."""
    archive: bool = True
    subagent: bool = True
    """True to allow a sub-agent."""
    checkpoint: bool = True
    environment: bool = True
    """True to record facts about the task's surroundings in checkpoints."""
    checkpoint_ratio: float = CHECKPOINT_RATIO
    """Utilization from which checkpoints are saved."""
    model: str = ""
    """Name of the language model that may write summaries; empty without one."""
    model_calls_per_turn: float = 0.25
    """Mean number of model and sub-agent calls per turn that reductions may make, after the first 8."""
    image_tokens: int = IMAGE_TOKENS
    references: bool = True
    """True to track references to earlier content, which renew lifetimes and enter the scores."""
