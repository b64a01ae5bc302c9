"""Sections of TRUTH.md: derived values of the product compared with what the recordings show."""
