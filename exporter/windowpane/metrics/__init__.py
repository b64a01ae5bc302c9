"""Metrics: their catalog, the fold of events into values, and the Prometheus collector."""
