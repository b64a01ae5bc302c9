"""The example agent loop runs as it is printed in the documentation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "agent_loop.py"


@pytest.mark.parametrize(
    ("options", "printed"),
    [
        (["--limit", "12000"], "evicted"),
        (["--limit", "12000", "--files", "20"], "the model reads"),
        (["--limit", "32000", "--provider-limit", "9000"], "refused as too large"),
    ],
)
def test_the_example_loop_runs_and_is_managed(options: list[str], printed: str, tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path), "WINDOWPANE_STORE": str(tmp_path / "w.db")}
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), "--files", "25", *options],
        capture_output=True, text=True, timeout=120, env=environment, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert printed in done.stdout
    assert "Context window:" in done.stdout.splitlines()[-1]
    assert "Traceback" not in done.stderr
