"""The example agent loop runs as it is printed in the documentation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "agent_loop.py"


def test_the_example_loop_runs_and_is_managed(tmp_path: Path) -> None:
    """In a small window the loop ends, and prints which content was evicted."""
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path), "WINDOWPANE_STORE": str(tmp_path / "w.db")}
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), "--files", "25", "--limit", "12000"],
        capture_output=True, text=True, timeout=120, env=environment, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert "evicted" in done.stdout
    assert "Context window:" in done.stdout.splitlines()[-1]
    assert "Traceback" not in done.stderr
