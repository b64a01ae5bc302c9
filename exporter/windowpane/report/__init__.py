"""Reports on one session: text for a terminal, JSON for scripts, one self-contained HTML file."""

from __future__ import annotations

from windowpane.report.html import to_html
from windowpane.report.session_report import SessionReport, gather, to_json
from windowpane.report.text import to_text

__all__ = ["SessionReport", "gather", "to_html", "to_json", "to_text"]
