"""The colors of the light and the dark theme, which every chart takes explicitly.

Plotly traces ignore Streamlit's theme, so a chart is built for one palette and rebuilt when the theme changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from windowpane.core.vocabulary import Component, Fate, Severity, Zone
from windowpane.text import palette as tones
from windowpane.text.palette import Tone

Key = TypeVar("Key")
ThemeName = Literal["light", "dark"]

FONT: Final = "Source Sans, Source Sans Pro, DejaVu Sans, sans-serif"


@dataclass(frozen=True, slots=True)
class Palette:
    """Colors of one theme; hexadecimal RGB."""

    name: ThemeName
    background: str
    text: str
    muted: str
    """Secondary text."""
    grid: str
    outline: str
    """Limit line and hatching."""
    accent: str
    components: dict[Component, str]
    zones: dict[Zone, str]
    """For marks and lines."""
    zone_text: dict[Zone, str]
    """The same for text."""
    facts: dict[Fate, str]
    severities: dict[Severity, str]
    """For marks."""
    event: str
    """Event marks; muted, because an event is not yet a problem."""


def _themed(name: ThemeName) -> Palette:
    def pick(tone: Tone) -> str:
        return tone.light if name == "light" else tone.dark

    def pick_all(by_key: Mapping[Key, Tone]) -> dict[Key, str]:
        return {key: pick(tone) for key, tone in by_key.items()}

    return Palette(
        name=name,
        background=pick(tones.GROUND),
        text=pick(tones.INK),
        muted=pick(tones.QUIET),
        grid=pick(tones.RULE),
        outline=pick(tones.OUTLINE),
        accent=pick(tones.ACCENT),
        components=pick_all(tones.COMPONENT_TONES),
        zones=pick_all(tones.ZONE_TONES),
        zone_text=pick_all(tones.ZONE_TEXT_TONES),
        facts=pick_all(tones.FACT_TONES),
        severities=pick_all(tones.SEVERITY_TONES),
        event=pick(tones.EVENT),
    )


LIGHT: Final = _themed("light")
DARK: Final = _themed("dark")


def palette(name: str | None) -> Palette:
    """Return the palette of a theme; light where the name is unknown."""
    return DARK if name == "dark" else LIGHT


def translucent(color: str, opacity: float) -> str:
    """Return the color as CSS `rgba(…)`; *opacity* 0 to 1."""
    red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity:g})"
