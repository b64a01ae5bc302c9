"""Recordings that the newest releases wrote against a scripted provider, with the totals that it reported."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from windowpane.cli import main
from windowpane.store.embedded import SqliteReader

NEWEST = Path(__file__).with_name("data") / "newest"
TOTALS = {
    "claude_code_2.1.332": [(12, 1_355_730, 1_354_482, 270, 2), (1, 7_990, 7_886, 10, 0)],
    "codex_0.169.0": [(8, 179_447, 137_290, 197, 1)],
    "gemini_cli_0.61.0": [(7, 131_006, 89_268, 176, 1), (2, 23_008, 11_457, 51, 0)],
    "qwen_code_0.24.4": [(6, 156_102, 114_246, 143, 0), (2, 31_534, 15_709, 53, 0)],
}
"""Calls, input, cache, output and compactions of each session, the largest first."""


@pytest.mark.parametrize("recording", TOTALS)
def test_every_call_is_counted_to_the_token(recording: str, tmp_path: Path) -> None:
    shutil.copytree(NEWEST / recording, tmp_path / "recording")
    for path in (tmp_path / "recording").rglob("*.jsonl"):
        os.utime(path, (1_000_000_000, 1_000_000_000))  # a file that was just written to may go on

    result = CliRunner().invoke(
        main,
        ["import", "--store", str(tmp_path / "store.db"), str(tmp_path / "recording")],
        catch_exceptions=False,
    )

    with closing(SqliteReader(tmp_path / "store.db")) as reader:
        rows = [
            (row.turns, row.input_tokens, row.cache_read_tokens, row.output_tokens, row.compressions)
            for row in reader.sessions()
        ]
    assert sorted(rows, reverse=True) == TOTALS[recording]
    assert "experimental" not in result.stderr
