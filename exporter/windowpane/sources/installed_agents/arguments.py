"""Settings on the command line of a coding agent, which come before those of its files.

Only what decides the level at which the agent compacts is returned: other settings may be long, or secret.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from windowpane.sources.installed_agents.settings import (
    CLAUDE_CODE_KEYS,
    CLAUDE_CODE_VARIABLES,
    CODEX_KEYS,
    read_settings,
)

END_OF_OPTIONS: Final = "--"


def stated_settings(program: str, arguments: Sequence[str], folder: Path) -> dict[str, Any]:
    """Return the settings that the *arguments* of *program* state; it is started in *folder*."""
    read = _PROGRAMS.get(Path(program).stem.lower())
    return {} if read is None else read(arguments, folder)


def _codex(arguments: Sequence[str], _folder: Path) -> dict[str, Any]:
    """Return `-c KEY=VALUE` and `--profile NAME`: a value is TOML, and else a text."""
    settings: dict[str, Any] = {}
    for name in _values(arguments, "-p", "--profile"):
        settings["profile"] = name
    for override in _values(arguments, "-c", "--config"):
        key, _, value = override.partition("=")
        *sections, last = key.strip().split(".")
        if last not in CODEX_KEYS or (sections and (sections[0] != "profiles" or len(sections) != 2)):
            continue
        section = settings
        for name in sections:
            section = section.setdefault(name, {})
        section[last] = _toml_value(value)
    return settings


def _toml_value(text: str) -> object:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()


def _claude_code(arguments: Sequence[str], folder: Path) -> dict[str, Any]:
    """Return `--autocompact`, `--model` and the last `--settings`: JSON, or the path of a file."""
    settings: Mapping[str, Any] = {}
    for value in _values(arguments, "--settings"):
        if value.lstrip().startswith("{"):
            try:
                stated = json.loads(value)
            except (ValueError, RecursionError):
                continue
        else:
            stated = read_settings(folder / value, json.loads, math.inf)
        settings = stated if isinstance(stated, dict) else {}
    environment = settings.get("env")
    variables = environment if isinstance(environment, dict) else {}
    chosen: dict[str, Any] = {
        "env": {name: variables[name] for name in CLAUDE_CODE_VARIABLES if name in variables}
    }
    chosen |= {name: settings[name] for name in CLAUDE_CODE_KEYS if name in settings}
    for tokens in _values(arguments, "--autocompact"):
        chosen["autoCompactWindow"] = tokens
    for model in _values(arguments, "--model"):
        chosen["model"] = model
    return chosen


def _values(arguments: Sequence[str], *options: str) -> Iterator[str]:
    """Yield the values of an option, behind it or after `=`; of a letter also without either."""
    before = iter(arguments)
    for argument in before:
        if argument == END_OF_OPTIONS:
            return
        if argument in options:
            value = next(before, None)
            if value is not None:
                yield value
            continue
        for option in options:
            is_letter = not option.startswith("--")
            if argument.startswith(f"{option}=") or (is_letter and argument.startswith(option)):
                yield argument.removeprefix(option).removeprefix("=")


_PROGRAMS: Final[Mapping[str, Callable[[Sequence[str], Path], dict[str, Any]]]] = {
    "codex": _codex,
    "claude": _claude_code,
}
