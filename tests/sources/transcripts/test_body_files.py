"""Files that telemetry names: only those of bodies are read, whatever a sender names."""

from __future__ import annotations

from pathlib import Path

import pytest

from windowpane.sources.transcripts.formats.exchanges import body_files
from windowpane.sources.transcripts.formats.exchanges.body_files import read_body_file


def test_a_file_of_a_body_is_read(tmp_path: Path) -> None:
    path = tmp_path / "1.request.json"
    path.write_text("{}")

    assert read_body_file(str(path)) == "{}"


def test_other_files_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "passwd").write_text("root")
    (tmp_path / "2.response.json").write_text("{  }")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(body_files, "MAXIMUM_FILE_BYTES", 3)

    names = (str(tmp_path / "passwd"), "2.response.json", str(tmp_path / "2.response.json"),
             str(tmp_path / "none.request.json"), "/\0.request.json")  # fmt: skip
    assert [read_body_file(name) for name in names] == [None] * 5
