"""The level at which a coding agent on this machine compacts, and its window, as its own settings state them.

Settings are read and never written, and nothing but the numbers is kept. They count only for a session that
started after they were last changed: those of an earlier session are not known.
"""

from __future__ import annotations

import json
import math
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from windowpane.core.agents import (
    CLAUDE_CODE,
    CLAUDE_CODE_AGENT,
    CLAUDE_CODE_BUFFER_TOKENS,
    CLAUDE_CODE_LARGE_SUFFIX,
    CLAUDE_CODE_LARGE_WINDOW,
    CLAUDE_CODE_RESERVE_TOKENS,
    CLAUDE_CODE_SMALL_WINDOW,
    CLAUDE_CODE_SMALLEST_WINDOW,
    CODEX,
    CODEX_AGENT,
    CODEX_COMPACTION_SHARE,
    EvidentWindow,
)
from windowpane.sources.installed_agents.status_line_windows import window_in_status_line

MAXIMUM_BYTES: Final = 1_000_000
"""Larger files are not settings."""
NEVER: Final = 0
"""The level of an agent that does not compact by itself."""

CODEX_LEVEL: Final = "model_auto_compact_token_limit"
CODEX_WINDOW: Final = "model_context_window"
CODEX_KEYS: Final = (CODEX_LEVEL, CODEX_WINDOW, "profile")
"""Settings of Codex that decide its level."""
CLAUDE_CODE_VARIABLES: Final = (
    "DISABLE_COMPACT", "DISABLE_AUTO_COMPACT", "CLAUDE_CODE_AUTO_COMPACT_WINDOW",
    "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "CLAUDE_CODE_MAX_OUTPUT_TOKENS", "CLAUDE_CODE_DISABLE_1M_CONTEXT",
    "CLAUDE_CODE_MAX_CONTEXT_TOKENS", "ANTHROPIC_MODEL",
)  # fmt: skip
"""Variables of Claude Code that decide its level or its window."""
CLAUDE_CODE_KEYS: Final = ("autoCompactWindow", "autoCompactEnabled", "model")
"""Settings of Claude Code that decide its level or its window."""

QWEN_CODE_RESERVE_TOKENS: Final = 33_000
"""Free tokens that Qwen Code reserves for a summary, even where its setting states a higher level."""
CLAUDE_CODE_SMALLEST_LEVEL: Final = (
    CLAUDE_CODE_SMALLEST_WINDOW - CLAUDE_CODE_RESERVE_TOKENS - CLAUDE_CODE_BUFFER_TOKENS
)
"""Level of the smallest window that its setting accepts."""

_TRUE: Final = ("1", "true")

Settings = Mapping[str, Any]
Environment = Mapping[str, str]


class _Agent(NamedTuple):
    """The files of one agent's settings, and how they state the level."""

    moved_by: tuple[tuple[str, str], ...]
    """Variables that move the user's settings, and the folder below the one that each names; the first counts."""
    folder: str
    """The folder in the home without them."""
    name: str
    parse: Callable[[str], Any]
    level: Callable[[Settings, Environment, int | None], int | None]
    in_project: tuple[str, ...] = ()
    """Files in the session's folder, each before those in front of it."""
    in_parents: bool = False
    """They are also read in the folders above, up to that of the repository; the nearest one decides."""
    trusts: Callable[[Settings, Sequence[Path]], bool] = lambda _user, _folders: True
    """Returns whether the user's settings let those of the folders count."""


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """The settings and status lines of the agents on this machine, as `AgentSettings`."""

    environment: Environment = field(default_factory=dict)
    """The variables of the agent's process, as far as they are known."""
    overrides: Settings = field(default_factory=dict)
    """Settings on its command line."""

    def level(self, agent: str, *, limit_tokens: int | None, started_at: float | None, folder: str) -> int | None:
        """Return the level by the settings, as `stated_level` does."""
        return stated_level(
            agent,
            limit_tokens=limit_tokens,
            started_at=started_at,
            folder=folder,
            environment=self.environment,
            overrides=self.overrides,
        )

    def window(
        self, agent: str, model: str, *, session_id: str, started_at: float | None, folder: str
    ) -> EvidentWindow | None:
        """Return the window by the settings, else by the status line of the session."""
        tokens = stated_window(
            agent,
            model,
            started_at=started_at,
            folder=folder,
            environment=self.environment,
            overrides=self.overrides,
        )
        if tokens is not None:
            return EvidentWindow(tokens, "settings")
        tokens = window_in_status_line(session_id, model)
        return None if tokens is None else EvidentWindow(tokens, "status_line")


