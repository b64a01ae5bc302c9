"""The level at which a coding agent on this machine compacts, as its own settings state it.

Settings are read and never written, and nothing but the number is kept. They count only for a session that
started after they were last changed: those of an earlier session are not known.
"""

from __future__ import annotations

import json
import math
import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from windowpane.core.agents import (
    CLAUDE_CODE,
    CLAUDE_CODE_AGENT,
    CLAUDE_CODE_BUFFER_TOKENS,
    CLAUDE_CODE_RESERVE_TOKENS,
    CODEX,
    CODEX_AGENT,
)

MAXIMUM_BYTES: Final = 1_000_000
"""Larger files are not settings."""
NEVER: Final = 0
"""The level of an agent that does not compact by itself."""

Settings = Mapping[str, Any]
Environment = Mapping[str, str]


class _SettingsFile(NamedTuple):
    """The settings of one agent: the variable that names their folder, the folder in the home, and the file."""

    variable: str
    folder: str
    name: str
    parse: Callable[[str], Any]
    level: Callable[[Settings, Environment, int | None], int | None]


def stated_level(
    agent: str,
    *,
    limit_tokens: int | None,
    started_at: float | None,
    environment: Environment | None = None,
) -> int | None:
    """Return the used tokens at which *agent* compacts by its settings; 0 if never, None if they do not state it.

    *limit_tokens* is the size of the session's window, which most settings are a share of; *environment* holds
    the variables of the agent's process, where they are known.
    """
    file = _FILES.get(agent)
    if file is None or started_at is None:
        return None
    folder = os.environ.get(file.variable) or Path.home() / file.folder
    settings = _read(Path(folder) / file.name, file.parse, started_at)
    return None if settings is None else file.level(settings, environment or {}, limit_tokens)


def _read(path: Path, parse: Callable[[str], Any], started_at: float) -> Settings | None:
    """Return the settings; empty without a file, None where they were changed later or cannot be read."""
    try:
        status = path.stat()
        if status.st_mtime > started_at or status.st_size > MAXIMUM_BYTES:
            return None
        settings = parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return None
    return settings if isinstance(settings, dict) else {}


def _claude_code(settings: Settings, environment: Environment, limit: int | None) -> int | None:
    """Return the smaller of two levels: of the window to compact in, and of a percentage of what can be used."""
    variables = {**_section(settings, "env"), **environment}
    if variables.get("DISABLE_AUTO_COMPACT") in ("1", "true"):
        return NEVER
    window = _number(variables.get("CLAUDE_CODE_AUTO_COMPACT_WINDOW")) or _number(
        settings.get("autoCompactWindow")
    )
    percentage = _number(variables.get("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE"))
    size = min((value for value in (window, limit) if value), default=None)
    if size is None or (window is None and percentage is None):
        return None
    usable = size - CLAUDE_CODE_RESERVE_TOKENS
    level = usable - CLAUDE_CODE_BUFFER_TOKENS
    if percentage is not None and percentage <= 100:
        level = min(level, usable * percentage / 100)
    return max(1, int(level))


def _codex(settings: Settings, _environment: Environment, _limit: int | None) -> int | None:
    profile = _section(_section(settings, "profiles"), str(settings.get("profile", "")))
    key = "model_auto_compact_token_limit"
    tokens = _number(profile.get(key)) or _number(settings.get(key))
    return None if tokens is None else int(tokens)


def _gemini(settings: Settings, _environment: Environment, limit: int | None) -> int | None:
    return _share(_section(settings, "model").get("compressionThreshold"), limit)


def _qwen(settings: Settings, _environment: Environment, limit: int | None) -> int | None:
    chat = _section(_section(settings, "model"), "chatCompression")
    return _share(chat.get("contextPercentageThreshold"), limit)


def _pi(settings: Settings, _environment: Environment, limit: int | None) -> int | None:
    compaction = _section(settings, "compaction")
    if compaction.get("enabled") is False:
        return NEVER
    reserved = _number(compaction.get("reserveTokens"))
    return int(limit - reserved) if limit and reserved and reserved < limit else None


def _opencode(settings: Settings, _environment: Environment, _limit: int | None) -> int | None:
    return NEVER if _section(settings, "compaction").get("auto") is False else None


def _goose(settings: Settings, environment: Environment, limit: int | None) -> int | None:
    name = "GOOSE_AUTO_COMPACT_THRESHOLD"
    value = environment.get(name, settings.get(name))
    return NEVER if value in ("0", "0.0", 0) else _share(value, limit)


def _section(settings: Settings, name: str) -> Settings:
    section = settings.get(name)
    return section if isinstance(section, dict) else {}


def _number(value: object) -> float | None:
    """Return a positive number, also one that is written as text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if 0 < number < math.inf else None


def _share(value: object, limit: int | None) -> int | None:
    share = _number(value)
    return int(share * limit) if share is not None and limit and share <= 1 else None


_CLAUDE: Final = _SettingsFile("CLAUDE_CONFIG_DIR", ".claude", "settings.json", json.loads, _claude_code)
_CODEX: Final = _SettingsFile("CODEX_HOME", ".codex", "config.toml", tomllib.loads, _codex)
_FILES: Final[Mapping[str, _SettingsFile]] = {
    CLAUDE_CODE: _CLAUDE,
    CLAUDE_CODE_AGENT: _CLAUDE,
    CODEX: _CODEX,
    CODEX_AGENT: _CODEX,
    "gemini-cli": _SettingsFile("", ".gemini", "settings.json", json.loads, _gemini),
    "qwen-code": _SettingsFile("", ".qwen", "settings.json", json.loads, _qwen),
    "pi": _SettingsFile("PI_CODING_AGENT_DIR", ".pi/agent", "settings.json", json.loads, _pi),
    "opencode": _SettingsFile("", ".config/opencode", "opencode.json", json.loads, _opencode),
    "goose": _SettingsFile("", ".config/goose", "config.yaml", yaml.safe_load, _goose),
}
