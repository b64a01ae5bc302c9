"""Fixtures for tests of OTLP: a receiver on loopback and the sessions of the metric tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "metrics"))

from metric_fixtures import make_event, measured, scripted_state, value_of
from otlp_receiver import receiver

__all__ = ["make_event", "measured", "receiver", "scripted_state", "value_of"]
