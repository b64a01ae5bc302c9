"""Numbers and texts from outside that are of the right type and of no possible value."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.campaigns.built_recordings import LANGSMITH

from windowpane.core.store_names import parse_store_name, store_file
from windowpane.effects.processes import is_running
from windowpane.exceptions import ConfigurationError
from windowpane.outputs.http.local_dashboard import local_dashboard
from windowpane.outputs.remote.connection import server_address
from windowpane.sources.imports.progress import ProgressFile
from windowpane.sources.telemetry.sdk_spans import _pair_seconds
from windowpane.sources.transcripts.discovery import all_readers, reader_for
from windowpane.sources.transcripts.reader import FileStats
from windowpane.sources.transcripts.records import SessionOpened

HUGE = 10**20


@pytest.mark.parametrize("pid", [-1, 0, 2**31, 2**63, HUGE])
def test_no_process_has_a_number_that_is_out_of_range(pid: int) -> None:
    assert not is_running(pid)
    assert is_running(os.getpid())


@pytest.mark.parametrize("pid", [2**31, HUGE])
def test_a_note_of_an_impossible_process_stops_no_import(tmp_path: Path, pid: int) -> None:
    with ProgressFile(tmp_path / "windowpane.db") as note:
        note.show(1, 2)
        (file,) = tmp_path.iterdir()
        file.write_text(json.dumps(json.loads(file.read_bytes()) | {"pid": pid}))
        assert note.read() is None
        note.show(2, 2)


def test_a_dashboard_of_an_impossible_process_does_not_run(tmp_path: Path) -> None:
    note = {"url": "http://127.0.0.1:1/", "pid": HUGE}
    (tmp_path / "windowpane.db.dashboard.json").write_text(json.dumps(note))

    assert local_dashboard(tmp_path / "windowpane.db") is None


@pytest.mark.parametrize("name", ["a\0b.db", "postgresql://u@h\0/db", "http://127.0.0.1\0:1/", "sqlite:///a\0b"])
def test_a_store_whose_name_contains_nul_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="NUL"):
        parse_store_name(name)
    with pytest.raises(ConfigurationError):
        store_file(name)


@pytest.mark.parametrize("url", ["http://127.0.0.1/\0", "https://a\0b/", "https://a/\x1b"])
def test_a_server_whose_address_contains_a_control_character_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="control character"):
        server_address(url)


@pytest.mark.parametrize("pair", [[1, 10**400], [10**400, 1], [1, -1], [-1, 1]])
def test_an_impossible_time_of_a_span_is_unknown(pair: list[int]) -> None:
    assert _pair_seconds(pair) is None
    assert _pair_seconds([1, 500_000_000]) == 1.5


@pytest.mark.parametrize("session", ["\0", "a\0b", "ghp_" + "a1B2c3D4e5" * 4])
def test_a_session_whose_id_is_stored_otherwise_is_read(tmp_path: Path, session: str) -> None:
    runs = json.loads(LANGSMITH)
    for run in runs:
        run["extra"]["metadata"]["thread_id"] = session
    path = tmp_path / "runs.json"
    path.write_text(json.dumps(runs))
    reader = reader_for(path, all_readers(complete=True))
    records = list(reader.read(path, stats=FileStats(), problems=[]))

    assert len({one.session_key for one in records if isinstance(one, SessionOpened)}) == 1
