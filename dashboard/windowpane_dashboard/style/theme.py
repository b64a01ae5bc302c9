"""The colours of one theme, from the visual language's palette; every chart takes them explicitly.

Plotly traces ignore Streamlit's theme, so a figure is built for one palette and rebuilt when the theme changes.
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
    """Colours of one theme; hexadecimal RGB."""

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
    """The same for words."""
    facts: dict[Fate, str]
    severities: dict[Severity, str]
    """For marks."""
    event: str
    """Event marks: quiet, because an event is not yet trouble."""
    on_event: str
    """The letter inside a mark."""


def _themed(name: ThemeName) -> Palette:
    def one(tone: Tone) -> str:
        return tone.light if name == "light" else tone.dark

    def each(named: Mapping[Key, Tone]) -> dict[Key, str]:
        return {key: one(tone) for key, tone in named.items()}

    return Palette(
        name=name,
        background=one(tones.GROUND),
        text=one(tones.INK),
        muted=one(tones.QUIET),
        grid=one(tones.RULE),
        outline=one(tones.OUTLINE),
        accent=one(tones.ACCENT),
        components=each(tones.COMPONENT_TONES),
        zones=each(tones.ZONE_TONES),
        zone_text=each(tones.ZONE_WORD_TONES),
        facts=each(tones.FACT_TONES),
        severities=each(tones.SEVERITY_TONES),
        event=one(tones.EVENT),
        on_event=one(tones.GROUND),
    )


LIGHT: Final = _themed("light")
DARK: Final = _themed("dark")


def palette(name: str | None) -> Palette:
    """The palette of a theme name; light where the name is not known yet."""
    return DARK if name == "dark" else LIGHT


def translucent(color: str, opacity: float) -> str:
    """The colour as CSS `rgba(…)`; *opacity* 0 to 1."""
    red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity:g})"
