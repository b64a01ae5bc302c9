"""The level at which an agent compacts, and its window, by the settings on this machine."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from windowpane.cli import main
from windowpane.cli.proxy import _by_settings
from windowpane.sources.installed_agents.arguments import stated_settings
from windowpane.sources.installed_agents.settings import lines_for_level, stated_level, stated_window
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import SessionFilter
from windowpane.store.records import SessionRow

CHANGED = 1_000_000_000.0
LATER = CHANGED + 60


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without settings."""
    for name in (
        "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "QWEN_HOME", "PI_CODING_AGENT_DIR",
        "XDG_CONFIG_HOME", "GOOSE_PATH_ROOT",
    ):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    return tmp_path


def write(home: Path, name: str, text: str) -> None:
    """Write a file of settings that were last changed at `CHANGED`."""
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    os.utime(path, (CHANGED, CHANGED))


@pytest.mark.parametrize(
    ("agent", "name", "text", "level"),
    [
        ("codex", ".codex/config.toml", "model_auto_compact_token_limit = 150000", 150_000),
        ("codex", ".codex/config.toml", 'profile = "p"\n[profiles.p]\nmodel_auto_compact_token_limit = 9', 9),
        ("claude-code", ".claude/settings.json", '{"autoCompactWindow": 100000}', 67_000),
        ("claude-code", ".claude/settings.json", '{"autoCompactWindow": 900000}', 167_000),
        ("claude-code", ".claude/settings.json", '{"env": {"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "50"}}', 90_000),
        ("claude-code", ".claude/settings.json", '{"env": {"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "95"}}', 167_000),
        ("claude-code", ".claude/settings.json", '{"env": {"DISABLE_AUTO_COMPACT": "1"}}', 0),
        ("gemini-cli", ".gemini/settings.json", '{"model": {"compressionThreshold": 0.4}}', 80_000),
        ("qwen-code", ".qwen/settings.json", '{"context": {"autoCompactThreshold": 0.6}}', 120_000),
        ("qwen-code", ".qwen/settings.json", '{"context": {"autoCompactThreshold": 0.9}}', 167_000),
        ("pi", ".pi/agent/settings.json", '{"compaction": {"reserveTokens": 30000}}', 170_000),
        ("pi", ".pi/agent/settings.json", '{"compaction": {"enabled": false}}', 0),
        ("opencode", ".config/opencode/opencode.json", '{"compaction": {"auto": false}}', 0),
        ("goose", ".config/goose/config.yaml", "GOOSE_AUTO_COMPACT_THRESHOLD: 0.6", 120_000),
        ("goose", ".config/goose/config.yaml", "GOOSE_AUTO_COMPACT_THRESHOLD: 0", 0),
    ],
)  # fmt: skip
def test_settings_state_the_level(home: Path, agent: str, name: str, text: str, level: int) -> None:
    """In a window of 200,000 tokens; a session that started before the last change is not concerned."""
    write(home, name, text)

    assert stated_level(agent, limit_tokens=200_000, started_at=LATER) == level
    assert stated_level(agent, limit_tokens=200_000, started_at=CHANGED - 1) is None


@pytest.mark.parametrize(
    ("agent", "variable", "name", "text"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", "settings.json", '{"autoCompactWindow": 133000}'),
        ("codex", "CODEX_HOME", "config.toml", "model_auto_compact_token_limit = 100000"),
        ("gemini-cli", "GEMINI_CLI_HOME", ".gemini/settings.json", '{"model": {"compressionThreshold": 0.5}}'),
        ("qwen-code", "QWEN_HOME", "settings.json", '{"context": {"autoCompactThreshold": 0.5}}'),
        ("pi", "PI_CODING_AGENT_DIR", "settings.json", '{"compaction": {"reserveTokens": 100000}}'),
        ("goose", "XDG_CONFIG_HOME", "goose/config.yaml", "GOOSE_AUTO_COMPACT_THRESHOLD: 0.5"),
        ("goose", "GOOSE_PATH_ROOT", "config/config.yaml", "GOOSE_AUTO_COMPACT_THRESHOLD: 0.5"),
    ],
)  # fmt: skip
def test_a_variable_of_the_agent_moves_its_settings(  # noqa: PLR0917  # parameters
    home: Path, monkeypatch: pytest.MonkeyPatch, agent: str, variable: str, name: str, text: str
) -> None:
    write(home / "moved", name, text)
    write(home, ".codex/config.toml", "model_auto_compact_token_limit = 7")
    monkeypatch.setenv(variable, str(home / "moved"))

    assert stated_level(agent, limit_tokens=200_000, started_at=LATER) == 100_000


