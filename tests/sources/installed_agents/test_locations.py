"""The folders in which agents keep their recordings, where their variables move them."""

from __future__ import annotations

from pathlib import Path

import pytest

from windowpane.sources.installed_agents.locations import locations

MOVED = (
    ("CLAUDE_CONFIG_DIR", "projects"),
    ("CODEX_HOME", "sessions"),
    ("PI_CODING_AGENT_DIR", "sessions"),
    ("PI_CODING_AGENT_SESSION_DIR", ""),
    ("QWEN_HOME", "projects"),
    ("QWEN_RUNTIME_DIR", "projects"),
    ("COPILOT_HOME", "session-state"),
    ("GEMINI_CLI_HOME", ".gemini/tmp"),
    ("CLINE_DIR", "data/tasks"),
    ("CLINE_DATA_DIR", "tasks"),
    ("GOOSE_PATH_ROOT", "data/sessions"),
    ("XDG_DATA_HOME", "opencode/opencode.db"),
    ("OPENCODE_DB", ""),
    ("OPENHANDS_PERSISTENCE_DIR", "conversations"),
    ("OPENHANDS_CONVERSATIONS_DIR", ""),
    ("MSWEA_GLOBAL_CONFIG_DIR", ""),
)
"""Variables of the agents, and where below the folder that each names they keep their recordings."""


@pytest.mark.parametrize(("variable", "below"), MOVED)
def test_variables_of_the_agents_move_their_recordings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, below: str
) -> None:
    for name, _ in MOVED:
        monkeypatch.delenv(name, raising=False)
    default = set(locations())
    monkeypatch.setenv(variable, str(tmp_path))
    moved = set(locations())

    assert tmp_path / below in moved - default
    assert len(moved) == len(default)
