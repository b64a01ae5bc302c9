"""Makes the servers of this folder importable, and the certificates of the endpoint's tests."""

from __future__ import annotations

import sys
from pathlib import Path

for folder in (Path(__file__).parent, Path(__file__).parents[1] / "http"):
    sys.path.insert(0, str(folder))

from endpoint import certificates  # noqa: E402  # found by the path above

__all__ = ["certificates"]
