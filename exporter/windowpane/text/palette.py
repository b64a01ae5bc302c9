"""The colours of the visual language, on a light and on a dark ground; the same meaning everywhere.

The dashboard, the report, the runbook and the Grafana dashboards all take them from here. Whatever is written in
one of these colours reaches a contrast of 4.5 to 1 on its ground, and whatever is drawn in one 3 to 1; the
components, which fill areas with a name beside them, may do with less.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from windowpane.core.vocabulary import Component, Fate, Severity, Zone


class Tone(NamedTuple):
    """A colour on a light and on a dark ground; hexadecimal RGB."""

    light: str
    dark: str


GROUND: Final = Tone("#FFFFFF", "#0E1117")
INK: Final = Tone("#1F2937", "#E6EAF0")
"""Words."""
QUIET: Final = Tone("#566070", "#9AA7B6")
"""Words beside the point, and whatever is as it should be."""
RULE: Final = Tone("#E6E9EE", "#232A35")
"""Lines that only divide."""
OUTLINE: Final = Tone("#6B7480", "#8B97A6")
"""The limit, and the hatching of what is kept free."""
ACCENT: Final = Tone("#2B6CB0", "#63A4E8")
EVENT: Final = Tone("#4A5668", "#AEB9C7")
"""Marks of events: quiet, because an event is not yet trouble."""

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
"""For marks and lines."""

ZONE_WORD_TONES: Final[dict[Zone, Tone]] = {
    **ZONE_TONES,
    "yellow": ZONE_TONES["yellow"]._replace(light="#866207"),
    "orange": ZONE_TONES["orange"]._replace(light="#A85508"),
}
"""The same for words, which need more contrast."""

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
"""For marks."""
