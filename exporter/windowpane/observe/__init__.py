"""Passive observation of agents that manage their own context."""
