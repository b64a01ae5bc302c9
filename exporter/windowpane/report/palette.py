"""The colours of the visual language, light and dark; the same meaning everywhere."""

from __future__ import annotations

from typing import Final, NamedTuple

from windowpane.vocabulary import Component, Zone


class Tone(NamedTuple):
    """A colour on a light and on a dark ground."""

    light: str
    dark: str


COMPONENT_TONES: Final[dict[Component, Tone]] = {
    "system_prompt": Tone("#44546A", "#8FA3BF"),
    "tool_definitions": Tone("#7C8DA6", "#66788F"),
    "message_history": Tone("#2B6CB0", "#63A4E8"),
    "tool_results": Tone("#0F8B8D", "#3CC4C0"),
    "memory_injection": Tone("#7E57C2", "#A98BE0"),
    "unattributed": Tone("#A9AFB8", "#6B7280"),
}

ZONE_TONES: Final[dict[Zone, Tone]] = {
    "green": Tone("#5F6B7A", "#9AA7B6"),
    "yellow": Tone("#B8860B", "#E3B341"),
    "orange": Tone("#D9730D", "#F0883E"),
    "red": Tone("#C62828", "#F85149"),
    "overflow": Tone("#7B0F0F", "#FF7B93"),
}
