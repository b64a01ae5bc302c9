"""One session, reported: as text for a terminal, as JSON for scripts, as one HTML file to send to someone."""

from __future__ import annotations

from windowpane.report.document import to_json
from windowpane.report.gather import SessionReport, gather
from windowpane.report.html import to_html
from windowpane.report.text import to_text

__all__ = ["SessionReport", "gather", "to_html", "to_json", "to_text"]
