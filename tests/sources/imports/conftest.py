"""Puts the builders that these tests share with those of the sources on the path."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "transcripts"))
