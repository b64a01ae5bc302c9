"""The ai-sdk-go preset: one strategy acts at 85% of the model's input and reports a status event.

Strategies: keep the newest messages, drop the oldest, summarize all but the newest, or a user's function. Groups
are never split here, and the task, the current message and the open tool cycle are never removed. A tool result
over its cap is replaced by a structured error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from windowpane.core.choices import FIXED_BY_PRESET
from windowpane.core.limits import WindowLimits
from windowpane.core.protocols import TokenCounter
from windowpane.core.vocabulary import LimitSource
from windowpane.effects.commands import Effect
from windowpane.exceptions import ConfigurationError
from windowpane.manager.engine import Engine
from windowpane.manager.levels import Levels
from windowpane.manager.messages import openai_messages
from windowpane.manager.plans.compaction import CompactionBounds, GroupChoice
from windowpane.manager.plans.eviction import EvictionPlan
from windowpane.manager.plans.protection import never_removed
from windowpane.manager.presets.history import groups_from, messages_of, plan_drop
from windowpane.manager.presets.preset import CharacterEstimate, Preset, levels_at, limits_with_reserve
from windowpane.manager.settings import SAFETY_NET, EngineSettings
from windowpane.manager.snapshot import Group, Snapshot, groups_of
from windowpane.manager.step import Step, StepResult
from windowpane.manager.steps.cascade import compact_with_breaker
from windowpane.manager.steps.eviction import evict_planned

MAX_TOKEN_RATIO: Final = 0.85
TARGET_SHARE: Final = 0.80
"""Target of a reduction as a share of the level that triggers it."""
WINDOW_MESSAGES: Final = 20
KEPT_MESSAGES: Final = 10
"""The newest messages that are not summarized."""
MAX_RESPONSE_TOKENS: Final = 25_000
CHARACTERS_PER_TOKEN: Final = 4
STATUS_EVENT: Final = "StatusEvent"
STAGE_TURN_STARTED: Final = "turn_started"

Trim = Callable[[list[dict[str, Any]], int], Sequence[dict[str, Any]]]
"""A user's strategy: takes the messages and the token budget, returns the messages to retain."""


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """Keep the *messages* newest messages, and no group in part."""

    messages: int = WINDOW_MESSAGES


@dataclass(frozen=True, slots=True)
class DropOldest:
    """Drop the oldest messages until a fifth below the threshold is reached; the system prompt stays."""

    keep_system: bool = True


@dataclass(frozen=True, slots=True)
class Summarize:
    """Replace all but the *keep* newest messages by a summary."""

    keep: int = KEPT_MESSAGES


@dataclass(frozen=True, slots=True)
class Custom:
    """Drop the messages that *trim* does not return, if removable; messages it changes or adds are ignored."""

    trim: Trim


Strategy = SlidingWindow | DropOldest | Summarize | Custom


def ai_sdk_go(
    *,
    max_token_ratio: float = MAX_TOKEN_RATIO,
    strategy: Strategy = SlidingWindow(),
    max_response_tokens: int = MAX_RESPONSE_TOKENS,
) -> Preset:
    """Return the preset with another threshold, strategy or cap of tool responses; 0 for no cap.

    Raises `ConfigurationError` for values that the source refuses, and for dropping the system prompt.
    """
    if not 0 < max_token_ratio <= 1:
        raise ConfigurationError("max_token_ratio", f"{max_token_ratio}", expected="above 0 to 1")
    if max_response_tokens < 0:
        raise ConfigurationError("max_response_tokens", f"{max_response_tokens} is negative", expected=">= 0")
    _check(strategy)

    def levels(limits: WindowLimits, checkpoint_ratio: float) -> Levels:
        act = max(1, int(max_token_ratio * limits.limit_tokens))
        return levels_at(limits, act, target=int(TARGET_SHARE * act), checkpoint_ratio=checkpoint_ratio)

    return Preset(
        name="ai_sdk_go",
        window=window,
        control=EngineSettings(
            cascade=(_step(strategy), *SAFETY_NET),
            levels_of=levels,
            shorten=too_large,
            result_tokens=max_response_tokens or 10**9,
            result_ratio=1.0 if not max_response_tokens else 0.5,
        ),
        counter=CharacterEstimate(CHARACTERS_PER_TOKEN),
        fixed=FIXED_BY_PRESET["ai_sdk_go"],
    )


def window(limit_tokens: int, source: LimitSource, requested_output_tokens: int = 0) -> WindowLimits:
    """Return limits without an output reserve, unless requested: the limit is the model's largest input."""
    return limits_with_reserve(limit_tokens, source, requested_output_tokens)


def too_large(text: str, max_tokens: int, counter: TokenCounter, handle: str) -> str:
    """Return the JSON error that replaces a response over its cap, with the handle of the original."""
    error: dict[str, Any] = {
        "error": "response_too_large",
        "message": "The response was too large for the context window. Ask for less of it.",
        "details": {"estimated_tokens": counter.count(text), "max_tokens": max_tokens},
    }
    if handle:
        error["details"]["original"] = handle
    return json.dumps(error)


def keep_newest(count: int) -> GroupChoice:
    """Return the choice of the groups that hold one of the newest *count* messages."""

    def chosen_groups(_snapshot: Snapshot, groups: Sequence[Group]) -> set[str]:
        messages = messages_of(groups)
        return groups_from(messages, max(0, len(messages) - count))

    return chosen_groups


