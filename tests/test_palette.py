"""The visual language's colours: readable on either ground, and the same wherever they are shown."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from windowpane.core.vocabulary import COMPONENTS, FATES, ZONES
from windowpane.text import palette

DASHBOARD = Path(__file__).resolve().parents[1] / "dashboard" / "windowpane_dashboard"
GROUNDS = pytest.mark.parametrize("ground", [0, 1], ids=["light", "dark"])


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours, 1 to 21. Source: WCAG 2.2, relative luminance."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@GROUNDS
def test_words_can_be_read_and_marks_be_seen(ground: int) -> None:
    """Words reach 4.5:1 on their ground and marks 3:1; components fill areas with a legend."""
    words = [palette.INK, palette.QUIET, *palette.ZONE_TEXT_TONES.values()]
    marks = [
        palette.OUTLINE,
        palette.ACCENT,
        palette.EVENT,
        *palette.ZONE_TONES.values(),
        *palette.FACT_TONES.values(),
        *palette.SEVERITY_TONES.values(),
    ]

    assert all(contrast(tone[ground], palette.GROUND[ground]) >= 4.5 for tone in words)
    assert all(contrast(tone[ground], palette.GROUND[ground]) >= 3.0 for tone in marks)
    assert contrast(palette.GROUND[ground], palette.EVENT[ground]) >= 4.5, "the letter in a mark"


@GROUNDS
def test_no_two_meanings_share_a_colour(ground: int) -> None:
    """Within one picture every component, every zone and every fate of a fact has its own colour."""
    for tones, names in (
        (palette.COMPONENT_TONES, COMPONENTS),
        (palette.ZONE_TONES, ZONES),
        (palette.FACT_TONES, FATES),
    ):
        assert tuple(tones) == names
        assert len({tone[ground] for tone in tones.values()}) == len(names)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_dashboards_own_settings_agree(theme: str) -> None:
    """Streamlit's theme, which no code sets, is in the same colours."""
    settings = tomllib.loads((DASHBOARD / ".streamlit" / "config.toml").read_text())["theme"][theme]

    assert settings["backgroundColor"] == getattr(palette.GROUND, theme)
    assert settings["textColor"] == getattr(palette.INK, theme)
    assert settings["primaryColor"] == settings["linkColor"] == getattr(palette.ACCENT, theme)
    assert palette.ACCENT.light.lower() in (DASHBOARD / "style" / "theme.css").read_text()
