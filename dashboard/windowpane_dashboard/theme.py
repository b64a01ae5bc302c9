"""The colours of the visual language, in light and in dark; every chart takes them explicitly.

Plotly traces ignore Streamlit's theme, so a figure is built for one palette and rebuilt when the theme changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from windowpane.vocabulary import Component, Severity, Zone

ThemeName = Literal["light", "dark"]

FONT: Final = "Source Sans, Source Sans Pro, DejaVu Sans, sans-serif"


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours of one theme; hexadecimal RGB."""

    name: ThemeName
    background: str
    text: str
    muted: str
    """Secondary text; at least 4.5:1 on the background."""
    grid: str
    outline: str
    """Limit line and hatching; at least 3:1 on the background."""
    accent: str
    components: dict[Component, str]
    zones: dict[Zone, str]
    """For marks and lines; at least 3:1 on the background."""
    zone_text: dict[Zone, str]
    """The same for words; at least 4.5:1."""
    facts: dict[str, str]
    severities: dict[Severity, str]
    """For marks."""
    event: str
    """Event marks: quiet, because an event is not yet trouble."""
    on_event: str
    """The letter inside a mark."""


LIGHT: Final = Palette(
    name="light",
    background="#FFFFFF",
    text="#1F2937",
    muted="#566070",
    grid="#E6E9EE",
    outline="#6B7480",
    accent="#2B6CB0",
    components={
        "system_prompt": "#44546A",
        "tool_definitions": "#7C8DA6",
        "message_history": "#2B6CB0",
        "tool_results": "#0F8B8D",
        "memory_injection": "#7E57C2",
        "unattributed": "#A9AFB8",
    },
    zones={
        "green": "#566070",
        "yellow": "#B8860B",
        "orange": "#D9730D",
        "red": "#C62828",
        "overflow": "#7B0F0F",
    },
    zone_text={
        "green": "#566070",
        "yellow": "#866207",
        "orange": "#A85508",
        "red": "#C62828",
        "overflow": "#7B0F0F",
    },
    facts={"kept": "#2E7D32", "recoverable": "#5F6B7A", "lost": "#C62828", "contradicted": "#8E24AA"},
    severities={"info": "#566070", "warning": "#D9730D", "critical": "#C62828"},
    event="#4A5668",
    on_event="#FFFFFF",
)

DARK: Final = Palette(
    name="dark",
    background="#0E1117",
    text="#E6EAF0",
    muted="#9AA7B6",
    grid="#232A35",
    outline="#8B97A6",
    accent="#63A4E8",
    components={
        "system_prompt": "#8FA3BF",
        "tool_definitions": "#66788F",
        "message_history": "#63A4E8",
        "tool_results": "#3CC4C0",
        "memory_injection": "#A98BE0",
        "unattributed": "#6B7280",
    },
    zones={
        "green": "#9AA7B6",
        "yellow": "#E3B341",
        "orange": "#F0883E",
        "red": "#F85149",
        "overflow": "#FF7B93",
    },
    zone_text={
        "green": "#9AA7B6",
        "yellow": "#E3B341",
        "orange": "#F0883E",
        "red": "#F85149",
        "overflow": "#FF7B93",
    },
    facts={"kept": "#56D364", "recoverable": "#9AA7B6", "lost": "#F85149", "contradicted": "#C77DFF"},
    severities={"info": "#9AA7B6", "warning": "#F0883E", "critical": "#F85149"},
    event="#AEB9C7",
    on_event="#0E1117",
)


def palette(name: str | None) -> Palette:
    """The palette of a theme name; light where the name is not known yet."""
    return DARK if name == "dark" else LIGHT


def translucent(colour: str, opacity: float) -> str:
    """The colour as CSS `rgba(…)`; *opacity* 0 to 1."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity:g})"


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours, 1 to 21. Source: WCAG 2.2, relative luminance."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
