"""Judged fidelity: a model answers questions about the original from the compressed text."""
