"""The folders where agents' programs keep their recordings on this machine, without loading a reader."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

CLINE: Final = "cline"
ROO: Final = "roo-code"
CLINE_EXTENSIONS: Final = {
    "saoudrizwan.claude-dev": CLINE,
    "rooveterinaryinc.roo-cline": ROO,
    "rooveterinaryinc.roo-code-nightly": ROO,
    "zoocodeorganization.zoo-code": "zoo-code",
    "kilocode.kilo-code": "kilo-code",
}
"""Cline and the extensions that were forked from it, as editors name them, and the names of the agents."""
EDITORS: Final = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
SERVERS: Final = (".vscode-server", ".cursor-server", ".windsurf-server")


def default_folders() -> tuple[Path, ...]:
    """Return the folders and databases where the programs keep their recordings, as far as they exist."""
    return tuple(path for path in locations() if path.exists())


def locations() -> Iterator[Path]:
    """Yield every folder and database that the programs use by default; variables of theirs move some of them."""
    home = Path.home()
    yield _moved("PI_CODING_AGENT_SESSION_DIR", otherwise=_pi_folder(home) / "sessions")
    for folder in (
        _moved("OPENCLAW_STATE_DIR", otherwise=home / ".openclaw"),
        home / ".clawdbot",
        home / ".moltbot",
    ):
        yield from sorted((folder / "agents").glob("*/agent/openclaw-agent.sqlite"))
        yield from sorted((folder / "agents").glob("*/sessions"))
    yield codex_sessions()
    yield codex_sessions().with_name("archived_sessions")
    yield qwen_folder()
    yield claude_folder() / "projects"
    copilot = _moved("COPILOT_HOME", otherwise=home / ".copilot")
    yield from (copilot / "session-state", copilot / "history-session-state")
    yield gemini_folder()
    yield from (storage / name / "tasks" for storage in _editor_storages(home) for name in CLINE_EXTENSIONS)
    cline = _moved("CLINE_DATA_DIR", otherwise=_moved("CLINE_DIR", otherwise=home / ".cline") / "data")
    yield from (cline / "tasks", _moved("CLINE_SESSION_DATA_DIR", otherwise=cline / "sessions"))
    goose = _goose_folder(home)
    yield from (goose, goose / "sessions.db")
    yield _data_folder(home) / "opencode" / "storage" / "message"
    yield from opencode_databases()
    yield _mini_swe_agent_folder(home)
    openhands = _moved("OPENHANDS_PERSISTENCE_DIR", otherwise=home / ".openhands")
    yield from (
        _moved("OPENHANDS_CONVERSATIONS_DIR", otherwise=openhands / "conversations"),
        openhands / "sessions",
    )


def claude_folder() -> Path:
    """Return the folder of Claude Code's settings and recordings."""
    return _moved("CLAUDE_CONFIG_DIR", otherwise=Path.home() / ".claude")


def codex_sessions() -> Path:
    """Return the folder of Codex' recordings, which are in one folder per day."""
    return _moved("CODEX_HOME", otherwise=Path.home() / ".codex") / "sessions"


def qwen_folder() -> Path:
    """Return the folder of Qwen Code's recordings, one folder per project."""
    return _moved("QWEN_RUNTIME_DIR", "QWEN_HOME", otherwise=Path.home() / ".qwen") / "projects"


def gemini_folder() -> Path:
    """Return the folder of Gemini CLI's recordings, which are in one folder per project."""
    return _moved("GEMINI_CLI_HOME", otherwise=Path.home()) / ".gemini" / "tmp"


def opencode_databases() -> list[Path]:
    """Return the databases of opencode's recordings; the first is that of the usual release."""
    folder = _data_folder(Path.home()) / "opencode"
    return [folder / os.environ.get("OPENCODE_DB", "opencode.db"), *sorted(folder.glob("opencode-*.db"))]


def _moved(*variables: str, otherwise: Path) -> Path:
    """Return the folder that the first of *variables* names, else the other one."""
    given = next((value for variable in variables if (value := os.environ.get(variable))), None)
    return otherwise if given is None else Path(given)


def _pi_folder(home: Path) -> Path:
    return _moved("PI_CODING_AGENT_DIR", otherwise=home / ".pi" / "agent")


def _data_folder(home: Path) -> Path:
    return _moved("XDG_DATA_HOME", otherwise=home / ".local" / "share")


def _goose_folder(home: Path) -> Path:
    root = os.environ.get("GOOSE_PATH_ROOT")
    if root:
        return Path(root) / "data" / "sessions"
    if sys.platform == "win32":
        return _moved("APPDATA", otherwise=home) / "Block" / "goose" / "data" / "sessions"
    return _data_folder(home) / "goose" / "sessions"


def _editor_storages(home: Path) -> Iterator[Path]:
    """Yield the folders in which editors keep the data of extensions."""
    if sys.platform == "darwin":
        roots = [home / "Library" / "Application Support" / editor for editor in EDITORS]
    elif sys.platform == "win32":
        roots = [_moved("APPDATA", otherwise=home) / editor for editor in EDITORS]
    else:
        roots = [_moved("XDG_CONFIG_HOME", otherwise=home / ".config") / editor for editor in EDITORS]
    for root in (*roots, *(home / server / "data" for server in SERVERS)):
        yield root / "User" / "globalStorage"


def _mini_swe_agent_folder(home: Path) -> Path:
    name = "mini-swe-agent"
    if sys.platform == "win32":
        default = _moved("LOCALAPPDATA", otherwise=home / "AppData" / "Local") / name / name
    else:
        usual = home / ("Library/Application Support" if sys.platform == "darwin" else ".config")
        default = _moved("XDG_CONFIG_HOME", otherwise=usual) / name
    return _moved("MSWEA_GLOBAL_CONFIG_DIR", otherwise=default)
