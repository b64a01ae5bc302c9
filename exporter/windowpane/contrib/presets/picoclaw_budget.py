"""Picoclaw's arithmetic as pure functions over messages: boundaries, estimates, the full budget formula.

Two and a half characters a token, on purpose more than most tokenizers count. Messages have the shape of
OpenAI's chat API, and may carry `system_parts`, `reasoning_content` and `media`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from windowpane.core.window.boundaries import Message, exchange_starts, safe_boundary

CHARACTERS: Final = 5
TOKENS: Final = 2
"""Two tokens for five characters."""
MESSAGE_CHARACTERS: Final = 12
"""For role and structure of each message."""
PART_CHARACTERS: Final = 20
"""For the structure of each part of a system prompt, and of each tool definition."""
MEDIA_TOKENS: Final = 256
"""Of an image or another attachment, whatever its size."""

Estimate = Callable[[Message], int]


def parse_turn_boundaries(history: Sequence[Message]) -> list[int]:
    """Where each of its turns begins (our exchanges): at every user message."""
    return exchange_starts(history)


def find_safe_boundary(history: Sequence[Message], target_index: int) -> int:
    """The cut nearest to *target_index* that splits no turn; 0 when there is none.

    Where no user message is at all the source cuts anywhere; here never between a call and its results.
    """
    return safe_boundary(history, target_index)


def estimate_message_tokens(message: Message) -> int:
    """Tokens of one message: content, reasoning, tool calls, ids and structure by characters; media flat."""
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
    """Tokens of the tool definitions: name, description, schema of the parameters, structure; 0 for none."""
    characters = 0
    for tool in tools:
        named = tool.get("function") or tool
        characters += len(named.get("name") or "") + len(named.get("description") or "") + PART_CHARACTERS
        characters += _json_characters(named.get("parameters") or named.get("input_schema"))
    return characters * TOKENS // CHARACTERS


def is_over_context_budget(
    context_window: int,
    messages: Iterable[Message],
    tool_definitions: Iterable[Mapping[str, Any]] = (),
    max_tokens: int = 0,
) -> bool:
    """Whether messages, tool definitions and the output they leave room for exceed the window, strictly."""
    used = sum(estimate_message_tokens(message) for message in messages)
    return used + estimate_tool_definition_tokens(tool_definitions) + max_tokens > context_window


def history_budget(
    context_window: int, *, system_tokens: int = 0, summary_tokens: int = 0, tool_tokens: int = 0, max_tokens: int
) -> int:
    """What is left for the history; never negative."""
    return max(0, context_window - system_tokens - summary_tokens - tool_tokens - max_tokens)


@dataclass(frozen=True, slots=True)
class Trimmed:
    """A history without its oldest turns."""

    messages: list[Message]
    dropped: int
    """Messages that are gone."""
    fits: bool
    """Whether what is left is within the budget; the turn under way is never dropped, whatever its size."""


def trim_to_fit(
    history: Sequence[Message], max_tokens: int, *, estimate: Estimate = estimate_message_tokens
) -> Trimmed:
    """*history* without as many of its oldest turns as it takes to fit *max_tokens*, whole turns only."""
    tokens = [estimate(message) for message in history]
    cuts = [0, *(start for start in parse_turn_boundaries(history) if start > 0)]
    cut = next((start for start in cuts if sum(tokens[start:]) <= max_tokens), cuts[-1])
    return Trimmed(list(history[cut:]), cut, sum(tokens[cut:]) <= max_tokens)


def _content(content: object) -> tuple[int, int]:
    """Characters of the text and number of media in a content field; bytes of media never count."""
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
