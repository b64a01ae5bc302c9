"""Importing the same again: without a change nothing is loaded to find that out, and every change is found."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import Result

from windowpane.cli import import_

Run = Callable[..., Result]

HEADER = '{"type": "session", "id": "%s", "cwd": "/", "timestamp": "2026-01-01T00:00:00Z"}\n'
ENTRY = '{"type": "message", "id": "e%d", "message": {"role": "user", "content": "request %d"}}\n'
LONG_AGO = 1_000_000_000
TASK = Path(".cline/data/tasks/1700000000000")
GOOSE = Path(".local/share/goose/sessions/sessions.db")
GOOSE_TABLES = """
CREATE TABLE schema_version (version INTEGER PRIMARY KEY);
CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, working_dir TEXT, session_type TEXT, created_at TIMESTAMP,
                       updated_at TIMESTAMP, model_config_json TEXT, parent_session_id TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content_json TEXT,
                       created_timestamp INTEGER, metadata_json TEXT);
INSERT INTO sessions (id, name, working_dir) VALUES ('g1', 'Fix it', '/work');
INSERT INTO messages VALUES (1, 'g1', 'user', '[{"type": "text", "text": "go"}]', 1770000000000, '{}');
"""
UNUSED = ("windowpane.sources.transcripts.discovery", "windowpane.store.store", "windowpane.config.schema")


def write(path: Path, text: str, *, at: int = LONG_AGO) -> Path:
    """Write a file that was finished long ago, in a folder that has not changed since."""
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(text)
    os.utime(path, (at, at))
    os.utime(path.parent, (at, at))
    return path


def session(number: int, entries: int = 3) -> str:
    return HEADER % f"s{number}" + "".join(ENTRY % (entry, entry) for entry in range(entries))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "sessions"
    write(folder / "below" / "other.json", "[]")
    for number in range(3):
        write(folder / f"s{number}.jsonl", session(number))
    return folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home folder in which three agents keep a file, a folder and a database of recordings."""
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    for variable in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "CLINE_DIR", "GOOSE_PATH_ROOT"):
        monkeypatch.delenv(variable, raising=False)
    write(home / ".pi" / "agent" / "sessions" / "s9.jsonl", session(9))
    write(home / TASK / "ui_messages.json", "[]")
    write(home / TASK / "api_conversation_history.json", '[{"role": "user", "content": "go"}]')
    database = write(home / GOOSE, "")
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(GOOSE_TABLES)
        connection.execute("PRAGMA journal_mode=wal")
    for path in (database, *database.parents[: len(GOOSE.parts)], *(home / TASK).parents[: len(TASK.parts)]):
        os.utime(path, (LONG_AGO, LONG_AGO))
    return home


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return the imports that looked at the files."""
    original, calls = import_.import_recordings, []

    def counted(*arguments: object, **options: object) -> object:
        calls.append(arguments)
        return original(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(import_, "import_recordings", counted)
    return calls


@pytest.fixture
def is_read_again(run: Run, folder: Path, calls: list[object]) -> Callable[..., bool]:
    """Import the folder; the fixture's value does so again, and returns whether the files were looked at."""
    run("import", folder)
    run("import", folder)  # the reports of files that are not in the store are those of unchanged ones

    def again(*options: str) -> bool:
        calls.clear()
        run("import", folder, *options)
        return bool(calls)

    return again


