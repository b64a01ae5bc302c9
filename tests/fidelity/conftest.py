"""Puts the builders of these tests, and those that they share with the manager, on the path."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "manager"))
sys.path.insert(0, str(Path(__file__).parent))
