"""Zones and fill levels as symbols; as light as the status line that draws them at every prompt."""

from __future__ import annotations

from windowpane.text.formats import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from windowpane.core.vocabulary import Zone

ZONE_SHAPES: Final[dict[Zone, str]] = {
    "green": "○",
    "yellow": "◐",
    "orange": "◕",
    "red": "●",
    "overflow": "✕",
}
"""A shape for each zone, so that color is never the only symbol."""

ASCII_ZONE_SHAPES: Final[dict[Zone, str]] = {
    "green": "o",
    "yellow": "-",
    "orange": "=",
    "red": "#",
    "overflow": "X",
}
"""Shapes for terminals without Unicode."""

GAUGE_CELLS: Final = 10


def zone_label(zone: Zone | None) -> str:
    """Return a zone with its shape: `◕ orange`; `–` when unknown."""
    return UNKNOWN if zone is None else f"{ZONE_SHAPES[zone]} {zone}"


def zone_mark(zone: Zone | None, *, unicode: bool = True) -> str:
    """Return a zone with its shape, in ASCII for a terminal without Unicode: `= orange`."""
    return zone_label(zone) if unicode or zone is None else f"{ASCII_ZONE_SHAPES[zone]} {zone}"


def gauge(ratio: float | None) -> str:
    """Return a bar filled to *ratio*: `[#######...]`."""
    if ratio is None:
        return f"[{'?' * GAUGE_CELLS}]"
    filled = min(GAUGE_CELLS, max(0, round(ratio * GAUGE_CELLS)))
    return f"[{'#' * filled}{'.' * (GAUGE_CELLS - filled)}]"
