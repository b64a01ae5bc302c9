"""The signs of the visual language: a word for everything, a shape for each zone, a letter for each event.

The dashboard, the report, the terminal and the alert messages all take them from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from windowpane.core.events import PAYLOADS
from windowpane.core.vocabulary import Component, ContentType, Severity, Zone
from windowpane.text.formats import UNKNOWN

ZONE_SHAPES: Final[dict[Zone, str]] = {
    "green": "○",
    "yellow": "◐",
    "orange": "◕",
    "red": "●",
    "overflow": "✕",
}
"""A shape for each zone, so that colour is never the only sign."""

ASCII_ZONE_SHAPES: Final[dict[Zone, str]] = {
    "green": "o",
    "yellow": "-",
    "orange": "=",
    "red": "#",
    "overflow": "X",
}
"""Likewise, for terminals without Unicode."""

GAUGE_CELLS: Final = 10

SEVERITY_SHAPES: Final[dict[Severity, str]] = {"info": "○", "warning": "◕", "critical": "●"}
"""A shape for each severity, as filled as it is bad."""

CONTENT_WORDS: Final[dict[ContentType, str]] = {
    "system_prompt": "system prompt",
    "tool_definition": "tool definition",
    "user_message": "user message",
    "assistant_response": "assistant reply",
    "thinking": "thinking",
    "tool_call": "tool call",
    "tool_result": "tool result",
    "memory_injection": "memory",
    "summary": "summary",
    "placeholder": "placeholder",
    "media": "media",
    "unattributed": "unattributed",
}
"""What a block is, for people."""

COMPONENT_WORDS: Final[dict[Component, str]] = {
    "system_prompt": "system prompt",
    "tool_definitions": "tool definitions",
    "message_history": "message history",
    "tool_results": "tool results",
    "memory_injection": "memory injection",
    "unattributed": "unattributed",
}
"""What a component is, for people."""

LIMIT_WORDS: Final[dict[str, str]] = {
    "given": "given by you",
    "provider": "from the provider",
    "catalogue": "from the model catalog",
    "observed_floor": "at least, as observed",
}
"""Where a limit comes from, for people."""

COUNT_WORDS: Final[dict[str, str]] = {
    "exact": "counted with the model's own tokenizer",
    "usage": "as the provider reported",
    "reported": "as the model said of its own budget",
    "estimate": "estimated",
}
"""Where a token count comes from, for people."""


@dataclass(frozen=True, slots=True)
class Mark:
    """How a kind of event is marked on a timeline."""

    letter: str
    icon: str
    word: str


MARKS: Final[dict[str, Mark]] = {
    mark.letter: mark
    for mark in (
        Mark("E", "▼", "evicted"),
        Mark("C", "■", "compressed"),
        Mark("S", "▲", "spike"),
        Mark("K", "◆", "checkpoint"),
        Mark("W", "⬡", "window rolled"),
        Mark("R", "↩", "regret"),
        Mark("A", "★", "alert"),
    )
}
"""Marks by letter, in the order they are shown."""

MARK_OF: Final[dict[str, Mark]] = {
    "blocks.evicted": MARKS["E"],
    "content.compressed": MARKS["C"],
    "velocity.spiked": MARKS["S"],
    "checkpoint.saved": MARKS["K"],
    "checkpoint.loaded": MARKS["K"],
    "checkpoint.rejected": MARKS["K"],
    "window.rolled": MARKS["W"],
    "content.regretted": MARKS["R"],
    "alert.fired": MARKS["A"],
    "alert.resolved": MARKS["A"],
}
"""Event name to its mark; other events have none."""

ROUTINE: Final[frozenset[str]] = frozenset(
    {"turn.started", "turn.ended", "block.added", "blocks.referenced", "pressure.measured"}
)
"""Events that every turn has; everything else is noteworthy."""

NOTEWORTHY: Final[tuple[str, ...]] = tuple(name for name in PAYLOADS if name not in ROUTINE)
"""Event names worth a line of their own."""


def zone_label(zone: Zone | None) -> str:
    """A zone with its shape: `◕ orange`; `–` when unknown."""
    return UNKNOWN if zone is None else f"{ZONE_SHAPES[zone]} {zone}"


def severity_label(severity: Severity) -> str:
    """A severity with its shape: `● critical`."""
    return f"{SEVERITY_SHAPES[severity]} {severity}"


def event_label(event_type: str) -> str:
    """An event's name with its letter and icon, where it has them: `E ▼ blocks.evicted`."""
    mark = MARK_OF.get(event_type)
    return event_type if mark is None else f"{mark.letter} {mark.icon} {event_type}"


def zone_mark(zone: Zone | None, *, unicode: bool = True) -> str:
    """The zone's shape and word, in ASCII where the terminal has nothing better."""
    return zone_label(zone) if unicode or zone is None else f"{ASCII_ZONE_SHAPES[zone]} {zone}"


def gauge(ratio: float | None) -> str:
    """`[#######.. ]`: filled to *ratio*."""
    if ratio is None:
        return f"[{'?' * GAUGE_CELLS}]"
    filled = min(GAUGE_CELLS, max(0, round(ratio * GAUGE_CELLS)))
    return f"[{'#' * filled}{'.' * (GAUGE_CELLS - filled)}]"
