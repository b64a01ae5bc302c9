"""`windowpane mcp`: tools by which an agent asks about its own context window."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from windowpane.cli.options import (
    capture_option,
    open_to_write,
    pick_session,
    project_config,
    project_option,
    report_errors,
    store_option,
)
from windowpane.config.paths import data_folder
from windowpane.core.store_names import StoreName
from windowpane.core.version import install_command
from windowpane.exceptions import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windowpane.config.schema import Config
    from windowpane.outputs.mcp.agent_tools import AgentTools, Caller, OwnSession
    from windowpane.store.store import Store


@click.command("mcp")
@click.option("--session", help="Answer about this stored session: its id, or the start of it.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder that the agent works in.  [default: the current one]",
)
@project_option
@capture_option
@store_option
@report_errors
def command(
    *,
    session: str | None,
    folder: Path | None,
    project: str | None,
    capture: bool,
    store_path: StoreName | None,
) -> None:
    """Serve tools by which an agent asks about its own context window, over the Model Context Protocol.

    The agent's program starts it. It answers about the session that asks, whose recording it reads; texts can
    be searched and read with --capture.

    \b
    Example:
      claude mcp add windowpane -- windowpane mcp
    """
    config = project_config(project)
    with open_to_write(store_path, capture=capture) as store:
        _serve(agent_tools(store, config, session, folder))


def agent_tools(store: Store, config: Config, session: str | None, folder: Path | None) -> AgentTools:
    """Return the tools of a server that is started in *folder*, or for one stored *session*."""
    from windowpane.manager.files.archive import FileArchive
    from windowpane.outputs.mcp.agent_tools import AgentTools

    find = _own(store, config, folder) if session is None else _stored(store, session)
    archive = FileArchive(data_folder() / "archive", redact=str)  # only read
    return AgentTools(store, find, originals=archive.get)


def _stored(store: Store, session: str) -> Callable[[Caller], OwnSession]:
    """Return what finds one stored session, for every caller."""
    from windowpane.outputs.mcp.agent_tools import OwnSession

    session_id = pick_session(store, session).session_id

    def find(_: Caller) -> OwnSession:
        row = store.session(session_id)
        if row is None:
            raise StoreError(f"session {session_id} was deleted from the store")
        return OwnSession(row)

    return find


def _own(store: Store, config: Config, folder: Path | None) -> Callable[[Caller], OwnSession]:
    """Return what finds the session of the program that started this one."""
    from windowpane.outputs.mcp.agent_tools import OwnSession
    from windowpane.sources.imports.own_session import SINCE_SECONDS, OwnSessions
    from windowpane.sources.imports.watch import Watcher

    def follow(paths: Sequence[Path]) -> Watcher:
        return Watcher.configured(paths, store, config, since_seconds=SINCE_SECONDS, environment=os.environ)

    chosen = folder or Path(os.environ.get("CLAUDE_PROJECT_DIR") or Path.cwd())
    sessions = OwnSessions(store, folder=chosen, environment=os.environ, follow=follow, started_at=time.time())

    def find(caller: Caller) -> OwnSession:
        row, live = sessions.find(caller.client, caller.metadata, now=time.time())
        doubt = f"{live} sessions are live in this folder; this is the one with the latest event"
        return OwnSession(row, doubt if live > 1 else "")

    return find


def _serve(tools: AgentTools) -> None:
    try:
        from windowpane.outputs.mcp.server import serve_stdio
    except ImportError as error:
        raise click.ClickException(
            f"mcp requires the library mcp ({error.name} is missing); run: {install_command('mcp')}"
        ) from error
    serve_stdio(tools)
