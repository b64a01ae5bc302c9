"""Watches agents that manage their windows themselves: what they send, diffed into facts."""
