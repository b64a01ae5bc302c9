"""Fidelity suites: questions in a file, asked of what a compaction prompt or strategy makes of known texts."""
