"""The picoclaw preset: three paths that keep its turns (exchanges here) whole.

After a turn, in the background, the older messages become a summary when there are more than 20 or they exceed
three quarters of the window. Before a call, and again after the provider refused one, the older half of the turns
is removed without a model call, with a note in the summary. Faults of the source are repaired: the previous
summary is merged and never dropped, messages added while a summary is written stay, tool results are summarized
too, and a history of one turn is reduced inside instead of losing all but its request.

Its arithmetic is also here as pure functions over messages in the shape of OpenAI's chat API, which may carry
`system_parts`, `reasoning_content` and `media`. It counts two and a half characters per token, deliberately more
than most tokenizers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from windowpane.core.choices import FIXED_BY_PRESET
from windowpane.core.limits import WindowLimits
from windowpane.core.vocabulary import LimitSource
from windowpane.core.window.boundaries import Message, exchange_starts, safe_boundary
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
PART_CHARACTERS: Final = 20
"""For the structure of each part of a system prompt, and of each tool definition."""
MEDIA_TOKENS: Final = 256
"""Tokens of an image or another attachment, whatever its size."""

Estimate = Callable[[Message], int]


def parse_turn_boundaries(history: Sequence[Message]) -> list[int]:
    """Return the index of each turn's first message: every user message."""
    return exchange_starts(history)


def find_safe_boundary(history: Sequence[Message], target_index: int) -> int:
    """Return the cut nearest to *target_index* that splits no turn; 0 if there is none.

    Without any user message the source cuts anywhere; here never between a call and its results.
    """
    return safe_boundary(history, target_index)


def estimate_message_tokens(message: Message) -> int:
    """Return the tokens of one message: text, reasoning, calls, ids and structure by characters; media flat."""
    content = message.get("content")
    texts, media = _content(content)
    parts = message.get("system_parts") or ()
    if parts:
        texts = max(texts, sum(len(str(part.get("text", ""))) + PART_CHARACTERS for part in parts))
    characters = texts + len(message.get("reasoning_content") or "") + MESSAGE_CHARACTERS
    characters += sum(_call_characters(call) for call in message.get("tool_calls") or ())
    characters += len(message.get("tool_call_id") or "")
    media += len(message.get("media") or ())
    return characters * TOKENS // CHARACTERS + media * MEDIA_TOKENS


def estimate_tool_definition_tokens(tools: Iterable[Mapping[str, Any]]) -> int:
    """Return the tokens of the tool definitions: name, description, parameters and structure; 0 for none."""
    characters = 0
    for tool in tools:
        function = tool.get("function") or tool
        characters += len(function.get("name") or "") + len(function.get("description") or "") + PART_CHARACTERS
        characters += _json_characters(function.get("parameters") or function.get("input_schema"))
    return characters * TOKENS // CHARACTERS


def is_over_context_budget(
    context_window: int,
    messages: Iterable[Message],
    tool_definitions: Iterable[Mapping[str, Any]] = (),
    max_tokens: int = 0,
) -> bool:
    """Return whether messages, tool definitions and reserved output strictly exceed the window."""
    used = sum(estimate_message_tokens(message) for message in messages)
    return used + estimate_tool_definition_tokens(tool_definitions) + max_tokens > context_window


def history_budget(
    context_window: int, *, system_tokens: int = 0, summary_tokens: int = 0, tool_tokens: int = 0, max_tokens: int
) -> int:
    """Return the tokens that remain for the history; never negative."""
    return max(0, context_window - system_tokens - summary_tokens - tool_tokens - max_tokens)


@dataclass(frozen=True, slots=True)
class Trimmed:
    """A history without its oldest turns."""

    messages: list[Message]
    dropped: int
    """Number of removed messages."""
    fits: bool
    """True if the rest fits the budget; the current turn is never dropped, whatever its size."""


def trim_to_fit(
    history: Sequence[Message], max_tokens: int, *, estimate: Estimate = estimate_message_tokens
) -> Trimmed:
    """Return *history* without the oldest turns that do not fit *max_tokens*; whole turns only."""
    tokens = [estimate(message) for message in history]
    cuts = [0, *(start for start in parse_turn_boundaries(history) if start > 0)]
    cut = next((start for start in cuts if sum(tokens[start:]) <= max_tokens), cuts[-1])
    return Trimmed(list(history[cut:]), cut, sum(tokens[cut:]) <= max_tokens)


def _content(content: object) -> tuple[int, int]:
    """Return the characters of the text and the number of media in a content field."""
    if isinstance(content, str):
        return len(content), 0
    characters = media = 0
    for part in content if isinstance(content, list | tuple) else ():
        kind = part.get("type")
        if kind in ("text", "input_text"):
            characters += len(part.get("text") or "")
        elif kind == "tool_result":
            inner = _content(part.get("content"))
            characters, media = characters + inner[0], media + inner[1]
        else:
            media += 1
    return characters, media


def _call_characters(call: Mapping[str, Any]) -> int:
    function = call.get("function")
    characters = len(call.get("id") or "") + len(call.get("type") or "")
    if not isinstance(function, Mapping):
        return characters + len(call.get("name") or "")
    arguments = function.get("arguments")
    return characters + len(function.get("name") or "") + _json_characters(arguments)


def _json_characters(value: object) -> int:
    """Length of a value as JSON, characters outside ASCII counted as themselves."""
    if value is None:
        return 0
    return len(value) if isinstance(value, str) else len(json.dumps(value, ensure_ascii=False, default=str))


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
    starts = parse_turn_boundaries(as_roles(messages))
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
    return groups_from(messages, find_safe_boundary(as_roles(messages), len(messages) - KEPT_MESSAGES))


FORCED: Final = CompactionBounds(
    chosen_groups=newer_half,
    by_model=False,
    user_tokens=0,
    user_ratio=0.0,
    summary_tokens=1_200,
    summary_ratio=0.04,
)
SUMMARY: Final = CompactionBounds(chosen_groups=newest_messages, user_tokens=0, user_ratio=0.0)


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
