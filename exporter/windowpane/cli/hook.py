"""`windowpane hook`: a status line for Claude Code, and hooks that import its transcripts and give back rules."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from windowpane.cli.options import report_errors, store_option, store_path_or_default
from windowpane.config.paths import data_folder
from windowpane.core.store_names import StoreName, StoreUrl, full_name
from windowpane.exceptions import ConfigurationError
from windowpane.sources.hooks.compacted_session import print_given_back
from windowpane.sources.hooks.status import print_status
from windowpane.sources.hooks.transcript import import_named_transcript
from windowpane.sources.installed_agents.locations import claude_folder

EVENTS: Final = ("PreCompact", "SessionStart", "SessionEnd")
"""Events that import the transcript: before a compaction, and when a session starts, resumes or ends."""
COMPACTED: Final = "SessionStart"
"""The event that follows a compaction too."""
NEW_FILE_MODE: Final = 0o600
STATUS_LINE_ADDED: Final = "claude-status-line-added"
"""The file in the data folder by which a status line that its user removed is not added again."""
_UNSAFE_COMMAND: Final = re.compile(r"""(?<!\s-P)(?<!\s-I)\s-m\s+windowpane\s+hook\b""")
"""A module that the interpreter may take from the current folder, as earlier releases wrote."""


@click.group("hook")
def command() -> None:
    """Show the window in Claude Code's status line, import transcripts, and give back rules after a compaction.

    \b
    Example:
      windowpane hook install --write
    """


@command.command("install")
@click.option("--write", is_flag=True, help="Write the settings file instead of printing the entries.")
@click.option("--replace-status-line", is_flag=True, help="Replace an existing status line.")
@click.option(
    "--give-back",
    is_flag=True,
    help="After a compaction, add the user's rules and open work to the window again.",
)
@click.option(
    "--settings",
    "settings_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Settings file; by default ~/.claude/settings.json, or the one in CLAUDE_CONFIG_DIR.",
)
@store_option
@report_errors
def install(
    *,
    write: bool,
    replace_status_line: bool,
    give_back: bool,
    settings_path: Path | None,
    store_path: StoreName | None,
) -> None:
    """Print the settings for Claude Code, or write them, with a backup of the file.

    The commands name this installation, and a store other than the default one, by their whole path, because
    Claude Code may be started without this environment.

    \b
    Example:
      windowpane hook install --write
    """
    path = settings_path or claude_folder() / "settings.json"
    commands = HookCommands.of(_store_to_name(store_path))
    if not write:
        click.echo(json.dumps(settings_snippet(commands, give_back=give_back), indent=2))
        click.echo(f"add this to {path}, or run `windowpane hook install --write`", err=True)
        return
    before = read_settings(path)
    result = merge_settings(before, commands, replace_status_line=replace_status_line, give_back=give_back)
    if result.foreign_status_line and not replace_status_line:
        click.echo("the existing status line was kept; --replace-status-line replaces it", err=True)
    if result.settings == before:
        click.echo(f"{path} is up to date")
        return
    backup = back_up(path)
    write_settings(path, result.settings)
    click.echo(f"wrote {path}" + (f"; the previous file is {backup.name}" if backup else ""))


def _store_to_name(given: StoreName | None) -> StoreName | None:
    """Return the store that the commands have to name; None for the default one."""
    store = store_path_or_default(given)
    if isinstance(store, StoreUrl):
        if str(store) != store.url:
            raise click.ClickException(
                "the settings would hold the password of the store; name the store without it and put the "
                "password into ~/.pgpass"
            )
        return store
    return None if store == data_folder() / "windowpane.db" else store.absolute()


@command.command("status")
@store_option
def status(store_path: StoreName | None) -> None:
    """Print one line about the window of the session that Claude Code describes on standard input.

    \b
    Example:
      windowpane hook status < statusline.json
    """
    print_status(None if store_path is None else full_name(store_path))


@command.command("import")
@store_option
def import_transcript(store_path: StoreName | None) -> None:
    """Import the transcript that a hook of Claude Code names on standard input, in the background.

    Never fails, which would block the agent. Prints only why a session is not recorded, once per session and in
    the form that Claude Code shows to its user.

    \b
    Example:
      echo '{"transcript_path": "session.jsonl"}' | windowpane hook import
    """
    import_named_transcript(None if store_path is None else full_name(store_path))


@command.command("give-back")
def give_back() -> None:
    """Print what a model gets back after a compaction, for the session that a hook describes on standard input.

    These are the rules of its user, and lines that list work as open, in at most 500 tokens: without those that
    the agent's program puts back by itself. Never fails: a failure is shown to the user of the agent.

    \b
    Example:
      echo '{"source": "compact", "transcript_path": "session.jsonl"}' | windowpane hook give-back
    """
    print_given_back()


@command.command("add-status-line")
def add_status_line() -> None:
    """Add the status line to Claude Code's settings if they have none; once, so that it can be removed.

    The plugin of Claude Code runs it when a session starts. Prints nothing and never fails, as `import`.

    \b
    Example:
      windowpane hook add-status-line
    """
    path, added = claude_folder() / "settings.json", data_folder() / STATUS_LINE_ADDED
    with suppress(OSError, click.ClickException):
        if added.exists():
            return
        settings = read_settings(path)
        if settings.get("statusLine") is None:
            back_up(path)
            write_settings(path, {**settings, "statusLine": _status_line(HookCommands.of())})
        added.parent.mkdir(parents=True, exist_ok=True)
        added.touch()


class HookCommands(NamedTuple):
    """The commands that Claude Code runs."""

    status: str
    import_: str
    give_back: str

    @classmethod
    def of(cls, store: StoreName | None = None) -> HookCommands:
        """Return the commands of this installation, on *store* or the configured one."""
        options = [] if store is None else ["--store", str(store)]
        status, import_ = (_quoted([*_program(), "hook", name, *options]) for name in ("status", "import"))
        return cls(status, import_, _quoted([*_program(), "hook", "give-back"]))


def _program() -> list[str]:
    """Return this program by its whole path: the script next to the interpreter, else its module."""
    interpreter = Path(sys.executable)
    script = interpreter.with_name("windowpane.exe" if interpreter.suffix == ".exe" else "windowpane")
    # -P: Claude Code starts it in a project's folder, whose modules would be imported
    return [str(script)] if script.exists() else [str(interpreter), "-P", "-m", "windowpane"]


def _quoted(arguments: list[str]) -> str:
    """Return a command for the shell of the platform."""
    return subprocess.list2cmdline(arguments) if os.name == "nt" else shlex.join(arguments)


def _is_ours(command: object, name: str) -> bool:
    """Return whether a command is a hook of Windowpane, of this installation or another."""
    pattern = rf"windowpane(\.exe)?['\"]? hook {name}\b"
    return isinstance(command, str) and re.search(pattern, command) is not None


class MergedSettings(NamedTuple):
    """Settings with Windowpane's entries."""

    settings: dict[str, Any]
    foreign_status_line: bool
    """The settings had another status line, which was kept unless it was to be replaced."""


