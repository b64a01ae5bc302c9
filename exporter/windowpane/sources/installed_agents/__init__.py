"""Agents' programs on this machine: their settings, and the folders where they keep recordings."""