def stated_level(
    agent: str,
    *,
    limit_tokens: int | None,
    started_at: float | None,
    folder: str = "",
    environment: Environment | None = None,
    overrides: Settings | None = None,
) -> int | None:
    """Return the used tokens at which *agent* compacts by its settings; 0 if never, None if they do not state it.

    *limit_tokens* is the size of the session's window, which most settings are a share of; *folder* is the one
    in which it started, whose settings come before the user's; *environment* holds the variables of the agent's
    process and *overrides* the settings on its command line, where they are known.
    """
    program = _AGENTS.get(agent)
    settings = None if program is None else _settings(program, started_at, folder)
    if program is None or settings is None:
        return None
    return program.level(_merged(settings, overrides or {}), environment or {}, limit_tokens)


def stated_window(
    agent: str,
    model: str,
    *,
    started_at: float | None,
    folder: str = "",
    environment: Environment | None = None,
    overrides: Settings | None = None,
) -> int | None:
    """Return the size of the window in which *agent* runs *model* by its settings; None if they do not state it.

    The other arguments are those of `stated_level`. Only Claude Code has settings that its recordings lack.
    """
    program = _AGENTS.get(agent)
    settings = None if program is not _CLAUDE else _settings(program, started_at, folder)
    return (
        None if settings is None else _claude_window(_merged(settings, overrides or {}), environment or {}, model)
    )


def _settings(program: _Agent, started_at: float | None, folder: str) -> Settings | None:
    """Return the user's settings and those of the folder in their place; None where they are not known."""
    settings = None
    if started_at is not None:
        settings = read_settings(_user_folder(program) / program.name, program.parse, started_at)
    if started_at is None or settings is None:
        return None
    folders = _folders(Path(folder), upwards=program.in_parents) if Path(folder).is_absolute() else []
    if program.in_project and folders and program.trusts(settings, folders):
        for path in (one / name for one in folders for name in program.in_project):
            project = read_settings(path, program.parse, started_at)
            if project is None:
                return None
            settings = _merged(settings, project)
    return settings


@dataclass(frozen=True, slots=True)
class SettingLines:
    """Lines that set the level of an agent, to paste into its settings."""

    file: str
    """The user's settings; those of a project come before them."""
    lines: str
    note: str = ""


def lines_for_level(agent: str, level_tokens: int, *, limit_tokens: int | None) -> SettingLines | None:
    """Return the settings by which *agent* compacts at *level_tokens*; None where no setting is known.

    They are what `stated_level` reads. Shares are of *limit_tokens*, the size of the window.
    """
    if agent == CLAUDE_CODE:
        window = max(
            CLAUDE_CODE_SMALLEST_WINDOW, level_tokens + CLAUDE_CODE_RESERVE_TOKENS + CLAUDE_CODE_BUFFER_TOKENS
        )
        note = f"Claude Code compacts {window - level_tokens:,} tokens below this window."
        return SettingLines("~/.claude/settings.json", json.dumps({"autoCompactWindow": window}), note)
    if agent == CLAUDE_CODE_AGENT and limit_tokens:
        usable = limit_tokens - CLAUDE_CODE_RESERVE_TOKENS
        percentage = round(100 * level_tokens / usable)
        variables = {"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": str(percentage)}
        note = (
            f"{percentage}% are {usable * percentage // 100:,} tokens. "
            "It holds for main sessions as well: there is no setting for sub-agents alone."
        )
        return SettingLines("~/.claude/settings.json", json.dumps({"env": variables}), note)
    if agent in (CODEX, CODEX_AGENT):
        note = "One setting for an agent and its sub-agents."
        return SettingLines("~/.codex/config.toml", f"{CODEX_LEVEL} = {level_tokens}", note)
    return None if not limit_tokens else _lines_of_share(agent, level_tokens, limit_tokens)


