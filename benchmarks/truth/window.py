"""The section on the window: its size, forecasts of levels, and warnings before compactions."""

from __future__ import annotations

from collections.abc import Sequence

from truth.compactions_ahead import warning_lines, window_lines
from truth.forecast import forecast_lines
from truth.passages import courses
from truth.recordings import Session


def window_section(sessions: Sequence[Session]) -> list[str]:
    """Return the lines of the section."""
    known = courses(sessions)
    return [
        "### Size of the window",
        "",
        *window_lines(known),
        "### Warned in time",
        "",
        *warning_lines(known),
        *forecast_lines(known),
    ]
