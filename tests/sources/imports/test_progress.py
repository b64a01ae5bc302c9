"""The progress of an import, for the pages of a dashboard."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from windowpane.sources.imports.progress import ProgressFile, another_import, running_import


def test_the_progress_is_that_of_a_running_import(tmp_path: Path) -> None:
    store = tmp_path / "windowpane.db"
    with ProgressFile(store) as note:
        note.show(3, 12)
        progress = running_import(store)

        assert progress is not None
        assert (progress.done, progress.total, progress.share) == (3, 12, 0.25)
    assert running_import(store) is None
    assert not list(tmp_path.iterdir())


def test_the_progress_of_another_import_that_runs_stays(tmp_path: Path) -> None:
    other = f'{{"done": 1, "total": 2, "pid": {os.getppid()}}}'
    (tmp_path / "windowpane.db.import.json").write_text(other)
    with ProgressFile(tmp_path / "windowpane.db") as note:
        note.show(3, 12)

    assert another_import(tmp_path / "windowpane.db")
    assert (tmp_path / "windowpane.db.import.json").read_text() == other


@pytest.mark.parametrize(
    "text",
    ['{"done": 1, "total": 2, "pid": 4194999}', '{"done": "1"}', "", "[]", '{"done": 1, "total": 2, "pid": -1}'],
)
def test_what_no_running_import_wrote_is_no_progress(tmp_path: Path, text: str) -> None:
    (tmp_path / "windowpane.db.import.json").write_text(text)

    assert running_import(tmp_path / "windowpane.db") is None