def test_an_import_without_a_change_reports_the_same(
    run: Run, folder: Path, is_read_again: Callable[..., bool]
) -> None:
    printed = [run("import", folder).output for _ in range(2)]
    documents = [run("import", folder, "--json").output for _ in range(2)]

    assert not is_read_again()
    assert printed[0] == printed[1]
    assert "3 sessions, 0 new events" in printed[0]
    assert "skipped: JSON of no known format" in printed[0]
    assert documents[0] == documents[1]


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("is_given", [True, False], ids=["folder", "default folders"])
def test_neither_readers_nor_settings_are_loaded_for_it(
    run: Run, folder: Path, store: Path, *, is_given: bool
) -> None:
    paths = [str(folder)] if is_given else []
    run("import", *paths)
    code = f"""
import sys
from windowpane.cli import main
try:
    main(["import", *{paths!r}])
except SystemExit as end:
    assert end.code == 0, end.code
print([name for name in {UNUSED!r} if name in sys.modules])
"""
    again = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, encoding="utf-8", env={**os.environ, "WINDOWPANE_STORE": str(store)}, check=True,
    )  # fmt: skip

    assert "0 new events" in again.stdout
    assert again.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: write(folder / "s1.jsonl", session(1, 4), at=LONG_AGO + 1),
        lambda folder: write(folder / "s1.jsonl", session(1).replace("request 0", "request 9"), at=LONG_AGO + 1),
        lambda folder: (folder / "s3.jsonl").write_text(session(3)),
        lambda folder: (folder / "deeper").mkdir(),
        lambda folder: (folder / "below" / "s4.jsonl").write_text(session(4)),
        lambda folder: (folder / "s2.jsonl").unlink(),
        lambda folder: (folder / "s2.jsonl").rename(folder / "s5.jsonl"),
    ],
    ids=["grown", "edited", "new file", "new folder", "new file below", "removed", "renamed"],
)
def test_every_change_of_the_files_is_found(
    folder: Path, is_read_again: Callable[..., bool], change: Callable[[Path], object]
) -> None:
    assert not is_read_again()
    change(folder)

    assert is_read_again()


def test_other_settings_and_a_store_without_a_session_are_read_again(
    folder: Path, store: Path, is_read_again: Callable[..., bool], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert is_read_again("--limit", "1000")
    assert not is_read_again("--limit", "1000")
    config = tmp_path / "windowpane.yml"
    monkeypatch.setenv("WINDOWPANE_CONFIG", str(config))
    for content in ("project: one\n", "project: two\n"):
        config.write_text(content)
        assert is_read_again()
    monkeypatch.delenv("WINDOWPANE_CONFIG")
    assert not is_read_again()
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("DELETE FROM sessions WHERE session_id LIKE '%s1'")

    assert is_read_again()


def test_what_metadata_does_not_show_is_always_looked_at(
    run: Run, folder: Path, is_read_again: Callable[..., bool]
) -> None:
    assert not is_read_again()
    (folder / "link.jsonl").symlink_to(folder / "s0.jsonl")
    os.utime(folder, (LONG_AGO + 1, LONG_AGO + 1))
    run("import", folder)
    assert is_read_again()
    (folder / "link.jsonl").unlink()
    run("import", folder)

    assert is_read_again()


def test_the_folder_of_another_tool_is_found(run: Run, home: Path, calls: list[object]) -> None:
    for _ in range(2):
        assert "3 sessions," in run("import").output
    assert len(calls) == 1
    write(home / ".openclaw" / "agents" / "main" / "sessions" / "s8.jsonl", session(8))

    assert "4 sessions, " in run("import").output


@pytest.mark.parametrize(
    "changed",
    [TASK / "ui_messages.json", TASK / "new.json", GOOSE, GOOSE.with_name(f"{GOOSE.name}-wal")],
    ids=str,
)
def test_a_recording_of_several_files_is_read_again(
    run: Run, home: Path, calls: list[object], changed: Path
) -> None:
    run("import")
    run("import")
    assert len(calls) == 1
    with (home / changed).open("ab") as file:
        file.write(b" ")
    run("import")

    assert len(calls) == 2


def test_a_session_that_is_stored_under_another_id_is_reported_in_one_line(run: Run, tmp_path: Path) -> None:
    key = "0a1b2c3d-0000-4000-8000-000000000001"
    common = {"sessionId": key, "timestamp": "2026-01-01T00:00:00Z", "type": "assistant"}
    paths = []
    for name in ("a", "b"):
        reply = {"role": "assistant", "id": name, "model": "m", "content": [{"type": "text", "text": name}]}
        paths.append(tmp_path / name / f"{key}.jsonl")
        paths[-1].parent.mkdir()
        paths[-1].write_text(json.dumps(common | {"uuid": name, "message": reply}) + "\n")
        os.utime(paths[-1], (0, 0))
    lines = run("import", *paths).output.splitlines()

    (line,) = [one for one in lines if one.startswith(str(paths[1]))]
    assert line.startswith(f"{paths[1]}: stored as session {key}~")
    assert line.endswith(f": another session with the id {key}, and no call in common, was stored before")
