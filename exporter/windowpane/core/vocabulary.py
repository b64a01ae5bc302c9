"""The words of the window: content types, components, zones, and how they map to one another.

These are plain string literals, not enumerations: they are hashed on the agent's hot path, written to
JSON and used as metric labels, and a string does all three without conversion.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

ContentType = Literal[
    "system_prompt",
    "tool_definition",
    "user_message",
    "assistant_response",
    "thinking",
    "tool_call",
    "tool_result",
    "memory_injection",
    "summary",
    "placeholder",
    "media",
    "unattributed",
]
"""What a block is."""

Component = Literal[
    "system_prompt", "tool_definitions", "message_history", "tool_results", "memory_injection", "unattributed"
]
"""The budget bucket a block's tokens are counted in."""

Zone = Literal["green", "yellow", "orange", "red", "overflow"]
"""How full the window is, in order of severity."""

Phase = Literal["before", "after", "final"]
"""When a pressure was measured: before any action at the start of a turn, after a reduction, or with the
provider's count at the end of the turn."""

Severity = Literal["info", "warning", "critical"]
"""How bad an alert is."""

Fate = Literal["kept", "recoverable", "lost", "contradicted"]
"""What became of a fact in a compression."""

CONTENT_TYPES: Final[tuple[ContentType, ...]] = get_args(ContentType)
COMPONENTS: Final[tuple[Component, ...]] = get_args(Component)
SEVERITIES: Final[tuple[Severity, ...]] = get_args(Severity)
"""From the mildest to the worst."""

ZONES: Final[tuple[Zone, ...]] = get_args(Zone)
FATES: Final[tuple[Fate, ...]] = get_args(Fate)

COMPONENT_OF: Final[dict[ContentType, Component]] = {
    "system_prompt": "system_prompt",
    "tool_definition": "tool_definitions",
    "user_message": "message_history",
    "assistant_response": "message_history",
    "thinking": "message_history",
    "tool_call": "message_history",
    "tool_result": "tool_results",
    "memory_injection": "memory_injection",
    "summary": "message_history",
    "placeholder": "message_history",
    "media": "message_history",
    "unattributed": "unattributed",
}

REPLY_TYPES: Final[frozenset[ContentType]] = frozenset({"assistant_response", "thinking", "tool_call"})
"""What a model writes: the first of these in a turn marks the model call."""

STANDING_TYPES: Final[frozenset[ContentType]] = frozenset({"system_prompt", "tool_definition", "unattributed"})
"""What is sent with every call and is no growth of the conversation."""

DERIVED_TYPES: Final[frozenset[ContentType]] = frozenset({"summary", "placeholder"})
"""What stands for content that left; never counted as added."""

NOT_ADDED: Final[frozenset[ContentType]] = STANDING_TYPES | DERIVED_TYPES
"""What does not count towards velocity and burn rate."""

CountSource = Literal["exact", "usage", "reported", "estimate"]
"""Where a token count comes from: the model's own tokenizer, the provider's usage, what the model said of its own
budget, or a heuristic."""

LimitSource = Literal["given", "provider", "catalogue", "observed_floor"]
"""Where a context window's size comes from: the user, the provider's response, the model catalog,
or a single report that was larger than the catalog allowed."""
