"""Fixtures of the metric tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "metrics"))

from metric_fixtures import make_event, measured, scripted_state, value_of

__all__ = ["make_event", "measured", "scripted_state", "value_of"]
