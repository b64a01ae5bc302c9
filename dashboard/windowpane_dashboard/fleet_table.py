"""The fleet's table as it is shown: colours beside words, estimates with their sign."""

from __future__ import annotations

from functools import partial

import pandas as pd
from pandas.io.formats.style import Styler

from windowpane.formats import tokens_short
from windowpane.signs import zone_label
from windowpane.vocabulary import ZONES
from windowpane_dashboard.theme import Palette


def fleet_styled(frame: pd.DataFrame, palette: Palette) -> Styler:
    """The table with zones and alerts in their colours, beside their words and shapes."""
    zones = {zone_label(zone): palette.zone_text[zone] for zone in ZONES}
    estimated = frame.index[frame["estimated"]]
    exact = frame.index[~frame["estimated"]]
    style = frame.drop(columns="estimated").style
    for rows, sign in ((exact, ""), (estimated, "≈")):
        style.format(partial(_tokens, sign), subset=(rows, "tokens"), na_rep="–")
        style.format(partial(_share, sign), subset=(rows, "now"), na_rep="–")
    levels = {"warning": palette.zone_text["orange"], "critical": palette.zone_text["red"]}
    return style.map(lambda label: f"color: {zones.get(label, palette.muted)}", subset=["zone", "worst"]).map(
        lambda label: f"color: {levels.get(''.join(label.split(' ')[1:2]), palette.text)}", subset=["alerts"]
    )


def _tokens(sign: str, value: object) -> str:
    return sign + tokens_short(float(str(value)))


def _share(sign: str, value: object) -> str:
    return f"{sign}{float(str(value)):.0f}%"
