"""Makes the recorded requests of `tests/sources/telemetry` importable, and loads the tokenizers first.

Until a vocabulary is loaded, in the background, counts are estimates.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from windowpane.models.tokens import counter_for

for folder in (Path(__file__).parent, Path(__file__).parents[1] / "telemetry"):
    sys.path.insert(0, str(folder))


@pytest.fixture(scope="session", autouse=True)
def vocabularies() -> None:
    for model in ("gpt-4o-2024-08-06", "claude-sonnet-4-5-20250929", "gemini-2.5-pro"):
        counter_for(model, wait=True)
