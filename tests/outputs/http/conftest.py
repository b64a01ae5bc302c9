"""Fixtures for tests of the endpoint and of the store's exporter."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "metrics"))

from endpoint import certificates, registry, server, start
from metric_fixtures import make_event, scripted_state, value_of

__all__ = ["certificates", "make_event", "registry", "scripted_state", "server", "start", "value_of"]
