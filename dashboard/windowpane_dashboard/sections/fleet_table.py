"""The style of the fleet's table: colors next to labels, estimates marked with ≈."""

from __future__ import annotations

from functools import partial
from typing import Final

import pandas as pd
from pandas.io.formats.style import Styler

from windowpane.core.vocabulary import ZONES, Severity, Zone
from windowpane.text.formats import UNKNOWN, dollars, percent, tokens_short
from windowpane.text.zones import zone_label
from windowpane_dashboard.queries.fleet import STYLING
from windowpane_dashboard.style.theme import Palette

_ESTIMATES: Final = (
    ("tokens", tokens_short, "estimated"),
    ("now", percent, "estimated"),
    ("cost", dollars, "estimated cost"),
)
"""Columns that may hold an estimate, their text, and the column with the rows that are estimates."""
_SEVERITY_ZONES: Final[dict[Severity, Zone]] = {"warning": "orange", "critical": "red"}
"""Alerts in the color of the zone of equal severity; notices in the color of the text."""


def fleet_styled(frame: pd.DataFrame, palette: Palette) -> Styler:
    """Return the table with zones and alerts in their colors, next to their labels and shapes.

    The columns of `STYLING` set the style of a row and are not shown.
    """
    zones = {zone_label(zone): palette.zone_text[zone] for zone in ZONES}
    style = frame.drop(columns=list(STYLING)).style
    for column, text, by in _ESTIMATES:
        for is_estimate in (False, True):
            rows = frame.index[frame[by] == is_estimate]
            style.format(partial(text, estimated=is_estimate), subset=(rows, column), na_rep=UNKNOWN)
    for severity, zone in _SEVERITY_ZONES.items():
        style.set_properties(
            subset=(frame.index[frame["firing"] == severity], "alerts"), color=palette.zone_text[zone]
        )
    return style.map(lambda label: f"color: {zones.get(label, palette.muted)}", subset=["zone", "worst"])