def settings_snippet(commands: HookCommands, *, give_back: bool = False) -> dict[str, Any]:
    """Return Windowpane's entries alone."""
    return merge_settings({}, commands, replace_status_line=False, give_back=give_back).settings


def merge_settings(
    settings: dict[str, Any], commands: HookCommands, *, replace_status_line: bool, give_back: bool = False
) -> MergedSettings:
    """Add Windowpane's entries to a copy of *settings*, each once, and change nothing else.

    The entry that gives back is only added with *give_back*. Entries of an earlier installation get the new
    command. Raises `ConfigurationError` where the settings do not
    have the structure that Claude Code reads.
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
        hooks[event] = _merged(entries, "import", commands.import_, {})
        if event == COMPACTED:
            matcher = {"matcher": "compact"} if give_back else None
            hooks[event] = _merged(hooks[event], "give-back", commands.give_back, matcher)
    line = result.get("statusLine")
    ours = isinstance(line, dict) and _is_ours(line.get("command"), "status")
    if isinstance(line, dict) and ours:
        result["statusLine"] = {**line, "command": commands.status}
    elif line is None or replace_status_line:
        result["statusLine"] = _status_line(commands)
    return MergedSettings(result, foreign_status_line=line is not None and not ours)


def _status_line(commands: HookCommands) -> dict[str, Any]:
    return {"type": "command", "command": commands.status, "padding": 0}


def _merged(entries: list[object], name: str, command: str, added: dict[str, str] | None) -> list[object]:
    """Return the entries of an event with *command* as the hook *name*; a missing one is *added*, if any."""
    updated = [_with_command(entry, name, command) for entry in entries]
    if added is None or any(command in _commands(entry) for entry in updated):
        return updated
    return [*updated, {**added, "hooks": [{"type": "command", "command": command, "timeout": 10}]}]


def _with_command(entry: object, name: str, command: str) -> object:
    """Return *entry* with *command* in place of the hook *name* of another installation."""
    if not any(_is_ours(given, name) for given in _commands(entry)):
        return entry
    assert isinstance(entry, dict)
    hooks = [
        {**hook, "command": command} if isinstance(hook, dict) and _is_ours(hook.get("command"), name) else hook
        for hook in entry["hooks"]
    ]
    return {**entry, "hooks": hooks}


def imports_of_projects(settings: dict[str, Any]) -> list[str]:
    """Return the commands of Windowpane in the settings that import modules of the folder they start in."""
    hooks = settings.get("hooks")
    lists = hooks.values() if isinstance(hooks, dict) else ()
    entries = [entry for entries in lists if isinstance(entries, list) for entry in entries]
    given = [*_commands({"hooks": [settings.get("statusLine")]}), *chain.from_iterable(map(_commands, entries))]
    return [command for command in given if isinstance(command, str) and _UNSAFE_COMMAND.search(command)]


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
    """Copy the file next to itself and return the path of the copy; None where there is no file."""
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
