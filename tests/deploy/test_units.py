"""The units of systemd, verified by systemd itself."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "deploy" / "systemd"
UNITS = sorted(path.name for path in FOLDER.glob("*.service"))
PROGRAM = "/opt/windowpane/bin/windowpane"
MAXIMUM_EXPOSURE = 2.0
"""On systemd's scale from 0 to 10."""


@pytest.fixture
def analyze(tmp_path: Path):
    """Run systemd's checks on a unit whose program is that of this environment."""
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    for name in UNITS:
        text = (FOLDER / name).read_text(encoding="utf-8")
        assert PROGRAM in text
        here = str(Path(sys.executable).with_name("windowpane"))
        (tmp_path / name).write_text(text.replace(PROGRAM, here), encoding="utf-8")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([program, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)

    return run


@pytest.mark.parametrize("unit", UNITS)
def test_systemd_accepts_the_unit(analyze, unit: str) -> None:
    checked = analyze("verify", f"./{unit}")

    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize("unit", UNITS)
def test_the_unit_is_confined(analyze, unit: str) -> None:
    if "--offline" not in analyze("--help").stdout:
        pytest.skip("this systemd-analyze rates installed units only")
    checked = analyze("security", "--offline=true", f"--threshold={MAXIMUM_EXPOSURE * 10:.0f}", f"./{unit}")

    assert checked.returncode == 0, checked.stdout[-300:]
