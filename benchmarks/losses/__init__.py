"""Measurements of what is found in damaged and undamaged summaries."""