@pytest.mark.parametrize("text", ["", "[]", "{", '{"autoCompactWindow": "much"}', '{"env": []}', "\ud800"])
def test_settings_without_the_level_state_none(home: Path, text: str) -> None:
    path = home / ".claude/settings.json"
    path.parent.mkdir()
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    os.utime(path, (CHANGED, CHANGED))

    assert stated_level("claude-code", limit_tokens=200_000, started_at=LATER) is None
    assert stated_level("unknown", limit_tokens=200_000, started_at=LATER) is None


@pytest.mark.parametrize(
    ("agent", "user", "project", "level"),
    [
        ("claude-code", None, {".claude/settings.json": '{"autoCompactWindow": 100000}'}, 67_000),
        (
            "claude-code", '{"env": {"DISABLE_AUTO_COMPACT": "1", "OTHER": "x"}}',
            {".claude/settings.json": '{"env": {"DISABLE_AUTO_COMPACT": "0"}, "autoCompactWindow": 120000}'},
            87_000,
        ),
        (
            "claude-code", None,
            {
                ".claude/settings.json": '{"autoCompactWindow": 120000}',
                ".claude/settings.local.json": '{"autoCompactWindow": 110000}',
            },
            77_000,
        ),
        ("codex", "", {".codex/config.toml": "model_auto_compact_token_limit = 9"}, None),
        (
            "codex", 'model_auto_compact_token_limit = 5\n[projects."{project}"]\ntrust_level = "trusted"',
            {".codex/config.toml": "model_auto_compact_token_limit = 9"}, 9,
        ),
        (
            "codex", '[projects."{project}"]\ntrust_level = "trusted"',
            {
                ".codex/config.toml": "model_auto_compact_token_limit = 9",
                "deep/er/.codex/config.toml": "model_auto_compact_token_limit = 11",
            },
            11,
        ),
        ("gemini-cli", '{"model": {"compressionThreshold": 0.4}}',
         {"deep/er/.gemini/settings.json": '{"model": {"compressionThreshold": 0.5}}'}, 100_000),
        ("opencode", None, {"opencode.json": '{"compaction": {"auto": false}}'}, 0),
        (
            "opencode", '{"compaction": {"auto": false}}',
            {"deep/er/opencode.json": '{"compaction": {"auto": true}}'}, None,
        ),
        (
            "pi", '{"compaction": {"enabled": false}}',
            {"deep/er/.pi/settings.json": '{"compaction": {"enabled": true}}'}, None,
        ),
    ],
)  # fmt: skip
def test_settings_of_the_project_come_before_those_of_the_user(
    home: Path, agent: str, user: str | None, project: dict[str, str], level: int | None
) -> None:
    files = {
        "claude-code": ".claude/settings.json", "codex": ".codex/config.toml",
        "gemini-cli": ".gemini/settings.json", "opencode": ".config/opencode/opencode.json",
        "pi": ".pi/agent/settings.json",
    }  # fmt: skip
    root = home / "project"
    (root / ".git").mkdir(parents=True)
    (root / "deep/er").mkdir(parents=True)
    if user is not None:
        write(home, files[agent], user.replace("{project}", str(root)))
    for name, text in project.items():
        write(root, name, text)
    folder = root if agent == "claude-code" else root / "deep/er"

    def stated(folder: str, started_at: float = LATER) -> int | None:
        return stated_level(agent, limit_tokens=200_000, started_at=started_at, folder=folder)

    assert stated(str(folder)) == level
    assert stated(str(folder), CHANGED - 1) is None
    assert stated("relative") == stated("")


def test_variables_of_the_agent_come_before_its_settings(home: Path) -> None:
    write(home, ".claude/settings.json", '{"env": {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "150000"}}')
    environment = {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "120000"}

    level = stated_level("claude-code", limit_tokens=200_000, started_at=LATER, environment=environment)

    assert level == 120_000 - 33_000


