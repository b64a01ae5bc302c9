"""`windowpane replay` from a user's view."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from windowpane.cli import main
from windowpane.cli.options import EXIT_FAILED, EXIT_PARTIAL, EXIT_USAGE
from windowpane.store.embedded import SqliteReader

WriteLoop = Any


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "store" / "windowpane.db"
    monkeypatch.setenv("WINDOWPANE_STORE", str(path))
    monkeypatch.setenv("COLUMNS", "100")
    return path


def run(*arguments: str | Path, code: int = 0) -> Result:
    result = CliRunner().invoke(main, ["replay", *map(str, arguments), "--workers", "1"])
    assert result.exit_code == code, result.output
    return result


def test_a_file_is_compared_and_the_result_stored(write_loop: WriteLoop, database: Path) -> None:
    """One row per setup within 100 columns, and the replay is stored under the printed id."""
    source = write_loop(30)
    result = run(source.path, "--policy", "hybrid,fifo", "--window", "8k,32k", "--baselines", "--name", "try")
    rows = [line for line in result.output.splitlines() if " 8k " in line or " 32k " in line]
    reader = SqliteReader(database)
    (row,) = reader.replays()
    reader.close()

    assert len(rows) == 8
    assert all(len(line.rstrip()) <= 100 for line in result.output.splitlines() if " 8k " in line)
    assert f"stored as replay {row.id}" in result.output
    assert (row.name, row.runs) == ("try", 8)


def test_json_has_every_run_with_timeline_and_configuration(write_loop: WriteLoop, database: Path) -> None:
    document = json.loads(run(write_loop(12).path, "--window", "8k", "--json").output)

    (only,) = document["results"]
    assert only["measures"]["turns"] == len(only["timeline"]) == 13
    assert "max_context_tokens: 8192" in only["config"]


def test_a_stored_session_is_named_by_a_prefix_of_its_id(write_loop: WriteLoop, database: Path) -> None:
    path = write_loop(12).path
    assert CliRunner().invoke(main, ["import", str(path)]).exit_code == 0
    reader = SqliteReader(database)
    session_id = reader.sessions()[0].session_id
    reader.close()

    refused = run(session_id[:12], "--window", "8k", code=EXIT_FAILED)
    assert "it reads content, which was not captured" in refused.output
    partial = run(session_id, "--window", "8k", "--policy", "hybrid,fifo", code=EXIT_PARTIAL)
    assert "some sessions: content was not captured" in partial.output


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--policy", "none", "is unknown; expected one of"),
        ("--preset", "none", "is unknown; expected"),
        ("--window", "large", "is not a size; expected"),
        ("--threshold", "2", "is not a threshold; expected"),
        ("--keep", "0", "is not a number of groups"),
    ],
)
def test_invalid_options_are_rejected_by_name(
    write_loop: WriteLoop, database: Path, option: str, value: str, message: str
) -> None:
    source = write_loop(3)
    result = CliRunner().invoke(main, ["replay", str(source.path), option, value])

    assert result.exit_code == EXIT_USAGE
    assert message in result.output
    assert not database.exists()


def test_a_file_that_is_not_a_recording_does_not_stop_the_others(
    write_loop: WriteLoop, database: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "notes.jsonl"
    bad.write_text("not a recording")
    result = run(bad, write_loop(3).path, "--window", "8k", code=EXIT_PARTIAL)
    alone = run(bad, code=EXIT_FAILED)

    assert "1 session, stored as replay" in result.output
    assert f"not replayed: {bad}: neither JSON nor JSON Lines" in result.output
    assert f"Error: {bad}: neither JSON nor JSON Lines" in alone.output
