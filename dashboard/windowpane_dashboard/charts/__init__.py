"""Plotly charts from data frames: pure functions, one chart per module, colors given by a palette."""
