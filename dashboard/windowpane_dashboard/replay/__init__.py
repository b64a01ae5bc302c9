"""Simulations in a separate process, started from the replay page."""
