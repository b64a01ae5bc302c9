"""Python's search for cycles of objects, made rarer where nearly everything that is made is in use."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

NEW_OBJECTS: Final = 50_000
"""New objects after which cycles are looked for, instead of Python's 700."""


@contextmanager
def rare_collection() -> Iterator[None]:
    """Look for cycles rarely until the block ends, and not among what is loaded before it.

    For the main program of a process only: it applies to all threads.
    """
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
