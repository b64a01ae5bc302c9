"""The outputs of a process, started for the tests of what it observes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import windowpane
from windowpane.outputs.runtime.start import Runtime


@contextmanager
def started(folder: Path) -> Iterator[Runtime]:
    """Start the outputs with a store in *folder* and no setting of this machine; they are stopped at the end."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith("WINDOWPANE_") and "TEST" not in name:
                patch.delenv(name)
        yield windowpane.start(port=0, store=folder / "windowpane.db", notify=[])
        windowpane.stop()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Runtime]:
    """The outputs of this process, with a new store."""
    with started(tmp_path) as runtime:
        yield runtime
