"""`windowpane hook`: a status line for Claude Code, and hooks that import its transcript."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import click

from windowpane.cli.claude_settings import merged, snippet
from windowpane.cli.options import chosen_store, plain_errors, store_option
from windowpane.core.limits import WindowLimits
from windowpane.exceptions import WindowpaneError
from windowpane.text.status_line import status_line

INPUT_CHARACTERS: Final = 1_000_000
"""What is read of standard input at most."""
NEW_FILE_MODE: Final = 0o600
"""Of settings that were not there before."""
USAGE_NAMES: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


@click.group("hook")
def command() -> None:
    """Show the window in Claude Code's status line and import transcripts from its hooks.

    \b
    Example:
      windowpane hook install --write
    """


@command.command("install")
@click.option("--write", is_flag=True, help="Write the settings file instead of printing what belongs in it.")
@click.option("--replace-status-line", is_flag=True, help="Replace a status line that somebody else set.")
@click.option(
    "--settings",
    "settings_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The settings file; by default ~/.claude/settings.json.",
)
@plain_errors
def install(*, write: bool, replace_status_line: bool, settings_path: Path | None) -> None:
    """Print the settings for Claude Code, or write them with a backup of what was there.

    \b
    Example:
      windowpane hook install --write
    """
    path = settings_path or Path.home() / ".claude" / "settings.json"
    if not write:
        click.echo(json.dumps(snippet(), indent=2))
        click.echo(f"add this to {path}, or run `windowpane hook install --write`", err=True)
        return
    before = _read(path)
    result = merged(before, replace_status_line=replace_status_line)
    if result.foreign_status_line and not replace_status_line:
        click.echo("kept the status line that is set; --replace-status-line takes its place", err=True)
    if result.settings == before:
        click.echo(f"{path} has everything already")
        return
    backup = _back_up(path)
    _write(path, result.settings)
    click.echo(f"wrote {path}" + (f"; what was there is in {backup.name}" if backup else ""))


@command.command("status")
@store_option
def status(store_path: Path | None) -> None:
    """Print one line about the window of the session that Claude Code describes on standard input.

    \b
    Example:
      windowpane hook status < statusline.json
    """
    line = ""
    with suppress(Exception):  # a status line is no place for an error
        described = json.loads(sys.stdin.read(INPUT_CHARACTERS))
        line = describe(described, chosen_store(store_path)) if isinstance(described, dict) else ""
    click.echo(line)


@command.command("import")
@store_option
def import_transcript(store_path: Path | None) -> None:
    """Import the transcript that a hook of Claude Code names on standard input, in the background.

    Prints nothing and never fails: what a hook prints goes to the model, and a failing one blocks the agent.

    \b
    Example:
      echo '{"transcript_path": "session.jsonl"}' | windowpane hook import
    """
    with suppress(Exception):  # whatever came in, the agent goes on
        named = json.loads(sys.stdin.read(INPUT_CHARACTERS)).get("transcript_path")
        if isinstance(named, str) and Path(named).is_file():
            start_import(Path(named), store_path)


def start_import(transcript: Path, store_path: Path | None) -> subprocess.Popen[bytes]:
    """Begin importing one transcript without waiting for it."""
    arguments = [sys.executable, "-m", "windowpane", "import"]
    if store_path is not None:
        arguments += ["--store", str(store_path)]
    arguments += ["--", str(transcript)]
    return subprocess.Popen(  # noqa: S603  # our own program, and a file that exists
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def describe(described: dict[str, Any], store_path: Path) -> str:
    """The status line of a session: what Claude Code says of it, and what the store knows of its pace."""
    window = _mapping(described.get("context_window"))
    usage = _mapping(window.get("current_usage"))
    used = sum(_count(usage.get(name)) for name in USAGE_NAMES)
    limit = _count(window.get("context_window_size")) or None
    velocity = red_in = None
    stored = _stored(str(described.get("session_id") or ""), store_path)
    if stored is not None:
        velocity, red_in = stored.velocity, stored.turns_until_red
        used, limit = used or stored.used_tokens, limit or stored.limit_tokens
    if not used:
        return ""
    limits = None if limit is None else WindowLimits.of(limit, "provider")
    return status_line(
        zone=None if limits is None else limits.zone_of(used),
        utilization=None if limit is None else used / limit,
        used_tokens=used,
        limit_tokens=limit,
        velocity=velocity,
        red_in=red_in,
    )


def _stored(session_id: str, store_path: Path) -> Any:
    """The session's row, where there is a store that can be read and knows it."""
    if not session_id or not store_path.exists():
        return None
    from windowpane.store.reads import SqliteReader

    try:
        with closing(SqliteReader(store_path)) as reader:
            return reader.session(session_id)
    except WindowpaneError:
        return None


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise click.ClickException(f"{path} cannot be read as JSON, so it was left alone: {error}") from error
    if not isinstance(found, dict):
        raise click.ClickException(f"{path} is no JSON object, so it was left alone")
    return found


def _back_up(path: Path) -> Path | None:
    """Copy what is there to a file of its own; None where there is nothing."""
    if not path.exists():
        return None
    backup = path.with_name(f"{path.name}.{time.strftime('%Y%m%d-%H%M%S')}.bak")
    number = 1
    while backup.exists():
        backup = backup.with_name(f"{path.name}.{time.strftime('%Y%m%d-%H%M%S')}-{number}.bak")
        number += 1
    _write_like(path, backup, path.read_bytes())
    return backup


def _write(path: Path, settings: dict[str, Any]) -> None:
    """Write whole or not at all; a link stays a link."""
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f"{target.name}.{os.getpid()}.new")
    text = json.dumps(settings, indent=2, ensure_ascii=False) + "\n"
    _write_like(target, temporary, text.encode())
    temporary.replace(target)


def _write_like(model: Path, path: Path, content: bytes) -> None:
    """Write a file that nobody may read who may not read *model*, where that is there; settings may hold keys."""
    with os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, NEW_FILE_MODE), "wb") as file:
        file.write(content)
    path.chmod(model.stat().st_mode & 0o777 if model.exists() else NEW_FILE_MODE)


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        return 0
    return int(value)
