"""Colors on colors."""

from __future__ import annotations

import pytest
from tests.text.test_palette import contrast

from windowpane_dashboard.charts.trends import line_colors
from windowpane_dashboard.style.theme import DARK, LIGHT, Palette

PALETTES = pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])


@PALETTES
def test_lines_are_seen_on_the_ground(palette: Palette) -> None:
    colors = line_colors(palette)

    assert all(contrast(color, palette.background) >= 3.0 for color in colors)
    assert len(set(colors)) == len(colors)
