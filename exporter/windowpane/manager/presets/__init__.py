"""Presets: the protocol of a preset, and the engine's own cascade preset."""
