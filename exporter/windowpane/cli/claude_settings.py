"""The settings file of Claude Code, with Windowpane's entries: a status line, and hooks that import transcripts.

Other hooks are kept, and another status line is replaced only on request. The file is backed up, and replaced as
a whole.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from windowpane.exceptions import ConfigurationError

STATUS_COMMAND: Final = "windowpane hook status"
IMPORT_COMMAND: Final = "windowpane hook import"
EVENTS: Final = ("PreCompact", "SessionStart")
"""Events that import the transcript: before a compaction, and when a session starts or resumes."""
NEW_FILE_MODE: Final = 0o600


class MergedSettings(NamedTuple):
    """Settings with Windowpane's entries."""

    settings: dict[str, Any]
    foreign_status_line: bool
    """The settings had another status line, which was kept unless it was to be replaced."""


def settings_snippet() -> dict[str, Any]:
    """Return Windowpane's entries alone."""
    return merge_settings({}, replace_status_line=False).settings


def merge_settings(settings: dict[str, Any], *, replace_status_line: bool) -> MergedSettings:
    """Add Windowpane's entries to a copy of *settings*, each once, and change nothing else.

    Raises `ConfigurationError` where the settings do not have the structure that Claude Code reads.
    """
    result = dict(settings)
    hooks = result.get("hooks", {})
    if not isinstance(hooks, dict):
        raise ConfigurationError("hooks", f"a {type(hooks).__name__}", expected="an object")
    result["hooks"] = hooks = dict(hooks)
    for event in EVENTS:
        entries = hooks.get(event, [])
        if not isinstance(entries, list):
            raise ConfigurationError(f"hooks.{event}", f"a {type(entries).__name__}", expected="a list")
        if not any(IMPORT_COMMAND in _commands(entry) for entry in entries):
            hooks[event] = [*entries, {"hooks": [{"type": "command", "command": IMPORT_COMMAND, "timeout": 10}]}]
    line = result.get("statusLine")
    foreign = line is not None and not (isinstance(line, dict) and line.get("command") == STATUS_COMMAND)
    if line is None or (foreign and replace_status_line):
        result["statusLine"] = {"type": "command", "command": STATUS_COMMAND, "padding": 0}
    return MergedSettings(result, foreign)


def _commands(entry: object) -> list[object]:
    hooks = entry.get("hooks") if isinstance(entry, dict) else None
    return [hook.get("command") for hook in hooks if isinstance(hook, dict)] if isinstance(hooks, list) else []


def read_settings(path: Path) -> dict[str, Any]:
    """Read the settings; a missing file is empty. Raises `click.ClickException` for an invalid one."""
    if not path.exists():
        return {}
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise click.ClickException(f"{path} cannot be read as JSON, so it was not changed: {error}") from error
    if not isinstance(settings, dict):
        raise click.ClickException(f"{path} is not a JSON object, so it was not changed")
    return settings


def back_up(path: Path) -> Path | None:
    """Copy the file beside itself and return the path of the copy; None where there is no file."""
    if not path.exists():
        return None
    backup = path.with_name(f"{path.name}.{time.strftime('%Y%m%d-%H%M%S')}.bak")
    number = 1
    while backup.exists():
        backup = backup.with_name(f"{path.name}.{time.strftime('%Y%m%d-%H%M%S')}-{number}.bak")
        number += 1
    _write_like(path, backup, path.read_bytes())
    return backup


def write_settings(path: Path, settings: dict[str, Any]) -> None:
    """Replace the file atomically; a link remains a link."""
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f"{target.name}.{os.getpid()}.new")
    text = json.dumps(settings, indent=2, ensure_ascii=False) + "\n"
    _write_like(target, temporary, text.encode())
    temporary.replace(target)


def _write_like(model: Path, path: Path, content: bytes) -> None:
    """Write a file with the permissions of *model*, else private: settings may hold keys."""
    with os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, NEW_FILE_MODE), "wb") as file:
        file.write(content)
    path.chmod(model.stat().st_mode & 0o777 if model.exists() else NEW_FILE_MODE)
