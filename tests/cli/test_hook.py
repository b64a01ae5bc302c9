"""`windowpane hook`: settings of Claude Code that lose nothing, a status line, a quiet import."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from windowpane.cli import main
from windowpane.cli.hook import EVENTS, HookCommands
from windowpane.config.paths import default_store
from windowpane.core.version import package_version
from windowpane.sources.hooks.server_quota import start_recording
from windowpane.sources.hooks.transcript import start_import
from windowpane.store.embedded import SqliteReader
from windowpane.store.open import open_reader, open_store

Run = Callable[..., Result]
SESSION = "0a1b2c3d-0000-4000-8000-000000000001"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("WINDOWPANE_STORE", str(tmp_path / "windowpane.db"))
    return tmp_path


def hook(*arguments: str, given: Any = None, code: int = 0) -> Result:
    text = given if isinstance(given, str) else json.dumps(given)
    result = CliRunner().invoke(main, ["hook", *arguments], input=text)
    assert result.exit_code == code, result.output
    return result


def row(number: int, **message: Any) -> dict[str, Any]:
    return {
        "type": message["role"], "sessionId": SESSION, "uuid": f"u{number}", "parentUuid": None,
        "timestamp": f"2026-01-01T10:00:{number:02}Z", "message": message,
    }  # fmt: skip


def transcript(path: Path, *, calls: int, model: str = "claude-of-tests", version: str = "") -> Path:
    rows = []
    for number in range(calls):
        rows.append(row(2 * number, role="user", content=f"Request {number}"))
        usage = {"input_tokens": 1_000 * (number + 1), "output_tokens": 10}
        rows.append(row(2 * number + 1, role="assistant", id=f"m{number}", model=model, usage=usage,
                        content=[{"type": "text", "text": f"Reply {number}"}]))  # fmt: skip
    stated = {"version": version} if version else {}
    path.write_text("".join(json.dumps(line | stated) + "\n" for line in rows), encoding="utf-8")
    return path


def set_last_event(home: Path, last_at: float, *, ended: int) -> None:
    with closing(sqlite3.connect(home / "windowpane.db")) as connection, connection:
        connection.execute("UPDATE sessions SET last_at = ?, ended = ?", (last_at, ended))


def test_install_prints_what_belongs_in_the_settings(home: Path) -> None:
    result = hook("install")

    assert " hook status" in json.loads(result.stdout)["statusLine"]["command"]
    assert not (home / ".claude").exists()


def test_the_end_of_a_session_imports_what_followed_the_last_compaction(home: Path) -> None:
    hooks = json.loads(hook("install").stdout)["hooks"]

    imports = {
        event: [one["command"] for entry in entries for one in entry["hooks"]] for event, entries in hooks.items()
    }
    ours = [HookCommands.of(home / "windowpane.db").import_]
    assert imports == {"PreCompact": ours, "SessionStart": ours, "SessionEnd": ours}


def test_install_writes_where_claude_code_reads(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "moved"))
    hook("install", "--write")

    assert "statusLine" in json.loads((home / "moved" / "settings.json").read_text(encoding="utf-8"))
    assert not (home / ".claude").exists()


def test_installed_commands_run_from_anywhere(home: Path) -> None:
    """They name this installation and the store by their paths, as Claude Code may have another PATH."""
    path = transcript(home / f"{SESSION}.jsonl", calls=6)
    CliRunner().invoke(main, ["import", str(path), "--limit", "100000"])
    command = json.loads(hook("install").stdout)["statusLine"]["command"]
    printed = subprocess.run(
        ["/bin/sh", "-c", command], input=json.dumps({"session_id": SESSION}), env={}, cwd="/",
        capture_output=True, encoding="utf-8", check=True, timeout=60,
    )  # fmt: skip

    assert printed.stdout.startswith("○ 6% 6k/100k +")
    assert printed.stderr == ""


def test_commands_survive_blanks_in_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "my environment" / "bin"
    folder.mkdir(parents=True)
    script = folder / "windowpane"
    script.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    command = HookCommands.of(tmp_path / "Ann's store.db").status
    printed = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=True, timeout=60)

    assert printed.stdout == f"hook|status|--store|{tmp_path}/Ann's store.db|"


def test_without_a_script_the_interpreter_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))

    assert HookCommands.of().import_ == f"{tmp_path / 'python'} -P -m windowpane hook import"


@pytest.mark.parametrize(
    "old", ["windowpane", "/gone/bin/windowpane", "'/gone my/bin/windowpane'", "/p/python -m windowpane"]
)
def test_install_replaces_the_commands_of_another_installation(home: Path, old: str) -> None:
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    entry = {"hooks": [{"type": "command", "command": f"{old} hook import", "timeout": 20}], "matcher": "auto"}
    line = {"type": "command", "command": f"{old} hook status", "padding": 2}
    path.write_text(json.dumps({"statusLine": line, "hooks": {"PreCompact": [entry]}}), encoding="utf-8")
    result = hook("install", "--write")
    written = json.loads(path.read_text(encoding="utf-8"))
    commands = HookCommands.of(home / "windowpane.db")

    assert written["statusLine"] == {**line, "command": commands.status}
    [imported] = written["hooks"]["PreCompact"]
    assert imported["hooks"] == [{"type": "command", "command": commands.import_, "timeout": 20}]
    assert imported["matcher"] == "auto"
    assert "status line was kept" not in result.output


def test_install_keeps_what_others_wrote(home: Path) -> None:
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    theirs = {
        "model": "opus", "statusLine": {"type": "command", "command": "theirs"},
        "hooks": {"PreCompact": [{"hooks": [{"type": "command", "command": "theirs"}]}], "Stop": []},
    }  # fmt: skip
    path.write_text(json.dumps(theirs), encoding="utf-8")
    result = hook("install", "--write")
    written = json.loads(path.read_text(encoding="utf-8"))

    assert (written["model"], written["statusLine"]["command"], written["hooks"]["Stop"]) == (
        "opus",
        "theirs",
        [],
    )
    commands = [entry["hooks"][0]["command"] for entry in written["hooks"]["PreCompact"]]
    assert commands == ["theirs", HookCommands.of(home / "windowpane.db").import_]
    [backup] = path.parent.glob("settings.json.*.bak")
    assert json.loads(backup.read_text(encoding="utf-8")) == theirs
    assert "status line was kept" in result.output


def test_install_twice_changes_nothing(home: Path) -> None:
    hook("install", "--write")
    before = (home / ".claude" / "settings.json").read_bytes()
    assert "is up to date" in hook("install", "--write").output

    assert (home / ".claude" / "settings.json").read_bytes() == before
    assert list((home / ".claude").iterdir()) == [home / ".claude" / "settings.json"]


def test_a_status_line_is_replaced_on_request(home: Path) -> None:
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text('{"statusLine": {"type": "command", "command": "theirs"}}', encoding="utf-8")
    hook("install", "--write", "--replace-status-line")

    assert "theirs" not in path.read_text(encoding="utf-8")


def test_the_plugin_adds_a_status_line_once(home: Path) -> None:
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text('{"model": "theirs"}', encoding="utf-8")
    assert hook("add-status-line").output == ""
    settings = json.loads(path.read_text(encoding="utf-8"))
    assert settings["statusLine"]["command"].endswith("hook status")
    assert settings["model"] == "theirs"
    path.write_text("{}", encoding="utf-8")
    hook("add-status-line")

    assert path.read_text(encoding="utf-8") == "{}", "its user has removed it"


@pytest.mark.parametrize("theirs", ['{"statusLine": {"type": "command", "command": "theirs"}}', "{not json"])
def test_the_plugin_changes_no_other_status_line_and_fails_silently(home: Path, theirs: str) -> None:
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text(theirs, encoding="utf-8")

    assert hook("add-status-line").output == ""
    assert path.read_text(encoding="utf-8") == theirs


@pytest.mark.parametrize("broken", ["{not json", "[]", '{"hooks": []}', '{"hooks": {"PreCompact": {}}}'])
def test_settings_that_cannot_be_read_are_not_changed(home: Path, broken: str) -> None:
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text(broken, encoding="utf-8")
    hook("install", "--write", code=1)

    assert path.read_text(encoding="utf-8") == broken


def test_the_status_line_shows_the_utilization(home: Path) -> None:
    usage = {"input_tokens": 6_000, "cache_read_input_tokens": 140_000, "cache_creation_input_tokens": 10_000,
             "output_tokens": 900}  # fmt: skip
    given = {"session_id": SESSION, "context_window": {"context_window_size": 200_000, "current_usage": usage}}

    assert hook("status", given=given).stdout == "◐ 78% 156k/200k\n"


def test_a_session_has_the_window_that_its_status_line_was_given(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    path = transcript(home / f"{SESSION}.jsonl", calls=2, model="claude-sonnet-4-6", version="2.1.217")
    given = {
        "session_id": SESSION, "version": "2.1.217", "model": {"id": "claude-sonnet-4-6[1m]"},
        "context_window": {"context_window_size": 1_000_000, "current_usage": {"input_tokens": 250_000}},
    }  # fmt: skip

    assert hook("status", given=given).stdout == "○ 25% 250k/1M\n"
    assert CliRunner().invoke(main, ["import", str(path)]).exit_code == 0
    assert limit_of(home) == (200_000, "assumed")  # a recording of any machine
    (home / "windowpane.db").unlink()
    assert CliRunner().invoke(main, ["import", "--live", str(path)]).exit_code == 0
    assert limit_of(home) == (1_000_000, "status_line")


@pytest.mark.parametrize(
    ("version", "used", "line"),
    [
        ("2.1.211", 150_000, "◐ 75% 150k/200k"),
        ("2.1.212", 150_000, "150k"),
        ("2.1.222", 150_000, "150k"),
        ("2.1.300", 150_000, "◐ 75% 150k/200k"),
        ("2.1.300", 250_000, "250k"),
    ],
)
def test_a_size_in_the_status_line_that_is_known_to_be_wrong_is_not_used(
    home: Path, version: str, used: int, line: str
) -> None:
    given = {
        "session_id": SESSION, "version": version, "model": {"id": "claude-opus-5"},
        "context_window": {"context_window_size": 200_000, "current_usage": {"input_tokens": used}},
    }  # fmt: skip

    assert hook("status", given=given).stdout.strip() == line


def limit_of(home: Path) -> tuple[int | None, str | None]:
    with closing(SqliteReader(home / "windowpane.db")) as reader:
        stored = reader.session(SESSION)
    assert stored is not None
    return stored.limit_tokens, stored.limit_source


def test_the_status_line_knows_the_pace_of_a_stored_session(home: Path) -> None:
    path = transcript(home / f"{SESSION}.jsonl", calls=6)
    result = CliRunner().invoke(main, ["import", str(path), "--limit", "100000"])
    assert result.exit_code == 0, result.output
    set_last_event(home, time.time(), ended=0)
    line = hook("status", given={"session_id": SESSION}).stdout

    assert line.startswith("○ 6% 6k/100k +")
    assert "/turn compaction in " in line  # at the level documented for Claude Code


def test_the_status_line_records_the_quota_and_shows_one_that_is_nearly_used(home: Path) -> None:
    path = transcript(home / f"{SESSION}.jsonl", calls=1)
    assert CliRunner().invoke(main, ["import", str(path)]).exit_code == 0
    ends = time.time() + 3_600
    limits = {
        "five_hour": {"used_percentage": 83.4, "resets_at": ends},
        "seven_day": {"used_percentage": "?", "resets_at": ends},
    }
    usage = {"context_window_size": 200_000, "current_usage": {"input_tokens": 50_000}}

    line = hook("status", given={"context_window": usage, "rate_limits": limits}).stdout

    assert line == "○ 25% 50k/200k 83% of 5 h\n"
    with closing(open_reader(default_store())) as store:
        quotas = store.quotas(now=time.time())
    assert [(one.agent, one.minutes, one.used_ratio) for one in quotas] == [("claude-code", 300, 0.83)]


@pytest.mark.server
def test_the_status_line_records_a_changed_quota_in_a_store_on_a_server(
    home: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_store(postgres_url).close()
    monkeypatch.setenv("WINDOWPANE_STORE", postgres_url)
    ends = time.time() + 3_600
    started: list[subprocess.Popen[bytes]] = []

    def start(*arguments: Any) -> None:
        started.append(start_recording(*arguments))

    monkeypatch.setattr("windowpane.sources.hooks.server_quota.start_recording", start)
    for used in (83.4, 82.6, 84.1):
        hook("status", given={"rate_limits": {"five_hour": {"used_percentage": used, "resets_at": ends}}})

    assert [process.wait(60) for process in started] == [0, 0]
    with closing(open_reader(postgres_url)) as store:
        (quota,) = store.quotas(now=time.time())
    assert (quota.agent, quota.minutes, quota.used_ratio) == ("claude-code", 300, 0.84)


def test_the_status_line_forecasts_nothing_for_a_session_that_is_over(home: Path) -> None:
    path = transcript(home / f"{SESSION}.jsonl", calls=6)
    assert CliRunner().invoke(main, ["import", str(path), "--limit", "100000"]).exit_code == 0
    for last_at, ended in ((time.time() - 86_400.0, 0), (time.time(), 1)):
        set_last_event(home, last_at, ended=ended)
        line = hook("status", given={"session_id": SESSION}).stdout

        assert "/turn" in line
        assert "compaction in" not in line


@pytest.mark.parametrize("given", ["", "{", "[]", "null", '{"context_window": 7}', '{"session_id": {}}'])
def test_the_status_line_never_fails(home: Path, given: str) -> None:
    assert hook("status", given=given).stdout == "\n"


@pytest.mark.parametrize(
    "given", ["", "{", "[]", "null", "{}", '{"transcript_path": 7}', '{"transcript_path": "no"}']
)
def test_the_import_hook_is_silent(home: Path, given: str) -> None:
    """A hook that printed would talk to the model, one that failed would stop the agent."""
    assert hook("import", given=given).output == ""


def message_of_hook(
    *arguments: str, session: str = SESSION, event: str = "SessionStart", path: str = "later.jsonl"
) -> str:
    """Return what a hook that imports shows to the user."""
    given = {"session_id": session, "hook_event_name": event, "transcript_path": path}
    output = hook("import", *arguments, given=given).stdout
    document = json.loads(output or "{}")
    assert set(document) <= {"systemMessage"}  # nothing for the model
    return str(document.get("systemMessage", ""))


def test_with_a_server_as_store_the_user_is_notified_once_per_session(home: Path) -> None:
    server = ("--store", "https://windowpane.example")

    assert "the store is a server" in message_of_hook(*server)
    assert message_of_hook(*server, event="PreCompact") == message_of_hook(*server) == ""
    assert "the store is a server" in message_of_hook(*server, session=SESSION.replace("1", "2"))
    assert not (home / "windowpane.db").exists()


@pytest.mark.parametrize("kind", ["folder", "text"])
def test_a_store_that_cannot_be_used_is_shown_to_the_user(home: Path, kind: str) -> None:
    store = home / "windowpane.db"
    if kind == "folder":
        store.mkdir()
    else:
        store.write_text("something else, longer than a header")

    assert str(store) in message_of_hook()
    assert message_of_hook() == ""


def test_invalid_settings_are_shown_to_the_user(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WINDOWPANE_STORE")
    monkeypatch.setenv("WINDOWPANE_CONFIG", str(home / "missing.yml"))

    assert "missing.yml" in message_of_hook()


def test_an_import_that_failed_in_the_background_is_reported_by_the_next_hook_until_one_succeeds(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = transcript(home / f"{SESSION}.jsonl", calls=3)
    damaged = home / "damaged.db"
    damaged.write_bytes(b"SQLite format 3\0" + bytes(4_000))
    monkeypatch.setenv("WINDOWPANE_STORE", str(damaged))

    assert start_import(str(path)).wait(timeout=60) != 0
    assert str(damaged) in message_of_hook()
    assert message_of_hook() == ""
    (finding,) = [one for one in doctor() if one["subject"] == "hooks"]
    assert finding["verdict"] == "problem"
    assert str(damaged) in finding["detail"]

    assert start_import(str(path), str(home / "windowpane.db")).wait(timeout=60) == 0
    assert message_of_hook(session=SESSION.replace("1", "3")) == ""
    assert [one for one in doctor() if one["subject"] == "hooks"] == []


def doctor() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(CliRunner().invoke(main, ["doctor", "--json"]).output)
    return rows


def test_where_nothing_can_be_kept_the_user_is_notified_at_the_start_only(home: Path) -> None:
    (home / ".local").write_text("no folder")
    server = ("--store", "https://windowpane.example")

    assert message_of_hook(*server, event="PreCompact") == ""
    assert "the store is a server" in message_of_hook(*server)


def test_the_import_hook_imports_in_the_background(home: Path) -> None:
    path = transcript(home / f"{SESSION}.jsonl", calls=3)
    process = start_import(str(path), str(home / "windowpane.db"))

    assert process.wait(timeout=60) == 0
    reader = SqliteReader(home / "windowpane.db")
    stored = reader.session(SESSION)
    reader.close()
    assert stored is not None
    assert stored.turns >= 2


def test_settings_that_only_their_owner_may_read_stay_so(home: Path) -> None:
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"env": {"API_KEY": "x"}}', encoding="utf-8")
    settings.chmod(0o600)

    hook("install", "--write")

    assert {path.name: oct(path.stat().st_mode & 0o777) for path in settings.parent.iterdir()} == dict.fromkeys(
        (path.name for path in settings.parent.iterdir()), "0o600"
    )
    assert len(list(settings.parent.iterdir())) == 2


def test_an_import_has_the_sub_agents_of_the_session(home: Path) -> None:
    path = transcript(home / f"{SESSION}.jsonl", calls=2)
    folder = home / SESSION / "subagents"
    folder.mkdir(parents=True)
    own = transcript(folder / "agent-a1.jsonl", calls=3)
    rows = [json.loads(line) | {"isSidechain": True, "agentId": "a1"} for line in own.read_text().splitlines()]
    own.write_text("".join(json.dumps(line) + "\n" for line in rows))
    start_import(str(path)).wait(60)

    reader = SqliteReader(home / "windowpane.db")
    parents = {session.session_id: session.parent_session_id for session in reader.sessions()}
    reader.close()
    assert parents == {SESSION: None, f"{SESSION}/agent-a1": SESSION}


def test_a_compacted_session_gets_back_the_rules_of_its_user(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    rows = [
        row(0, role="user", content="Never touch config.py. Make the tests pass."),
        row(
            1,
            role="assistant",
            id="m",
            model="m",
            content=[{"type": "text", "text": "Next steps:\n- Fix auth.py"}],
        ),
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in rows), encoding="utf-8")

    result = hook("give-back", given={"source": "compact", "transcript_path": str(path)})

    added = json.loads(result.stdout)["hookSpecificOutput"]
    assert added["hookEventName"] == "SessionStart"
    lines = added["additionalContext"].splitlines()
    assert lines[0].startswith("Added by Windowpane")
    assert "- Never touch config.py." in lines
    assert "- Fix auth.py" in lines
    assert "tests pass" not in added["additionalContext"]


@pytest.mark.parametrize(("version", "given_back"), [("2.1.49", True), ("2.1.217", False), ("2.1.332", False)])
def test_a_reply_that_claude_code_keeps_itself_is_not_given_back(
    tmp_path: Path, version: str, given_back: bool
) -> None:
    path = tmp_path / "session.jsonl"
    work = [{"type": "text", "text": "Next steps:\n- Fix auth.py"}]
    rows = [
        row(0, role="user", content="Never touch config.py. Make the tests pass."),
        row(1, role="assistant", id="m", model="m", content=work),
        row(2, role="user", content="<command-name>/compact</command-name>"),
    ]
    path.write_text("".join(json.dumps(line | {"version": version}) + "\n" for line in rows), encoding="utf-8")

    output = hook("give-back", given={"source": "compact", "transcript_path": str(path)}).stdout

    assert "Never touch config.py." in output
    assert ("Fix auth.py" in output) is given_back


@pytest.mark.parametrize(
    "given",
    [
        "",
        "no JSON",
        "[]",
        {"source": "startup", "transcript_path": __file__},
        {"source": "compact"},
        {"source": "compact", "transcript_path": "/no"},
        {"source": "compact", "transcript_path": "\0"},
        {"source": "compact", "transcript_path": __file__},
    ],
)
def test_nothing_is_given_back_and_nothing_fails(given: Any) -> None:
    result = hook("give-back", given=given)

    assert (result.stdout, result.stderr) == ("", "")


def test_giving_back_is_installed_only_on_request(home: Path) -> None:
    path = home / ".claude" / "settings.json"

    def started() -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["hooks"]["SessionStart"]
        return entries

    hook("install", "--write")
    assert "give-back" not in path.read_text(encoding="utf-8")
    hook("install", "--write", "--give-back")
    hook("install", "--write", "--give-back")
    hook("install", "--write")

    [entry] = [entry for entry in started() if "give-back" in entry["hooks"][0]["command"]]
    assert entry["matcher"] == "compact"
    assert len(started()) == 2


def test_the_plugin_runs_the_hooks_that_are_installed() -> None:
    folder = Path(__file__).parents[2] / "integrations" / "claude-code-plugin"
    hooks = json.loads((folder / "hooks" / "hooks.json").read_text(encoding="utf-8"))["hooks"]
    manifest = json.loads((folder / ".claude-plugin" / "plugin.json").read_text(encoding="utf-8"))
    server = json.loads((folder / ".mcp.json").read_text(encoding="utf-8"))["mcpServers"]["windowpane"]

    assert set(hooks) == set(EVENTS)
    commands = [[hook["command"] for hook in hooks[event][0]["hooks"]] for event in EVENTS]
    imports = "windowpane hook import"
    assert commands == [[imports], [imports, "windowpane hook add-status-line"], [imports]]
    assert (server["command"], server["args"]) == ("windowpane", ["mcp"])
    assert manifest["version"] == package_version()
