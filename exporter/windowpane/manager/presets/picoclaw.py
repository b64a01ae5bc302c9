"""The picoclaw preset: three paths that keep its turns (exchanges here) whole.

After a turn, in the background, the older messages become a summary when there are more than 20 or they exceed
three quarters of the window. Before a call, and again after the provider refused one, the older half of the turns
is removed without a model call, with a note in the summary. Faults of the source are repaired: the previous
summary is merged and never dropped, messages added while a summary is written stay, tool results are summarized
too, and a history of one turn is reduced inside instead of losing all but its request.

It counts two and a half characters per token, deliberately more than most tokenizers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from windowpane.core.choices import FIXED_BY_PRESET
from windowpane.core.limits import WindowLimits
from windowpane.core.vocabulary import LimitSource
from windowpane.core.window.boundaries import exchange_starts, safe_boundary
from windowpane.effects.commands import Effect
from windowpane.exceptions import ConfigurationError
from windowpane.manager.engine import Engine
from windowpane.manager.levels import Levels
from windowpane.manager.plans.compaction import CompactionBounds
from windowpane.manager.presets.history import HistoryMessage, as_roles, groups_from, messages_of
from windowpane.manager.presets.preset import CharacterEstimate, Preset, levels_at, limits_with_reserve
from windowpane.manager.settings import SAFETY_NET, EngineSettings
from windowpane.manager.snapshot import Group, Snapshot, groups_of
from windowpane.manager.step import Step, StepResult
from windowpane.manager.steps.cascade import compact_with_breaker
from windowpane.manager.steps.compaction import compact

SUMMARIZE_MESSAGES: Final = 20
SUMMARIZE_PERCENT: Final = 75
"""Percentage of the window; a summary is due strictly above either."""
KEPT_MESSAGES: Final = 4
"""The newest messages that are not summarized, back to the start of their turn."""
WINDOWS_PER_OUTPUT: Final = 4
"""Window size in outputs: a quarter of a window is reserved for output."""
DEFAULT_LIMIT_TOKENS: Final = WINDOWS_PER_OUTPUT * 32_768
"""The window of the source where none is configured: four times its default output."""

COMPRESS_EVENT: Final = "context_compress"
SUMMARIZE_EVENT: Final = "session_summarize"
CHARACTERS: Final = 5
TOKENS: Final = 2
"""Two tokens for five characters."""
MESSAGE_CHARACTERS: Final = 12
"""For role and structure of each message."""
MEDIA_TOKENS: Final = 256
"""Tokens of an image or another attachment, whatever its size."""


def window(limit_tokens: int, source: LimitSource, requested_output_tokens: int = 0) -> WindowLimits:
    """Return limits that reserve the requested output, else a quarter of the window."""
    return limits_with_reserve(
        limit_tokens, source, requested_output_tokens or limit_tokens // WINDOWS_PER_OUTPUT
    )


def levels(limits: WindowLimits, checkpoint_ratio: float) -> Levels:
    """Return levels at the budget: messages, tool definitions and output strictly exceed the window."""
    most = limits.overflow_tokens
    return levels_at(limits, most + 1, target=most, checkpoint_ratio=checkpoint_ratio)


def newer_half(snapshot: Snapshot, groups: Sequence[Group]) -> set[str]:
    """Return the groups of the newer half of the turns, or fewer until they fit; all of a single turn."""
    messages = messages_of(groups)
    starts = exchange_starts(as_roles(messages))
    if len(starts) < 2:
        return {group.id for group in groups}
    tokens = {group.id: group.tokens for group in groups}
    history = sum(tokens[name] for name in groups_from(messages, 0))
    room = snapshot.limits.usable_tokens - (snapshot.tokens - history)
    for start in starts[len(starts) // 2 :]:
        retained = groups_from(messages, start)
        if sum(tokens[name] for name in retained) <= room or start == starts[-1]:
            break
    return retained


def newest_messages(snapshot: Snapshot, groups: Sequence[Group]) -> set[str]:
    """Return the groups of the last four messages, from the start of their turn on."""
    del snapshot
    messages = messages_of(groups)
    return groups_from(messages, safe_boundary(as_roles(messages), len(messages) - KEPT_MESSAGES))


FORCED: Final = CompactionBounds(
    chosen_groups=newer_half,
    by_model=False,
    user_tokens=0,
    user_ratio=0.0,
    summary_tokens=1_200,
    summary_ratio=0.04,
)
SUMMARY: Final = CompactionBounds(
    chosen_groups=newest_messages, user_tokens=0, user_ratio=0.0, summary_tokens=6_000, summary_ratio=0.2
)


def _messages(engine: Engine, limits: WindowLimits) -> list[HistoryMessage]:
    return messages_of(groups_of(engine.snapshot(limits).items))


def _forced(reason: str) -> Step[Engine]:
    def run(engine: Engine, limits: WindowLimits, levels: Levels) -> Effect[StepResult]:
        before = len(_messages(engine, limits))
        outcome = yield from compact(engine, limits, levels, trigger=reason, bounds=FORCED)
        if outcome:
            remaining = len(_messages(engine, limits))
            engine.journal.record(
                COMPRESS_EVENT,
                f"{COMPRESS_EVENT} reason={reason} dropped_messages={before - remaining} "
                f"remaining_messages={remaining}",
                reason=reason,
                dropped_messages=before - remaining,
                remaining_messages=remaining,
            )
        return outcome

    return Step("compact", (lambda _engine, _levels: True) if reason == "llm_retry" else _over, run)


def _over(engine: Engine, levels: Levels) -> bool:
    return engine.used() >= levels.evict


def _summary_due(messages: int, percent: int) -> Callable[[Engine, Levels], bool]:
    """Return the condition that the turn is complete and messages or their tokens are too many."""

    def due(engine: Engine, levels: Levels) -> bool:
        del levels
        limits = engine.limits
        if limits is None or engine.calls.open:
            return False
        history = engine.used() - engine.static_tokens()
        if history * 100 > limits.limit_tokens * percent:
            return True
        return len(engine.tracker.window) > messages and len(_messages(engine, limits)) > messages

    return due


def _summarize(engine: Engine, limits: WindowLimits, levels: Levels) -> Effect[StepResult]:
    before = len(_messages(engine, limits))
    outcome = yield from compact_with_breaker(engine, limits, levels, trigger="summarize", bounds=SUMMARY)
    if outcome:
        remaining = len(_messages(engine, limits))
        length = sum(block.chars for block in engine.tracker.window if block.content_type == "summary")
        engine.journal.record(
            SUMMARIZE_EVENT,
            f"{SUMMARIZE_EVENT} summarized_messages={before - remaining} kept_messages={remaining} "
            f"summary_len={length}",
            summarized_messages=before - remaining,
            kept_messages=remaining,
            summary_len=length,
            omitted_oversized=False,
        )
    return outcome


def picoclaw(
    *,
    summarize_message_threshold: int = SUMMARIZE_MESSAGES,
    summarize_token_percent: int = SUMMARIZE_PERCENT,
) -> Preset:
    """Return the preset with other bounds, under the source's names. Raises `ConfigurationError`."""
    if summarize_message_threshold < 1:
        problem = f"{summarize_message_threshold} messages"
        raise ConfigurationError("summarize_message_threshold", problem, expected=">= 1")
    if not 0 < summarize_token_percent <= 100:
        problem = f"{summarize_token_percent} percent"
        raise ConfigurationError("summarize_token_percent", problem, expected="above 0 to 100")
    due = _summary_due(summarize_message_threshold, summarize_token_percent)
    return Preset(
        name="picoclaw",
        default_limit_tokens=DEFAULT_LIMIT_TOKENS,
        window=window,
        control=EngineSettings(
            cascade=(_forced("proactive_budget"), *SAFETY_NET),
            after_turn=(Step("compact", due, _summarize),),
            after_overflow=(_forced("llm_retry"),),
            levels_of=levels,
            image_tokens=MEDIA_TOKENS,
        ),
        counter=CharacterEstimate(CHARACTERS, TOKENS, MESSAGE_CHARACTERS),
        fixed=FIXED_BY_PRESET["picoclaw"],
    )


PICOCLAW: Final = picoclaw()
