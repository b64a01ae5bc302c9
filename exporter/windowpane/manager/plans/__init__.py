"""Eviction: scorers and the engine that plans."""
