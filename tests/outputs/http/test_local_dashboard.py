"""The address of a dashboard that runs on this machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from windowpane.outputs.http.local_dashboard import SUFFIX, announced, local_dashboard


def test_a_running_dashboard_is_found_while_it_runs(tmp_path: Path) -> None:
    store = tmp_path / "windowpane.db"

    with announced(store, "http://127.0.0.1:8501"):
        assert local_dashboard(store) == "http://127.0.0.1:8501"

    assert local_dashboard(store) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"\xff",
        json.dumps({"url": "https://elsewhere.example", "pid": 1}).encode(),
        json.dumps({"url": "http://127.0.0.1:8501", "pid": 2**22 + 1}).encode(),
        json.dumps({"url": "http://127.0.0.1:8501", "pid": -1}).encode(),
        json.dumps({"url": "http://127.0.0.1:8501", "pid": "1"}).encode(),
    ],
)
def test_a_file_that_names_no_running_dashboard_is_ignored(tmp_path: Path, content: bytes) -> None:
    (tmp_path / f"windowpane.db{SUFFIX}").write_bytes(content)

    assert local_dashboard(tmp_path / "windowpane.db") is None


def test_a_folder_that_cannot_be_written_stops_no_dashboard(tmp_path: Path) -> None:
    with announced(tmp_path / "gone" / "windowpane.db", "http://127.0.0.1:8501"):
        assert local_dashboard(tmp_path / "gone" / "windowpane.db") is None
