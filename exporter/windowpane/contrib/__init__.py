"""Contributed presets, with the vocabulary and limits of other systems."""