def _lines_of_share(agent: str, level_tokens: int, limit_tokens: int) -> SettingLines | None:
    """Return the settings of agents whose level is a share of the window, or its free part."""
    share = round(min(1.0, level_tokens / limit_tokens), 3)
    if agent == "goose":
        return SettingLines("~/.config/goose/config.yaml", f"GOOSE_AUTO_COMPACT_THRESHOLD: {share}")
    keys: dict[str, tuple[str, Settings]] = {
        "gemini-cli": (".gemini/settings.json", {"model": {"compressionThreshold": share}}),
        "qwen-code": (".qwen/settings.json", {"context": {"autoCompactThreshold": share}}),
        "pi": (".pi/agent/settings.json", {"compaction": {"reserveTokens": limit_tokens - level_tokens}}),
    }  # fmt: skip
    file, settings = keys.get(agent, ("", {}))
    return SettingLines(f"~/{file}", json.dumps(settings)) if file else None


def codex_settings(environment: Environment) -> Settings:
    """Return the settings of Codex's user in the home that *environment* names; empty if they cannot be read."""
    return read_settings(codex_home(environment) / "config.toml", tomllib.loads, math.inf) or {}


def codex_home(environment: Environment) -> Path:
    """Return the folder of Codex's settings and login."""
    home = environment.get("CODEX_HOME")
    return Path(home) if home else Path(environment.get("HOME", "~")).expanduser() / ".codex"


def _user_folder(program: _Agent) -> Path:
    moved = ((os.environ.get(variable), below) for variable, below in program.moved_by)
    return next((Path(folder) / below for folder, below in moved if folder), Path.home() / program.folder)


def _folders(folder: Path, *, upwards: bool) -> list[Path]:
    """Return the session's folder, *upwards* with those above it from the repository's on."""
    above = (folder, *folder.parents) if upwards else ()
    root = next((number for number, one in enumerate(above) if (one / ".git").exists()), 0)
    return [folder] if not root else list(reversed(above[: root + 1]))


def _merged(settings: Settings, other: Settings) -> Settings:
    """Return *settings* with the values of *other* in their place, sections key by key."""
    sections = {
        name: _merged(value, other[name])
        for name, value in settings.items()
        if isinstance(value, dict) and isinstance(other.get(name), dict)
    }
    return {**settings, **other, **sections}


def _codex_trusts(user: Settings, folders: Sequence[Path]) -> bool:
    projects = _section(user, "projects")
    return any(_section(projects, str(folder)).get("trust_level") == "trusted" for folder in folders)


def read_settings(path: Path, parse: Callable[[str], Any], started_at: float) -> Settings | None:
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
    never, disabled, own_window, share, output, small, *_ = map(variables.get, CLAUDE_CODE_VARIABLES)
    if never in _TRUE or disabled in _TRUE or settings.get("autoCompactEnabled") is False:
        return NEVER
    window = _number(own_window) or _number(settings.get("autoCompactWindow"))
    if small in _TRUE:
        window = min(window or math.inf, CLAUDE_CODE_SMALL_WINDOW)
    percentage, reserve = _number(share), _number(output)
    size = min((value for value in (window, limit) if value), default=None)
    if size is None or (window is None and percentage is None and reserve is None):
        return None
    usable = size - min(reserve or math.inf, CLAUDE_CODE_RESERVE_TOKENS)
    level = usable - CLAUDE_CODE_BUFFER_TOKENS
    if percentage is not None and percentage <= 100:
        level = min(level, usable * percentage / 100)
    return max(1, int(level))


