"""Reports on one session or turn: text for a terminal, JSON for scripts, one self-contained HTML file."""

from __future__ import annotations

from windowpane.report.html import to_html
from windowpane.report.session_report import SessionReport, gather
from windowpane.report.text import to_text
from windowpane.report.turn_report import TurnReport, gather_turn, turn_to_html, turn_to_text

__all__ = [
    "SessionReport",
    "TurnReport",
    "gather",
    "gather_turn",
    "to_html",
    "to_text",
    "turn_to_html",
    "turn_to_text",
]
