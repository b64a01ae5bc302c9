"""The fleet's table as it is shown: colours beside words, estimates with their sign."""

from __future__ import annotations

from functools import partial
from typing import Final

import pandas as pd
from pandas.io.formats.style import Styler

from windowpane.core.vocabulary import ZONES, Severity, Zone
from windowpane.text.formats import tokens_short
from windowpane.text.labels import zone_label
from windowpane_dashboard.style.theme import Palette

_SEVERITY_ZONES: Final[dict[Severity, Zone]] = {"warning": "orange", "critical": "red"}
"""Alerts in the colour of the zone that is as bad; notices in that of the text."""


def fleet_styled(frame: pd.DataFrame, palette: Palette) -> Styler:
    """The table with zones and alerts in their colours, beside their words and shapes.

    `estimated` and `firing` say how a row looks, and are no columns of it.
    """
    zones = {zone_label(zone): palette.zone_text[zone] for zone in ZONES}
    estimated = frame.index[frame["estimated"]]
    exact = frame.index[~frame["estimated"]]
    style = frame.drop(columns=["estimated", "firing"]).style
    for rows, sign in ((exact, ""), (estimated, "≈")):
        style.format(partial(_tokens, sign), subset=(rows, "tokens"), na_rep="–")
        style.format(partial(_share, sign), subset=(rows, "now"), na_rep="–")
    for severity, zone in _SEVERITY_ZONES.items():
        style.set_properties(
            subset=(frame.index[frame["firing"] == severity], "alerts"), color=palette.zone_text[zone]
        )
    return style.map(lambda label: f"color: {zones.get(label, palette.muted)}", subset=["zone", "worst"])


def _tokens(sign: str, value: object) -> str:
    return sign + tokens_short(float(str(value)))


def _share(sign: str, value: object) -> str:
    return f"{sign}{float(str(value)):.0f}%"
