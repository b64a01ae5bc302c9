"""Colors of the dashboard, the report, the runbook and the Grafana dashboards, on a light and a dark background.

Text reaches a contrast of 4.5 to 1, marks and lines 3 to 1. The colors of components fill areas that are labeled
as well and may have less.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from windowpane.core.vocabulary import Component, Fate, Severity, Zone


class Tone(NamedTuple):
    """A color on a light and on a dark background; hexadecimal RGB."""

    light: str
    dark: str


GROUND: Final = Tone("#FFFFFF", "#0E1117")
INK: Final = Tone("#1F2937", "#E6EAF0")
"""Text."""
QUIET: Final = Tone("#566070", "#9AA7B6")
"""Secondary text, and values without a problem."""
RULE: Final = Tone("#E6E9EE", "#232A35")
"""Dividing lines."""
OUTLINE: Final = Tone("#6B7480", "#8B97A6")
"""The limit, and the hatching of the reserve."""
ACCENT: Final = Tone("#2B6CB0", "#63A4E8")
EVENT: Final = Tone("#4A5668", "#AEB9C7")
"""Marks of events: a quiet color, because an event need not be a problem."""

STACKING: Final[tuple[Component, ...]] = (
    "unattributed", "system_prompt", "tool_definitions", "memory_injection", "message_history", "tool_results",
)  # fmt: skip
"""Components of a chart from the bottom up; those at the start of every call come first."""
COMPONENT_TONES: Final[dict[Component, Tone]] = {
    "system_prompt": Tone("#44546A", "#8FA3BF"),
    "tool_definitions": Tone("#7C8DA6", "#66788F"),
    "message_history": ACCENT,
    "tool_results": Tone("#0F8B8D", "#3CC4C0"),
    "memory_injection": Tone("#7E57C2", "#A98BE0"),
    "unattributed": Tone("#A9AFB8", "#6B7280"),
}

ZONE_TONES: Final[dict[Zone, Tone]] = {
    "green": QUIET,
    "yellow": Tone("#B8860B", "#E3B341"),
    "orange": Tone("#D9730D", "#F0883E"),
    "red": Tone("#C62828", "#F85149"),
    "overflow": Tone("#7B0F0F", "#FF7B93"),
}
"""Colors of marks and lines."""

ZONE_TEXT_TONES: Final[dict[Zone, Tone]] = {
    **ZONE_TONES,
    "yellow": ZONE_TONES["yellow"]._replace(light="#866207"),
    "orange": ZONE_TONES["orange"]._replace(light="#A85508"),
}
"""Colors of text, which needs more contrast."""

FACT_TONES: Final[dict[Fate, Tone]] = {
    "kept": Tone("#2E7D32", "#56D364"),
    "recoverable": Tone("#5F6B7A", "#9AA7B6"),
    "lost": ZONE_TONES["red"],
    "contradicted": Tone("#8E24AA", "#C77DFF"),
}

SEVERITY_TONES: Final[dict[Severity, Tone]] = {
    "info": QUIET,
    "warning": ZONE_TONES["orange"],
    "critical": ZONE_TONES["red"],
}
"""Colors of marks."""