@pytest.mark.parametrize(
    ("settings", "environment", "command", "window"),
    [
        ("{}", {}, "", ("claude-opus-5", None)),
        ('{"env": {"CLAUDE_CODE_DISABLE_1M_CONTEXT": "1"}}', {}, "", ("claude-opus-5", 200_000)),
        ("{}", {"CLAUDE_CODE_DISABLE_1M_CONTEXT": "true"}, "", ("claude-opus-5", 200_000)),
        ("{}", {"CLAUDE_CODE_DISABLE_1M_CONTEXT": "0"}, "", ("claude-opus-5", None)),
        ('{"model": "sonnet[1m]"}', {}, "", ("claude-sonnet-4-6", 1_000_000)),
        ('{"model": "sonnet[1m]"}', {}, "", ("claude-opus-4-6", None)),
        ('{"model": "sonnet"}', {"ANTHROPIC_MODEL": "claude-opus-4-6[1m]"}, "", ("claude-opus-4-6", 1_000_000)),
        ('{"model": "opus"}', {}, "claude --model opus[1m]", ("claude-opus-4-6", 1_000_000)),
        ("{}", {"CLAUDE_CODE_MAX_CONTEXT_TOKENS": "131072"}, "", ("deepseek-v4-pro", 131_072)),
        ("{}", {"CLAUDE_CODE_MAX_CONTEXT_TOKENS": "131072"}, "", ("claude-opus-5", None)),
    ],
)
def test_settings_and_variables_state_the_window(
    home: Path, settings: str, environment: dict[str, str], command: str, window: tuple[str, int | None]
) -> None:
    model, tokens = window
    write(home, ".claude/settings.json", settings)
    program, *arguments = command.split() or [""]
    known = {"environment": environment, "overrides": stated_settings(program, arguments, home)}

    assert stated_window("claude-code", model, started_at=LATER, **known) == tokens
    assert stated_window("claude-code", model, started_at=CHANGED - 1, **known) is None
    assert stated_window("codex", model, started_at=LATER, **known) is None


