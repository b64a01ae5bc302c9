"""Mistakes and surroundings of new users: wrong paths, old stores, hostile names, odd terminals."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

import windowpane
from windowpane.cli.options import EXIT_FAILED, EXIT_PARTIAL
from windowpane.config.loading import load_config
from windowpane.core.limits import MAXIMUM_TOKENS
from windowpane.exceptions import ConfigurationError
from windowpane.models.overflow_errors import classify_error
from windowpane.store import migrations

Run = Callable[..., Result]

HOSTILE = "\x1b]0;owned\x07\x1b[31m\u202egro"


def conversation() -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": "Find out why the service does not start."},
        {"role": "assistant", "content": "The port is taken."},
    ]


def transcript(session_id: str) -> str:
    """A Claude Code transcript of one call."""
    request = {"type": "user", "uuid": "u1", "parentUuid": None, "message": {"role": "user", "content": "Fix it"}}
    usage = {"input_tokens": 900, "output_tokens": 5}
    response = {"id": "m1", "role": "assistant", "model": "claude-sonnet-4-5", "usage": usage}
    reply = {
        "type": "assistant", "uuid": "a1", "parentUuid": "u1", "requestId": "r1",
        "message": {**response, "type": "message", "content": [{"type": "text", "text": "Done."}]},
    }  # fmt: skip
    shared = {"sessionId": session_id, "timestamp": "2026-01-01T00:00:00Z", "cwd": "/app", "version": "2.0.0"}
    return "\n".join(json.dumps({**row, **shared}) for row in (request, reply)) + "\n"


@pytest.fixture
def imported(run: Run, tmp_path: Path) -> Path:
    """A store with one session."""
    file = tmp_path / "conversation.json"
    file.write_text(json.dumps(conversation()), encoding="utf-8")
    run("import", file)
    return file


@pytest.mark.parametrize("arguments", [("audit", "verify"), ("audit", "heads"), ("prune",), ("sessions",)])
def test_a_store_that_is_not_there_is_an_error_and_none_is_made(
    run: Run, store: Path, arguments: tuple[str, ...]
) -> None:
    result = run(*arguments, code=EXIT_FAILED)

    assert f"no store at {store}" in result.output
    assert not store.exists()


def test_without_a_store_the_sessions_are_those_of_the_demo(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("WINDOWPANE_STORE")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    demo = tmp_path / "data" / "windowpane" / "demo-once" / "demo.db"
    file = tmp_path / "conversation.json"
    file.write_text(json.dumps(conversation()), encoding="utf-8")
    run("import", "--store", demo, file)

    shown = run("sessions")
    run("import", file)
    after = run("sessions")

    assert "Find out why" in shown.output
    assert "those of the demo" in shown.stderr
    assert "those of the demo" not in after.stderr


def test_a_report_that_cannot_be_written_names_the_path(run: Run, imported: Path, tmp_path: Path) -> None:
    target = tmp_path / "missing" / "report.html"
    session = json.loads(run("sessions", "--json").stdout)[0]["session_id"]

    result = run("report", session, "--html", target, code=EXIT_FAILED)

    assert result.output == f"Error: {target}: No such file or directory\n"


def test_a_folder_without_recordings_names_what_was_expected(run: Run, tmp_path: Path) -> None:
    result = run("import", tmp_path, code=EXIT_FAILED)

    suffixes = ".db, .eval, .har, .json, .jsonl, .ndjson, .sqlite, .sqlite3, .traj"
    assert f"no recording in {tmp_path}; expected files that end in {suffixes}" in result.output


def test_a_named_file_of_no_known_format_fails_however_it_was_named(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes.txt").write_text("nothing", encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    result = run("import", "notes.txt", code=EXIT_FAILED)

    assert "neither JSON nor JSON Lines" in result.output
    assert "left out" not in result.output


def test_pipes_and_devices_are_not_read(run: Run, imported: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "zero.json").symlink_to("/dev/zero")

    output = run("import", tmp_path).output

    assert "1 session, 0 new events" in output
    assert "pipe.jsonl: skipped: a pipe" in output
    assert "zero.json: skipped: a device" in output
    assert "not a regular file" in run("import", tmp_path / "pipe.jsonl", code=EXIT_FAILED).output


@pytest.mark.parametrize("name", ["notes.jsonl", "pipe.jsonl"])
def test_a_folder_with_nothing_readable_is_a_failure(run: Run, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "wrong"
    folder.mkdir()
    if name.startswith("pipe"):
        os.mkfifo(folder / name)
    else:
        (folder / name).write_text('{"shopping": "list"}\n', encoding="utf-8")

    assert f"{name}: skipped: " in run("import", folder, code=EXIT_FAILED).output


@pytest.mark.timeout(30)
@pytest.mark.parametrize("command", [("sessions",), ("import",), ("doctor",), ("audit", "verify"), ("prune",)])
@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "symbolic link to itself"])
def test_a_store_that_is_no_file_is_named(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], kind: str
) -> None:
    """SQLite would wait for a pipe for ever, and report a failed disk for a folder."""
    store = tmp_path / "odd.db"
    if kind == "pipe":
        os.mkfifo(store)
    elif kind == "folder":
        store.mkdir()
    else:
        store.symlink_to("/dev/null" if kind == "device" else store.name)
    monkeypatch.setenv("WINDOWPANE_STORE", str(store))
    (tmp_path / "conversation.json").write_text(json.dumps(conversation()), encoding="utf-8")
    arguments = (*command, tmp_path / "conversation.json") if command == ("import",) else command

    output = run(*arguments, code=EXIT_FAILED).output

    assert f"a {kind}, not a database file" in output or (store.is_symlink() and "no store at" in output)


def test_a_store_of_an_older_release_is_brought_up_to_date_by_reading_it(
    run: Run, imported: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "MIGRATIONS", {2: lambda database: database.execute("CREATE TABLE note (a)")})
    monkeypatch.setattr(migrations, "SCHEMA_VERSION", 2)

    first, second = run("sessions"), run("sessions")

    assert first.stderr == f"migrated {store} to this release\n"
    assert second.stderr == ""
    assert first.stdout == second.stdout


def test_names_of_agents_cannot_steer_the_terminal(run: Run, tmp_path: Path) -> None:
    (tmp_path / "session.jsonl").write_text(transcript(HOSTILE), encoding="utf-8")
    run("import", tmp_path / "session.jsonl", "--agent", HOSTILE)
    session = json.loads(run("sessions", "--json").stdout)[0]["session_id"]

    for command in (("sessions",), ("top", "--all", "--once"), ("check", session), ("report", session)):
        output = run(*command).output
        assert "owne" in output
        assert output.replace("\n", "").isprintable()
    assert run("audit", "heads").output.replace("\n", "").isprintable()


def test_a_table_in_a_pipe_keeps_every_number(
    run: Run, imported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    other = tmp_path / "a-rather-long-name-of-a-recording.json"
    other.write_text(json.dumps(conversation() * 40), encoding="utf-8")

    lines = run("import", other).stdout.splitlines()
    new = json.loads(run("import", other, "--json").stdout)
    header, row = lines[0].split(), lines[1].split()

    assert header[-1] == "new"
    assert lines[2] == f"1 session, {row[-1]} new events"
    assert new[0]["sessions"][0]["appended"] == 0
    assert run("sessions").stdout.splitlines()[0].split()[-1] == "cost"


def test_a_terminal_without_the_symbols_gets_question_marks(imported: Path, store: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "WINDOWPANE_STORE": str(store)}
    command = [sys.executable, "-m", "windowpane", "sessions"]

    table = subprocess.run(command, env=environment, capture_output=True, check=False)
    as_json = subprocess.run([*command, "--json"], env=environment, capture_output=True, check=False)

    assert table.returncode == as_json.returncode == 0, table.stderr
    assert b"session" in table.stdout
    assert json.load(io.BytesIO(as_json.stdout))[0]["turns"] == 1


@pytest.mark.parametrize("number", ["9007199254740991", "1" + "0" * 30, "1" * 5_000, "1e308", "-1"])
def test_a_number_out_of_range_costs_its_field(run: Run, tmp_path: Path, number: str) -> None:
    reply = '{{"role": "assistant", "content": "x", "usage": {{"prompt_tokens": {}, "completion_tokens": {}}}}}'
    good = reply.format(900, 5)
    messages = f'{{"role": "user", "content": "hi"}}, {good}, {reply.format(number, number)}, {good}'
    (tmp_path / "chat.json").write_text(f"[{messages}]", encoding="utf-8")

    output = run("import", tmp_path / "chat.json", code=EXIT_PARTIAL).output

    assert f"an integer from 0 to {MAXIMUM_TOKENS}, got a number" in output
    (session,) = json.loads(run("sessions", "--json").stdout)
    assert (session["turns"], session["peak_used_tokens"] < 2_000) == (3, True)
    assert "3 turns" in run("report", session["session_id"]).output


@pytest.mark.parametrize("tokens", [2**40 + 1, 10**30])
def test_a_window_that_no_model_has_is_refused(run: Run, imported: Path, tmp_path: Path, tokens: int) -> None:
    assert "is not a window size" in run("import", imported, "--limit", str(tokens), code=EXIT_FAILED).output
    with pytest.raises(ConfigurationError, match="not a window size"):
        windowpane.ContextWindowManager(agent="a", model="m", limit_tokens=tokens, data_folder=tmp_path)
    with pytest.raises(ConfigurationError, match="window size"):
        windowpane.observe(object(), limit_tokens=tokens)
    with pytest.raises(ConfigurationError, match="max_context_tokens"):
        load_config(environ={"WINDOWPANE_MAX_CONTEXT_TOKENS": str(tokens)})
    assert classify_error(f"maximum context length is {tokens} tokens, 5 is too long").limit_tokens is None


def test_an_import_names_the_turns_that_lists_show(run: Run, sessions_dir: Path, store: Path) -> None:
    recording = next((sessions_dir / "codex").glob("rollout_small_a3-*.jsonl"))

    output = run("import", recording).output
    listed = json.loads(run("sessions", "--json").output)

    assert [row["turns"] for row in listed] == [11]
    assert f"{recording.name} has 11 turns but reports 10 calls" in output
    assert "has 11 turns but reports 10 calls" in run("import", recording).output
