"""The vocabulary of the window: content types, components, zones, phases, severities and sources.

Values are string literals, not enumerations: they are hashed on the agent's thread, written to JSON and used as
metric labels, all without conversion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

OWN_SOURCE: Final = "windowpane"
"""Source of the sessions that hold Windowpane's own alerts, about budgets, quotas and the store."""

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
"""Type of a block's content."""

Component = Literal[
    "system_prompt", "tool_definitions", "message_history", "tool_results", "memory_injection", "unattributed"
]
"""The budget that a block's tokens are counted in."""

Zone = Literal["green", "yellow", "orange", "red", "overflow"]
"""Fill level of the window, in order of severity."""

Phase = Literal["before", "after", "final", "next"]
"""Moment of a measurement: before any action at the start of a turn, after a reduction, or with the provider's
count at the end of the turn."""

Severity = Literal["info", "warning", "critical"]
"""Severity of an alert."""

Fate = Literal["kept", "recoverable", "lost", "contradicted"]
"""State of a fact after a compression."""

RuleSource = Literal["user", "system", "memory"]
"""Author of a standing instruction: a message of the user, the system prompt, or a memory file or reminder."""

RuleFate = Literal["kept", "reworded", "restored", "lost", "contradicted"]
"""State of a standing instruction after a compaction: visible word for word, in other words, or since the agent's
program put it back; not visible; or replaced by its opposite, or by one with another number or name."""

Misstep = Literal["error", "repeated_read", "repeated_call", "correction"]
"""A tool result that failed, content that was read again unchanged, another call that was repeated, or a
correction by the user."""

Access = Literal["reads", "changes", "reports", "waits"]
"""The effect of a tool call: it reads content, changes something, reports a state as a build does, or waits."""

Mark = Literal["reads", "changes", "reports", "waits", "failed", "refused", "correction", "wrapped"]
"""A property that the text of a block shows: the access of a tool call and of its result; that a result failed or
its call was refused; that a message corrects the agent, or that an agent's program wrote all of it."""

CONTENT_TYPES: Final[tuple[ContentType, ...]] = get_args(ContentType)
MISSTEPS: Final[tuple[Misstep, ...]] = get_args(Misstep)
COMPONENTS: Final[tuple[Component, ...]] = get_args(Component)
SEVERITIES: Final[tuple[Severity, ...]] = get_args(Severity)
"""From the mildest to the worst."""

ZONES: Final[tuple[Zone, ...]] = get_args(Zone)
FATES: Final[tuple[Fate, ...]] = get_args(Fate)
FACT_KINDS: Final = (
    "reversed", "rule", "wrong_number", "wrong_name", "failed_command", "open_work", "changed_file", "read_file",
    "decision", "goal",
)  # fmt: skip
"""Kinds of facts that the probe looks up, those whose loss does the most harm first."""


def severity(kind: str, fate: Fate) -> tuple[int, int]:
    """Return the position of a fact among others: first rules that are reversed or lost, then what is wrong."""
    position = FACT_KINDS.index(kind) if kind in FACT_KINDS else len(FACT_KINDS)
    if kind == "reversed" or (kind == "rule" and fate == "lost"):
        return -len(FATES), position
    return -FATES.index(fate), position


RULE_SOURCES: Final[tuple[RuleSource, ...]] = get_args(RuleSource)
RULE_FATES: Final[tuple[RuleFate, ...]] = get_args(RuleFate)
"""From the mildest to the worst."""
LOST_FATES: Final[tuple[RuleFate, ...]] = ("contradicted", "lost")
"""Those of a rule that is not visible any more, the worst first."""


def counts_as_lost(source: RuleSource, fate: RuleFate) -> bool:
    """Return whether a session has lost a rule; each call renews those of the system prompt."""
    return source != "system" and fate in LOST_FATES


def lost_count(counts: Mapping[RuleSource, Mapping[RuleFate, int]]) -> int:
    """Return the number of lost rules by the *counts* of each source."""
    return sum(
        number
        for source, fates in counts.items()
        for fate, number in fates.items()
        if counts_as_lost(source, fate)
    )


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
"""Content that a model writes: the first block of it in a turn marks the model call."""

STATIC_TYPES: Final[frozenset[ContentType]] = frozenset({"system_prompt", "tool_definition", "unattributed"})
"""Content that is sent with every call and does not count as growth of the conversation."""

DERIVED_TYPES: Final[frozenset[ContentType]] = frozenset({"summary", "placeholder"})
"""Content that replaces removed content; never counted as added."""

NOT_ADDED: Final[frozenset[ContentType]] = STATIC_TYPES | DERIVED_TYPES
"""Content that does not count towards velocity and burn rate."""

UNKNOWN_CAUSE: Final = "unknown"
"""Policy of an eviction that only a lower total of the provider shows."""

CountSource = Literal["exact", "usage", "reported", "estimate"]
"""Source of a token count: the model's tokenizer, the provider's usage, the model's report of its budget, or a
heuristic."""

LimitSource = Literal[
    "given", "provider", "settings", "status_line", "earlier", "catalogue", "assumed", "observed_floor",
    "observed_compaction", "preset",
]  # fmt: skip
"""Source of a window's size: the user, the agent's recording or the provider's response, the agent's settings and
environment, its status line, an earlier session of the agent and model in the same folder, the model catalog, one
of the two windows that the model is sold with, a single usage report above the size so far, an automatic
compaction far below it, or the default of a preset for a model of unknown size."""

EVIDENT_SOURCES: Final[frozenset[LimitSource]] = frozenset(
    {"provider", "settings", "status_line", "observed_floor", "observed_compaction"}
)
"""Sources of a size that is evidence for later sessions."""

CompactionEvidence = Literal["stated", "recorded", "earlier", "documented"]
"""Evidence for the level at which an agent compacts by itself: its settings or statement, a compaction recorded
in this session, one recorded in an earlier session of the agent and model, or the agent's documentation."""

TitleSource = Literal["agent", "user", "first_message"]
"""Source of a session's title: the agent, its user, or the start of the first user message."""

PROVIDER: Final = "provider"
"""Policy, trigger and method of a reduction that the provider made before or while the model ran."""

REWOUND: Final = "rewound"
"""Policy of the eviction of an abandoned branch."""

CacheBreakCause = Literal["added", "edited", "reordered", "removed", "model", "expired", "unknown"]
"""Cause of a cache break: content was added before content that was sent already, replaced, moved or removed;
the model changed; the cache expired between the calls; or nothing visible explains it."""

CACHE_BREAK_CAUSES: Final[tuple[CacheBreakCause, ...]] = get_args(CacheBreakCause)