def test_a_program_that_is_run_has_the_window_of_its_variables(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CODE_DISABLE_1M_CONTEXT", "1")
    level, window = _by_settings({"folder": str(home), "overrides": {}})

    assert level is not None
    assert window is not None
    assert window("claude-code", "claude-opus-5") == 200_000
    assert level("claude-code", 1_000_000) == 167_000
    assert _by_settings({"folder": None}) == (None, None)


@pytest.mark.parametrize(
    ("command", "level"),
    [
        ("codex -c model_auto_compact_token_limit=150_000 exec", 150_000),
        ("codex exec -cmodel_auto_compact_token_limit=150000", 150_000),
        ("codex --config=model_auto_compact_token_limit=150000", 150_000),
        ("codex -c model_context_window=100000", 90_000),
        ("codex -c model_context_window=250000 -c model_auto_compact_token_limit=150000", 150_000),
        ("codex -c profile=small", 60_000),
        ("codex --profile small", 60_000),
        ("codex -psmall -c profiles.small.model_auto_compact_token_limit=70000", 70_000),
        ("codex -c model=o3 --config model_providers.x.model_context_window=5", 180_000),
        ("codex exec -- -c model_auto_compact_token_limit=1", 180_000),
        ("codex -c", 180_000),
        ('claude --settings {"autoCompactWindow":133000}', 100_000),
        ('claude --settings={"env":{"DISABLE_AUTO_COMPACT":"1"}}', 0),
        ("claude --settings own.json -p hello", 67_000),
        ("claude --settings nowhere.json", 117_000),
        ("claude --settings {", 117_000),
        ("python agent.py -c model_auto_compact_token_limit=150000", 180_000),
    ],
)
def test_the_command_line_comes_before_the_settings(home: Path, command: str, level: int) -> None:
    """Options as the agents document them; whatever else is on the line changes nothing."""
    small = "[profiles.small]\nmodel_auto_compact_token_limit = 60000"
    write(home, ".codex/config.toml", f"model_auto_compact_token_limit = 180000\n{small}")
    write(home, ".claude/settings.json", '{"autoCompactWindow": 150000}')
    write(home, "own.json", '{"autoCompactWindow": 100000, "env": {"TOKEN": "secret"}}')
    program, *arguments = command.split()
    overrides = stated_settings(program, arguments, home)
    agent = "claude-code" if program == "claude" else "codex"

    assert stated_level(agent, limit_tokens=200_000, started_at=LATER, overrides=overrides) == level
    assert "secret" not in str(overrides)


def transcript(path: Path) -> None:
    """Write a session of Claude Code that started after `LATER`."""
    usage = {"input_tokens": 30_000, "output_tokens": 5}
    rows: list[dict[str, Any]] = [
        {"type": "user", "message": {"role": "user", "content": "hello"}},
        {
            "type": "assistant",
            "message": {
                "id": "m", "role": "assistant", "model": "claude-opus-4-6", "usage": usage,
                "content": [{"type": "text", "text": "hi"}],
            },
        },
    ]  # fmt: skip
    for number, row in enumerate(rows):
        row |= {"sessionId": "s", "uuid": f"u{number}", "version": "2.1.30", "timestamp": "2026-01-02T03:04:05Z"}
        row["parentUuid"] = f"u{number - 1}" if number else None
        row["cwd"] = str(path.parent / "project")
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def imported(store_file: Path, recording: Path, *options: str) -> SessionRow:
    """Return the session of the recording after another import."""
    result = CliRunner().invoke(main, ["import", *options, str(recording), "--store", str(store_file)])
    assert result.exit_code == 0, result.output
    with closing(SqliteStore(store_file)) as store:
        (session,) = store.sessions(SessionFilter())
        return session


def test_a_live_session_keeps_the_level_that_its_settings_stated(home: Path, tmp_path: Path) -> None:
    recording, store_file = tmp_path / "s.jsonl", tmp_path / "store.db"
    transcript(recording)
    write(home, ".claude/settings.json", '{"autoCompactWindow": 120000}')
    first = imported(store_file, recording, "--live")
    write(home, ".claude/settings.json", '{"autoCompactWindow": 150000}')
    again = [imported(store_file, recording, *options) for options in (["--live"], [])]
    elsewhere = imported(tmp_path / "other.db", recording)

    assert (first.compaction_tokens, first.compaction_evidence) == (87_000, "stated")
    assert [(one.compaction_tokens, one.compaction_evidence) for one in again] == [(87_000, "stated")] * 2
    assert (elsewhere.compaction_tokens, elsewhere.compaction_evidence) == (167_000, "documented")


def test_an_agent_that_never_compacts_by_itself_has_no_level(home: Path, tmp_path: Path) -> None:
    """Its forecast aims at red instead of the documented level."""
    recording = tmp_path / "s.jsonl"
    transcript(recording)
    write(home, ".claude/settings.json", '{"env": {"DISABLE_AUTO_COMPACT": "1"}}')

    assert imported(tmp_path / "store.db", recording, "--live").compaction_tokens is None


def test_a_live_session_has_the_level_of_its_project(home: Path, tmp_path: Path) -> None:
    recording = tmp_path / "s.jsonl"
    transcript(recording)
    write(home, "project/.claude/settings.json", '{"autoCompactWindow": 120000}')

    assert imported(tmp_path / "live.db", recording, "--live").compaction_tokens == 87_000
    assert imported(tmp_path / "store.db", recording).compaction_tokens == 167_000


@pytest.mark.parametrize(
    "agent",
    ["claude-code", "claude-code-agent", "codex", "codex-agent", "gemini-cli", "qwen-code", "pi", "goose"],
)
def test_the_lines_for_a_level_state_that_level(home: Path, agent: str) -> None:
    settings = lines_for_level(agent, 120_000, limit_tokens=200_000)

    assert settings is not None
    write(home, settings.file.removeprefix("~/"), settings.lines)
    level = stated_level(agent, limit_tokens=200_000, started_at=LATER)
    assert level == pytest.approx(120_000, rel=0.01)


def test_no_lines_are_made_up_for_an_unknown_agent() -> None:
    assert lines_for_level("my-agent", 120_000, limit_tokens=200_000) is None
    assert lines_for_level("goose", 120_000, limit_tokens=None) is None
