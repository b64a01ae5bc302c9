"""The types of the public face: a user's code passes strict type checkers without casts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
API = "tests/typing/api.py"


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_user_s_code_passes_mypy() -> None:
    """Managers, groups, listeners and clients are typed as a user would use them."""
    result = run("mypy", "--strict", API)

    assert result.returncode == 0, result.stdout


def test_a_user_s_code_passes_pyright() -> None:
    """An editor that checks with Pyright agrees."""
    pytest.importorskip("basedpyright")
    result = run("basedpyright", "--level", "error", "--pythonpath", sys.executable, API)

    assert result.returncode == 0, result.stdout
