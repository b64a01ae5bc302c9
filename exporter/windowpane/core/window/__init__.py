"""The window and its blocks."""
