"""`windowpane hook`: a status line for Claude Code, and hooks that import its transcripts."""

from __future__ import annotations

import json
from pathlib import Path

import click

from windowpane.cli.claude_settings import (
    HookCommands,
    back_up,
    merge_settings,
    read_settings,
    settings_snippet,
    write_settings,
)
from windowpane.cli.options import report_errors, store_option
from windowpane.config.paths import data_folder, named_store
from windowpane.core.store_names import StoreName, StoreUrl, full_name
from windowpane.hooks.input import configured_store
from windowpane.hooks.status import print_status
from windowpane.hooks.transcript import import_named_transcript


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
@store_option
@report_errors
def install(
    *, write: bool, replace_status_line: bool, settings_path: Path | None, store_path: StoreName | None
) -> None:
    """Print the settings for Claude Code, or write them, with a backup of the file.

    The commands name this installation, and a store other than the default one, by their whole path, because
    Claude Code may be started without this environment.

    \b
    Example:
      windowpane hook install --write
    """
    path = settings_path or Path.home() / ".claude" / "settings.json"
    commands = HookCommands.of(_store_to_name(store_path))
    if not write:
        click.echo(json.dumps(settings_snippet(commands), indent=2))
        click.echo(f"add this to {path}, or run `windowpane hook install --write`", err=True)
        return
    before = read_settings(path)
    result = merge_settings(before, commands, replace_status_line=replace_status_line)
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
    store = named_store(configured_store()) if given is None else given
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

    Prints nothing and never fails: the output of a hook is sent to the model, and a failure blocks the agent.

    \b
    Example:
      echo '{"transcript_path": "session.jsonl"}' | windowpane hook import
    """
    import_named_transcript(None if store_path is None else full_name(store_path))
