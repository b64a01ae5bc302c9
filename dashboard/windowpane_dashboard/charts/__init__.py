"""Data frames to Plotly figures: pure functions, one picture a module, colours given by a palette."""

from __future__ import annotations

from windowpane_dashboard.charts.block_strip import window_strip
from windowpane_dashboard.charts.costs import cache_chart, carried_chart, cost_chart
from windowpane_dashboard.charts.facts import facts_bar
from windowpane_dashboard.charts.window_chart import session_picture

__all__ = ["cache_chart", "carried_chart", "cost_chart", "facts_bar", "session_picture", "window_strip"]
