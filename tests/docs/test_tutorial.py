"""The tutorial followed: its commands run in their order, and print what it shows."""

from __future__ import annotations

import lzma
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sampling import EVERYTHING

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
RECORDING = ROOT / "exporter/windowpane/cli/demonstration/data/claude_code_compaction.jsonl.xz"
SERVES = ("windowpane dashboard",)
"""Commands that run until they are stopped; other tests start them."""
INSTALLS = ("python3 -m venv", ". windowpane-tutorial", "pip install")


@pytest.mark.skipif(not EVERYTHING, reason="imports and replays the demo; `make test-all` runs it")
def test_the_commands_run_in_their_order(tmp_path: Path) -> None:
    lines = "".join(re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL)).splitlines()
    script = "\n".join(line for line in lines if not line.startswith((*SERVES, *INSTALLS)))
    own = tmp_path / ".claude" / "projects" / "tutorial" / "198393f2-22db-477b-ac77-1825bea883ae.jsonl"
    own.parent.mkdir(parents=True)
    own.write_bytes(lzma.decompress(RECORDING.read_bytes()))
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "LANG": "C.UTF-8",
    }

    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    (table,) = re.findall(r"```text\n(.*?)```", PAGE, flags=re.DOTALL)
    for row in table.splitlines():
        assert " ".join(row.split()) in " ".join(done.stdout.split()), row
