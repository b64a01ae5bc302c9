"""Codex's rollouts: the reader, and the items of a response."""
