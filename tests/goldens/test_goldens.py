"""The command line prints for known input what it printed before, to the byte.

After a change that is meant, `WINDOWPANE_UPDATE_GOLDENS=1 pytest tests/goldens` writes what is expected anew; the
difference is read whole before it is committed.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
EXPECTED = HERE / "expected"
TEXTS = ("help/*.txt", "rules/*", "demo/*.txt", "demo/schema.sql", "demo/heads.jsonl", "demo/reports/*.txt")
"""Kept whole, so that a difference can be read; of everything else only the digest is retained."""


def condensed(folder: Path) -> dict[str, str]:
    """The outputs that are retained whole by name, and one list of digests for the others."""
    whole = {path for pattern in TEXTS for path in folder.glob(pattern)}
    texts = {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in whole}
    others = sorted(path for path in folder.rglob("*") if path.is_file() and path not in whole)
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}\n" for path in others]
    return {**texts, "digests.txt": "".join(lines)}


def expected(folder: Path) -> dict[str, str]:
    """Return the committed outputs by name."""
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8")
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", ["demo", "recordings"])
def test_the_command_line_prints_what_it_printed_before(
    part: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    arguments = [] if part == "demo" else ["--recordings", str(request.getfixturevalue("sessions_dir"))]
    subprocess.run([sys.executable, HERE / "freeze.py", tmp_path / "now", *arguments], check=True, timeout=550)
    now = condensed(tmp_path / "now")
    folder = EXPECTED / part
    if os.environ.get("WINDOWPANE_UPDATE_GOLDENS"):
        for name, text in now.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")

    before = expected(folder)
    assert sorted(now) == sorted(before)
    for name in sorted(now):
        assert now[name].splitlines() == before[name].splitlines(), name
