"""A command run in this process, against a store of the test's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from windowpane.cli import main


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Path of the store of the commands; the first one creates it."""
    return tmp_path / "store" / "windowpane.db"


@pytest.fixture
def run(store: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run a command and hold it to its exit code, 0 by default."""
    monkeypatch.setenv("WINDOWPANE_STORE", str(store))

    def invoke(*arguments: str | Path, code: int = 0) -> Result:
        result = CliRunner().invoke(main, [str(argument) for argument in arguments])
        assert result.exit_code == code, result.output
        return result

    return invoke
