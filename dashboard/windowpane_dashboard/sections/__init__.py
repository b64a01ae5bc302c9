"""The parts of the session page, from top to bottom."""
