"""Of what is tested in many ways `make test` takes a few, `make test-all` every one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

EVERYTHING = bool(os.environ.get("WINDOWPANE_TEST_ALL") or os.environ.get("WINDOWPANE_CAMPAIGN"))


def sampled(cases: Sequence[T], few: int) -> Sequence[T]:
    """Return *few* of the cases, evenly spread from the first on; every one where everything is tested."""
    if EVERYTHING or few >= len(cases):
        return cases
    return [cases[number * len(cases) // few] for number in range(few)]
