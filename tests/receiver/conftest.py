"""Makes the recorded requests of `tests/telemetry` importable."""

from __future__ import annotations

import sys
from pathlib import Path

for folder in (Path(__file__).parent, Path(__file__).parents[1] / "telemetry"):
    sys.path.insert(0, str(folder))
