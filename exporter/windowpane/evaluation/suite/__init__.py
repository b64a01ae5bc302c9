"""Fidelity suites: texts with questions, compressed and judged, as an acceptance check for CI."""
