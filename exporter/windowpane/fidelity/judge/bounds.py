"""Bounds of the judge's settings, which the configuration reads without loading the judge."""

from __future__ import annotations

from typing import Final

MAXIMUM_QUESTIONS: Final = 12
"""Questions about one compression."""
MINIMUM_REPLICATES: Final = 3
"""Times that each question is put to the model."""
CAPACITY: Final = 4
"""Compressions that wait at most; each holds the texts it is judged by."""
