"""Fixtures for tests of a process's outputs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "otlp"))

from otlp_receiver import receiver

from windowpane.outputs.runtime.start import Runtime, start, stop

__all__ = ["receiver", "start_outputs"]


@pytest.fixture
def start_outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Runtime]]:
    """Start the outputs on a free port with a store in *tmp_path*; they are stopped after the test."""
    for name in list(os.environ):
        if name.startswith(("WINDOWPANE_", "OTEL_")) and name != "WINDOWPANE_SESSIONS_DIR" and "TEST" not in name:
            monkeypatch.delenv(name)

    def go(**options: Any) -> Runtime:
        return start(**({"port": 0, "store": tmp_path / "windowpane.db", "notify": []} | options))

    yield go
    stop()
