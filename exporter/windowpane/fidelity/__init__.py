"""Fidelity of compressions: facts, the probe without a model, the judge with one, and suites."""
