"""All that a worker loads: imported once, by the process of which the workers are copies; see `workers`."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from windowpane.core.redaction import redactor  # noqa: F401
from windowpane.fidelity import probe  # noqa: F401
from windowpane.models.catalog import load_packaged_data
from windowpane.models.tokens import o200k
from windowpane.sources.imports import worker  # noqa: F401
from windowpane.store import embedded  # noqa: F401
from windowpane.store.writes import session_import  # noqa: F401

NICENESS: Final = 5
"""The pages of a dashboard, and the agents that run, take precedence over what they have recorded."""
MAXIMUM_WAITS: Final = 5_000
"""Milliseconds for toktok's thread, which ends soon after the loading: its lock would never be free in a copy."""

os.nice(NICENESS)
load_packaged_data()
o200k().start(for_bulk=True)
o200k().wait()  # a vocabulary that cannot be loaded is reported by the worker that needs it
with suppress(OSError):
    for _ in range(MAXIMUM_WAITS):
        if len(list(Path("/proc/self/task").iterdir())) == 1:
            break
        time.sleep(0.001)
