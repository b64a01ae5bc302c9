"""Labels of the vocabulary: names, a shape for each severity, a letter for each kind of event."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from windowpane.core.events import PAYLOADS
from windowpane.core.vocabulary import (
    CacheBreakCause,
    Component,
    ContentType,
    Misstep,
    RuleFate,
    RuleSource,
    Severity,
)

SEVERITY_SHAPES: Final[dict[Severity, str]] = {"info": "•", "warning": "▲", "critical": "◆"}
"""A shape for each severity, as in the charts; zones have others."""

CONTENT_LABELS: Final[dict[ContentType, str]] = {
    "system_prompt": "system prompt",
    "tool_definition": "tool definition",
    "user_message": "user message",
    "assistant_response": "assistant reply",
    "thinking": "thinking",
    "tool_call": "tool call",
    "tool_result": "tool result",
    "memory_injection": "memory or skill",
    "summary": "summary",
    "placeholder": "placeholder",
    "media": "media",
    "unattributed": "content not in the recording",
}
POLICY_LABELS: Final[dict[str, str]] = {
    "fifo": "oldest first",
    "lru": "least recently used first",
    "priority": "least important type first",
    "type_based": "by type and age",
    "semantic_merge": "similar content, merged",
    "hybrid": "least useful first",
}
"""The order in which each eviction policy removes content."""
COMPONENT_LABELS: Final[dict[Component, str]] = {
    "system_prompt": "system prompt",
    "tool_definitions": "tool definitions",
    "message_history": "message history",
    "tool_results": "tool results",
    "memory_injection": "memory and skills",
    "unattributed": "not in the recording",
}
LIMIT_SOURCE_LABELS: Final[dict[str, str]] = {
    "given": "given by you",
    "provider": "stated by the agent or provider",
    "settings": "by the agent's settings",
    "status_line": "by the agent's status line",
    "earlier": "as in an earlier session of the project",
    "catalogue": "from the model catalog",
    "preset": "the default of the preset",
    "assumed": "assumed",
    "observed_floor": "at least, as observed",
    "observed_compaction": "as observed at a compaction",
}
COUNT_SOURCE_LABELS: Final[dict[str, str]] = {
    "exact": "counted with the model's own tokenizer",
    "usage": "reported by the provider",
    "reported": "reported by the model itself",
    "estimate": "estimated",
}
RULE_FATE_LABELS: Final[dict[RuleFate, str]] = {
    "kept": "kept word for word",
    "reworded": "kept in other words",
    "restored": "put back",
    "lost": "lost",
    "contradicted": "reversed or changed",
}
RULE_SOURCE_LABELS: Final[dict[RuleSource, str]] = {
    "user": "user",
    "system": "system prompt",
    "memory": "memory file",
}
MISSTEP_LABELS: Final[dict[Misstep, str]] = {
    "error": "tool error",
    "repeated_read": "repeated read",
    "repeated_call": "repeated call",
    "correction": "correction by the user",
}

CACHE_BREAK_LABELS: Final[dict[CacheBreakCause, str]] = {
    "added": "content was added before content that was sent already",
    "edited": "content that was sent already was changed",
    "reordered": "content that was sent already was moved",
    "removed": "content that was sent already was removed",
    "model": "the model changed",
    "expired": "the cache had expired",
    "unknown": "no cause is recorded",
}


_ID: Final = re.compile(r"(?=.*[0-9])[0-9a-f-]{6,}")


def is_id(target: str) -> bool:
    """Return whether the target of a call is an id, which names nothing to a reader."""
    return _ID.fullmatch(target) is not None


def content_name(content_type: ContentType, tool_name: str | None, target: str | None = None) -> str:
    """Return the type of a block, its tool, and its file or command: `tool result of Read: src/app.py`."""
    label = CONTENT_LABELS[content_type]
    name = f"{label} of {tool_name}" if tool_name else label
    return f"{name}: {target}" if target and not is_id(target) else name


@dataclass(frozen=True, slots=True)
class EventMark:
    """Letter and label of a kind of event on a timeline."""

    letter: str
    label: str
    severity: Severity | None = None


MARKS: Final[dict[str, EventMark]] = {
    mark.letter: mark
    for mark in (
        EventMark("R", "removed"),
        EventMark("C", "compacted"),
        EventMark("S", "sudden growth"),
        EventMark("W", "new window"),
        EventMark("B", "went back"),
        EventMark("N", "needed again"),
        EventMark("!", "critical alert", "critical"),
        EventMark("A", "warning alert", "warning"),
        EventMark("I", "info alert", "info"),
        EventMark("P", "cache break"),
        EventMark("✎", "note"),
    )
}
"""Marks by letter, in display order."""

ALERT_MARKS: Final[dict[Severity, EventMark]] = {mark.severity: mark for mark in MARKS.values() if mark.severity}

MARK_OF: Final[dict[str, EventMark]] = {
    "blocks.evicted": MARKS["R"],
    "content.compressed": MARKS["C"],
    "velocity.spiked": MARKS["S"],
    "history.rewound": MARKS["B"],
    "window.rolled": MARKS["W"],
    "session.continued": MARKS["W"],
    "content.regretted": MARKS["N"],
    "alert.fired": MARKS["A"],
    "alert.resolved": MARKS["A"],
    "note.added": MARKS["✎"],
    "cache.broken": MARKS["P"],
}
"""Marks by event name, of an alert that of a warning; other events have none."""

ROUTINE: Final[frozenset[str]] = frozenset(
    {
        "turn.started",
        "turn.ended",
        "block.added",
        "blocks.referenced",
        "reply.discarded",
        "static_content.removed",
        "pressure.measured",
    }
)
"""Events of every turn; all others are noteworthy."""

NOTEWORTHY: Final[tuple[str, ...]] = tuple(name for name in PAYLOADS if name not in ROUTINE)
"""Event names that get a line in a list of events."""


def severity_label(severity: Severity) -> str:
    """Return a severity with its shape: `◆ critical`."""
    return f"{SEVERITY_SHAPES[severity]} {severity}"
