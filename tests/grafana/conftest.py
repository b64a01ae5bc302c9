"""Fixtures for tests of the Grafana folder: its path, and running a program on it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))  # for `lens`; importlib mode does not add the folder of a test

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def grafana() -> Path:
    """The folder with dashboards, rules and server configurations."""
    return ROOT / "grafana"


@pytest.fixture(scope="session")
def run(require_server) -> Run:
    """Run an installed program to its end and return its output."""

    def run_program(
        program: str, *arguments: str | Path, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        command = [str(require_server(program)), *(str(argument) for argument in arguments)]
        return subprocess.run(
            command, check=False, cwd=cwd, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL
        )

    return run_program
