"""The style of the fleet's table: the window as a bar in the color of its zone, estimates marked with ≈."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Final

import pandas as pd
from pandas.io.formats.style import Styler

from windowpane.core.vocabulary import ZONES, Severity, Zone
from windowpane.text.formats import UNKNOWN, dollars, percent
from windowpane.text.zones import ZONE_SHAPES
from windowpane_dashboard.queries.fleet import STYLING
from windowpane_dashboard.style.theme import Palette

BAR_CELLS: Final = 8
_SEVERITY_ZONES: Final[dict[Severity, Zone]] = {"warning": "orange", "critical": "red"}
"""Alerts in the color of the zone of equal severity; notices in the color of the text."""


def fleet_styled(frame: pd.DataFrame, palette: Palette, *, cells: int = BAR_CELLS) -> Styler:
    """Return the table with windows and alerts in their colors.

    The columns of `STYLING` set the style of a row and are not shown.
    """
    style = frame.drop(columns=list(STYLING)).style
    for zone in ZONES:
        in_zone = frame["zone"] == zone
        style.set_properties(subset=(frame.index[in_zone], "window"), color=palette.zone_text[zone])
        for is_estimate in (False, True):
            bar = partial(window_bar, zone=zone, estimated=is_estimate, cells=cells)
            style.format(bar, subset=(frame.index[in_zone & (frame["estimated"] == is_estimate)], "window"))
    style.format(lambda _: UNKNOWN, subset=(frame.index[frame["zone"].isna()], "window"))
    losses = dict(zip(frame["lost"], frame["losses"], strict=True))
    style.format(lambda rank: losses[rank], subset=["lost"], na_rep=UNKNOWN)
    for estimated, stated in product((False, True), repeat=2):
        rows = frame.index[(frame["estimated cost"] == estimated) & (frame["stated cost"] == stated)]
        style.format(partial(dollars, estimated=estimated, stated=stated), subset=(rows, "cost"), na_rep=UNKNOWN)
    for severity, zone in _SEVERITY_ZONES.items():
        style.set_properties(
            subset=(frame.index[frame["firing"] == severity], "alerts"), color=palette.zone_text[zone]
        )
    return style


def window_bar(utilization: float, *, zone: Zone, estimated: bool, cells: int = BAR_CELLS) -> str:
    """Return how full a window is, as a bar of *cells* with the shape of its zone: `◕ ██████░░ 74%`."""
    filled = round(cells * min(1.0, utilization))
    bar = "█" * filled + "░" * (cells - filled)
    return " ".join(filter(None, (ZONE_SHAPES[zone], bar, percent(utilization, estimated=estimated))))
