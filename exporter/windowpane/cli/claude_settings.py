"""Windowpane's entries in the settings of Claude Code: a status line, and hooks that import the transcript.

Pure functions over the settings as a mapping. What somebody else wrote stays: other hooks are kept beside ours,
and a foreign status line is only replaced when that is asked for.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from windowpane.exceptions import ConfigurationError

STATUS_COMMAND: Final = "windowpane hook status"
IMPORT_COMMAND: Final = "windowpane hook import"
EVENTS: Final = ("PreCompact", "SessionStart")
"""When the transcript is imported: before a compaction, and when a session begins or resumes."""


class Merged(NamedTuple):
    """Settings with our entries in them."""

    settings: dict[str, Any]
    foreign_status_line: bool
    """The settings have a status line of somebody else, which was kept unless it was to be replaced."""


def snippet() -> dict[str, Any]:
    """Our entries alone."""
    return merged({}, replace_status_line=False).settings


def merged(settings: dict[str, Any], *, replace_status_line: bool) -> Merged:
    """*settings* with our entries; what is there already is not added twice, and nothing else changes.

    Raises `ConfigurationError` where the settings are not of the shape that Claude Code reads.
    """
    result = dict(settings)
    hooks = result.get("hooks", {})
    if not isinstance(hooks, dict):
        raise ConfigurationError("hooks", f"a {type(hooks).__name__}", expected="an object")
    result["hooks"] = hooks = dict(hooks)
    for event in EVENTS:
        known = hooks.get(event, [])
        if not isinstance(known, list):
            raise ConfigurationError(f"hooks.{event}", f"a {type(known).__name__}", expected="a list")
        if not any(IMPORT_COMMAND in _commands(entry) for entry in known):
            hooks[event] = [*known, {"hooks": [{"type": "command", "command": IMPORT_COMMAND, "timeout": 10}]}]
    line = result.get("statusLine")
    foreign = line is not None and not (isinstance(line, dict) and line.get("command") == STATUS_COMMAND)
    if line is None or (foreign and replace_status_line):
        result["statusLine"] = {"type": "command", "command": STATUS_COMMAND, "padding": 0}
    return Merged(result, foreign)


def _commands(entry: object) -> list[object]:
    hooks = entry.get("hooks") if isinstance(entry, dict) else None
    return [hook.get("command") for hook in hooks if isinstance(hook, dict)] if isinstance(hooks, list) else []
