"""The campaign harness: how much a fault is tried, and the record that becomes the reliability table.

`make test` runs each campaign as a bounded sample. `make campaign` runs the long form and writes
benchmarks/RELIABILITY.md from what the campaigns recorded.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # importlib mode does not add the folder of a test

LONG_VARIABLE = "WINDOWPANE_CAMPAIGN"
RECORD_VARIABLE = "WINDOWPANE_CAMPAIGN_RECORD"


@dataclass(frozen=True)
class Campaign:
    """One run of the fault campaigns: sampled, or whole with every attempt recorded."""

    whole: bool
    record_path: Path | None

    def attempts(self, *, sample: int, whole: int) -> int:
        """Return how often to try a fault in this run."""
        return whole if self.whole else sample

    def record(
        self,
        fault: str,
        *,
        tried: int,
        held: int,
        lost: int = 0,
        hook_ms: float | None = None,
        hook_ms_without: float | None = None,
        note: str = "",
    ) -> None:
        """Record one row of the reliability table.

        *tried* and *held* count attempts, *lost* acknowledged events that were not found again. *hook_ms* is the
        longest call of an agent's hook during the fault, *hook_ms_without* the same without the fault.
        """
        if self.record_path is None:
            return
        row = {
            "fault": fault, "tried": tried, "held": held, "lost": lost,
            "hook_ms": hook_ms, "hook_ms_without": hook_ms_without, "note": note,
        }  # fmt: skip
        with self.record_path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


@pytest.fixture(scope="session")
def campaign() -> Campaign:
    """This run's campaign: a sample unless `make campaign` asks for the whole."""
    path = os.environ.get(RECORD_VARIABLE)
    return Campaign(bool(os.environ.get(LONG_VARIABLE)), Path(path) if path else None)