def _claude_window(settings: Settings, environment: Environment, model: str) -> int | None:
    """Return the smaller window if the larger one is switched off, the larger one if the user's model has it.

    The size in a variable is that of models which Claude Code does not know.
    """
    variables = {**_section(settings, "env"), **environment}
    *_, small, unknown, chosen = map(variables.get, CLAUDE_CODE_VARIABLES)
    if small in _TRUE:
        return CLAUDE_CODE_SMALL_WINDOW
    name, suffix, _ = str(chosen or settings.get("model")).partition(CLAUDE_CODE_LARGE_SUFFIX)
    if suffix and name and name in model:
        return CLAUDE_CODE_LARGE_WINDOW
    tokens = _number(unknown)
    return None if tokens is None or "claude" in model else int(tokens)


def _codex(settings: Settings, _environment: Environment, _limit: int | None) -> int | None:
    """Return the smaller of the level and 90% of the window, as far as they are set."""
    profile = _section(_section(settings, "profiles"), str(settings.get("profile", "")))
    tokens, window = (
        _number(profile.get(key)) or _number(settings.get(key)) for key in (CODEX_LEVEL, CODEX_WINDOW)
    )
    levels = (tokens, window and window * CODEX_COMPACTION_SHARE)
    return min((int(level) for level in levels if level is not None), default=None)


def _gemini(settings: Settings, _environment: Environment, limit: int | None) -> int | None:
    return _share(_section(settings, "model").get("compressionThreshold"), limit)


def _qwen(settings: Settings, _environment: Environment, limit: int | None) -> int | None:
    """Return the share of the window, at most the window without the reserve for a summary."""
    level = _share(_section(settings, "context").get("autoCompactThreshold"), limit)
    highest = (limit or 0) - QWEN_CODE_RESERVE_TOKENS
    return level if level is None or highest <= 0 else min(level, highest)


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


_CLAUDE: Final = _Agent(
    (("CLAUDE_CONFIG_DIR", ""),), ".claude", "settings.json", json.loads, _claude_code,
    (".claude/settings.json", ".claude/settings.local.json"),
)  # fmt: skip
_CODEX: Final = _Agent(
    (("CODEX_HOME", ""),), ".codex", "config.toml", tomllib.loads, _codex,
    (".codex/config.toml",), in_parents=True, trusts=_codex_trusts,
)  # fmt: skip
_AGENTS: Final[Mapping[str, _Agent]] = {
    CLAUDE_CODE: _CLAUDE,
    CLAUDE_CODE_AGENT: _CLAUDE,
    CODEX: _CODEX,
    CODEX_AGENT: _CODEX,
    "gemini-cli": _Agent(
        (("GEMINI_CLI_HOME", ".gemini"),), ".gemini", "settings.json", json.loads, _gemini,
        (".gemini/settings.json",),
    ),
    "qwen-code": _Agent(
        (("QWEN_HOME", ""),), ".qwen", "settings.json", json.loads, _qwen, (".qwen/settings.json",)
    ),
    "pi": _Agent(
        (("PI_CODING_AGENT_DIR", ""),), ".pi/agent", "settings.json", json.loads, _pi, (".pi/settings.json",)
    ),
    "opencode": _Agent(
        (("XDG_CONFIG_HOME", "opencode"),), ".config/opencode", "opencode.json", json.loads, _opencode,
        ("opencode.json",), in_parents=True,
    ),
    "goose": _Agent(
        (("GOOSE_PATH_ROOT", "config"), ("XDG_CONFIG_HOME", "goose")), ".config/goose", "config.yaml",
        yaml.safe_load, _goose,
    ),
}  # fmt: skip