def plan_window(snapshot: Snapshot, messages: int) -> EvictionPlan:
    """Return the plan that drops every message before the newest *messages*."""
    groups = groups_of(snapshot.items)
    retained = never_removed(snapshot, groups) | keep_newest(messages)(snapshot, groups)
    removed = [group for group in groups if group.id not in retained]
    return plan_drop(snapshot, removed, policy="ai_sdk_go.sliding_window", reason="before the window")


def plan_oldest(snapshot: Snapshot, needed_tokens: int) -> EvictionPlan:
    """Return the plan that drops the oldest messages until *needed_tokens* are freed."""
    groups = groups_of(snapshot.items)
    retained = never_removed(snapshot, groups)
    removed: list[Group] = []
    for group in groups:
        if sum(one.tokens for one in removed) >= needed_tokens:
            break
        if group.id not in retained:
            removed.append(group)
    return plan_drop(snapshot, removed, policy="ai_sdk_go.drop_oldest", reason="oldest")


def plan_custom(engine: Engine, snapshot: Snapshot, trim: Trim, budget_tokens: int) -> EvictionPlan:
    """Return the plan that drops the groups of which *trim* returned no message."""
    groups = groups_of(snapshot.items)
    retained = never_removed(snapshot, groups)
    messages: list[tuple[dict[str, Any], str]] = []
    for group in groups:
        blocks = [item.block for item in group.items]
        messages.extend((message, group.id) for message in openai_messages(blocks, engine.payloads))
    try:
        remaining = trim([message for message, _ in messages], budget_tokens)
    except Exception as error:  # noqa: BLE001 (the strategy is the user's code)
        engine.journal.record(
            STATUS_EVENT, f"the custom strategy failed: {type(error).__name__}", error=repr(error)
        )
        remaining = [message for message, _ in messages]
    retained |= _retained_by(messages, remaining)
    visible = {name for _, name in messages}
    removed = [group for group in groups if group.id in visible and group.id not in retained]
    return plan_drop(snapshot, removed, policy="ai_sdk_go.custom", reason="left out by the custom strategy")


def _retained_by(messages: Sequence[tuple[dict[str, Any], str]], remaining: Sequence[dict[str, Any]]) -> set[str]:
    """Return the groups of the messages that a strategy returned.

    A copy is the newest equal message that was not returned itself: equal messages are not the same message.
    """
    identities = {id(message) for message in remaining}
    retained = {group for message, group in messages if id(message) in identities}
    own = {id(message) for message, _ in messages}
    unclaimed = [(message, group) for message, group in messages if id(message) not in identities]
    for copied in reversed([message for message in remaining if id(message) not in own]):
        for position in reversed(range(len(unclaimed))):
            if unclaimed[position][0] == copied:
                retained.add(unclaimed.pop(position)[1])
                break
    return retained


def _check(strategy: Strategy) -> None:
    if isinstance(strategy, SlidingWindow) and strategy.messages < 1:
        raise ConfigurationError("strategy.messages", f"{strategy.messages}", expected=">= 1")
    if isinstance(strategy, Summarize) and strategy.keep < 0:
        raise ConfigurationError("strategy.keep", f"{strategy.keep} is negative", expected=">= 0")
    if isinstance(strategy, DropOldest) and not strategy.keep_system:
        raise ConfigurationError("strategy.keep_system", "the system prompt is never removed", expected="true")


def _step(strategy: Strategy) -> Step[Engine]:
    """Return the step that runs the strategy and always reports the status event."""

    def run(engine: Engine, limits: WindowLimits, levels: Levels) -> Effect[StepResult]:
        used = engine.used()
        outcome = yield from _act(strategy, engine, limits, levels)
        applied = "compaction applied" if outcome else "nothing could be compacted"
        details = (
            f"context window at {used / limits.limit_tokens:.0%} capacity "
            f"({used:,}/{limits.limit_tokens:,} tokens), {applied}"
        )
        engine.journal.record(STATUS_EVENT, details, Stage=STAGE_TURN_STARTED, Details=details)
        return outcome

    action: Any = "compact" if isinstance(strategy, Summarize) else "evict"
    return Step(action, lambda engine, levels: engine.used() >= levels.evict, run)


def _act(strategy: Strategy, engine: Engine, limits: WindowLimits, levels: Levels) -> Effect[StepResult]:
    if isinstance(strategy, Summarize):
        bounds = CompactionBounds(
            chosen_groups=keep_newest(strategy.keep),
            user_tokens=0,
            user_ratio=0.0,
            summary_tokens=6_000,
            summary_ratio=0.2,
        )
        return compact_with_breaker(engine, limits, levels, trigger="max_token_ratio", bounds=bounds)

    def plan_of(snapshot: Snapshot, handles: bool) -> EvictionPlan:  # noqa: ARG001, FBT001 (the protocol's shape)
        if isinstance(strategy, SlidingWindow):
            return plan_window(snapshot, strategy.messages)
        if isinstance(strategy, DropOldest):
            return plan_oldest(snapshot, engine.raw(max(0, engine.used() - levels.target)))
        return plan_custom(engine, snapshot, strategy.trim, levels.evict)

    return evict_planned(engine, limits, plan_of, lambda _plan: 1)


AI_SDK_GO: Final = ai_sdk_go()
