"""The palette: readable on both backgrounds, and the same in the dashboard."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from windowpane.core.vocabulary import COMPONENTS, FATES, ZONES
from windowpane.text import palette

DASHBOARD = Path(__file__).resolve().parents[2] / "dashboard" / "windowpane_dashboard"
GROUNDS = pytest.mark.parametrize("ground", [0, 1], ids=["light", "dark"])


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colors, 1 to 21. Source: WCAG 2.2, relative luminance."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(color: str) -> float:
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@GROUNDS
def test_text_and_marks_have_enough_contrast(ground: int) -> None:
    words = [palette.INK, palette.QUIET, *palette.ZONE_TEXT_TONES.values()]
    marks = [
        palette.OUTLINE,
        palette.ACCENT,
        palette.EVENT,
        *palette.ZONE_TONES.values(),
        *palette.FACT_TONES.values(),
        *palette.SEVERITY_TONES.values(),
        *(tone for name, tone in palette.COMPONENT_TONES.items() if name != "unattributed"),
    ]

    assert all(contrast(tone[ground], palette.GROUND[ground]) >= 4.5 for tone in words)
    assert all(contrast(tone[ground], palette.GROUND[ground]) >= 3.0 for tone in marks)


@GROUNDS
def test_no_two_meanings_share_a_color(ground: int) -> None:
    for tones, names in (
        (palette.COMPONENT_TONES, COMPONENTS),
        (palette.ZONE_TONES, ZONES),
        (palette.FACT_TONES, FATES),
    ):
        assert tuple(tones) == names
        assert len({tone[ground] for tone in tones.values()}) == len(names)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_theme_of_the_dashboard_has_the_same_colors(theme: str) -> None:
    settings = tomllib.loads((DASHBOARD / ".streamlit" / "config.toml").read_text())["theme"][theme]

    assert settings["backgroundColor"] == getattr(palette.GROUND, theme)
    assert settings["textColor"] == getattr(palette.INK, theme)
    assert settings["primaryColor"] == settings["linkColor"] == getattr(palette.ACCENT, theme)
    assert palette.ACCENT.light.lower() in (DASHBOARD / "style" / "theme.css").read_text()
