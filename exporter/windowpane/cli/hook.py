"""`windowpane hook`: a status line for Claude Code, and hooks that import its transcripts."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import click

from windowpane.cli.claude_settings import (
    back_up,
    merge_settings,
    read_settings,
    settings_snippet,
    write_settings,
)
from windowpane.cli.options import report_errors, store_option, store_path_or_default
from windowpane.core.limits import WindowLimits
from windowpane.exceptions import WindowpaneError
from windowpane.text.status_line import status_line

MAXIMUM_INPUT: Final = 1_000_000
"""Characters read of standard input, at most."""
USAGE_NAMES: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


@click.group("hook")
def command() -> None:
    """Show the window in Claude Code's status line and import transcripts from its hooks.

    \b
    Example:
      windowpane hook install --write
    """


@command.command("install")
@click.option("--write", is_flag=True, help="Write the settings file instead of printing the entries.")
@click.option("--replace-status-line", is_flag=True, help="Replace an existing status line.")
@click.option(
    "--settings",
    "settings_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Settings file; by default ~/.claude/settings.json.",
)
@report_errors
def install(*, write: bool, replace_status_line: bool, settings_path: Path | None) -> None:
    """Print the settings for Claude Code, or write them, with a backup of the file.

    \b
    Example:
      windowpane hook install --write
    """
    path = settings_path or Path.home() / ".claude" / "settings.json"
    if not write:
        click.echo(json.dumps(settings_snippet(), indent=2))
        click.echo(f"add this to {path}, or run `windowpane hook install --write`", err=True)
        return
    before = read_settings(path)
    result = merge_settings(before, replace_status_line=replace_status_line)
    if result.foreign_status_line and not replace_status_line:
        click.echo("the existing status line was kept; --replace-status-line replaces it", err=True)
    if result.settings == before:
        click.echo(f"{path} is up to date")
        return
    backup = back_up(path)
    write_settings(path, result.settings)
    click.echo(f"wrote {path}" + (f"; the previous file is {backup.name}" if backup else ""))


@command.command("status")
@store_option
def status(store_path: Path | None) -> None:
    """Print one line about the window of the session that Claude Code describes on standard input.

    \b
    Example:
      windowpane hook status < statusline.json
    """
    line = ""
    with suppress(Exception):  # an error must not appear in the status line
        session = json.loads(sys.stdin.read(MAXIMUM_INPUT))
        line = session_line(session, store_path_or_default(store_path)) if isinstance(session, dict) else ""
    click.echo(line)


@command.command("import")
@store_option
def import_transcript(store_path: Path | None) -> None:
    """Import the transcript that a hook of Claude Code names on standard input, in the background.

    Prints nothing and never fails: the output of a hook is sent to the model, and a failure blocks the agent.

    \b
    Example:
      echo '{"transcript_path": "session.jsonl"}' | windowpane hook import
    """
    with suppress(Exception):  # invalid input must not stop the agent
        transcript = json.loads(sys.stdin.read(MAXIMUM_INPUT)).get("transcript_path")
        if isinstance(transcript, str) and Path(transcript).is_file():
            start_import(Path(transcript), store_path)


def start_import(transcript: Path, store_path: Path | None) -> subprocess.Popen[bytes]:
    """Start the import of one transcript without waiting for it."""
    arguments = [sys.executable, "-m", "windowpane", "import"]
    if store_path is not None:
        arguments += ["--store", str(store_path)]
    arguments += ["--", str(transcript)]
    return subprocess.Popen(  # noqa: S603  # this program, and a file that exists
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def session_line(session: dict[str, Any], store_path: Path) -> str:
    """Return the status line of a session, from the values of Claude Code and the pace in the store."""
    window = _mapping(session.get("context_window"))
    usage = _mapping(window.get("current_usage"))
    used = sum(_count(usage.get(name)) for name in USAGE_NAMES)
    limit = _count(window.get("context_window_size")) or None
    velocity = red_in = None
    stored = _stored(str(session.get("session_id") or ""), store_path)
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
    """Return the session's row; None where it is not in a readable store."""
    if not session_id or not store_path.exists():
        return None
    from windowpane.store.reads import SqliteReader

    try:
        with closing(SqliteReader(store_path)) as reader:
            return reader.session(session_id)
    except WindowpaneError:
        return None


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        return 0
    return int(value)
