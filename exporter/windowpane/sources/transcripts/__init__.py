"""Recorded sessions of other tools, read into events."""
