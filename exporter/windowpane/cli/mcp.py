"""`windowpane mcp`: tools by which an agent asks about its own context window."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

    from mcp.server import Server

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
@click.option(
    "--http", "port", type=click.IntRange(0, 65_535), metavar="PORT", help="Serve HTTP instead of stdio."
)
@click.option(
    "--bearer-token-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="With --http, require the token in this file.",
)
@project_option
@capture_option
@store_option
@report_errors
def command(
    *,
    session: str | None,
    folder: Path | None,
    port: int | None,
    bearer_token_file: Path | None,
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
      windowpane mcp --http 4190
    """
    config = project_config(project)
    with open_to_write(store_path, capture=capture) as store:
        server = _server(agent_tools(store, config, session, folder, over_http=port is not None))
        if port is None:
            from windowpane.outputs.mcp.server import serve_stdio

            serve_stdio(server)
        else:
            _serve_http(server, port, bearer_token_file)


def agent_tools(
    store: Store, config: Config, session: str | None, folder: Path | None, *, over_http: bool
) -> AgentTools:
    """Return the tools of a server that is started in *folder*, or for one stored *session*."""
    from windowpane.manager.files.archive import FileArchive
    from windowpane.outputs.mcp.agent_tools import AgentTools

    find = _own(store, config, folder, over_http=over_http) if session is None else _stored(store, session)
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


def _own(store: Store, config: Config, folder: Path | None, *, over_http: bool) -> Callable[[Caller], OwnSession]:
    """Return what finds the session of a caller. Over HTTP this process' environment is not the caller's."""
    from windowpane.outputs.mcp.agent_tools import OwnSession
    from windowpane.sources.imports.own_session import SINCE_SECONDS, OwnSessions
    from windowpane.sources.imports.watch import Watcher

    def follow(paths: Sequence[Path]) -> Watcher:
        return Watcher.configured(paths, store, config, since_seconds=SINCE_SECONDS, environment=os.environ)

    environment = {} if over_http else os.environ
    chosen = folder or Path(environment.get("CLAUDE_PROJECT_DIR") or Path.cwd())
    sessions = OwnSessions(store, folder=chosen, environment=environment, follow=follow)

    def find(caller: Caller) -> OwnSession:
        row, live = sessions.find(caller.client, caller.metadata, now=time.time())
        doubt = f"{live} sessions are live in this folder; this is the one with the latest event"
        return OwnSession(row, doubt if live > 1 else "")

    return find


def _server(tools: AgentTools) -> Server[Any]:
    try:
        from windowpane.outputs.mcp.server import mcp_server
    except ImportError as error:
        raise click.ClickException(
            f"mcp requires the library mcp ({error.name} is missing); run: {install_command('mcp')}"
        ) from error
    return mcp_server(tools)


def _serve_http(server: Server[Any], port: int, bearer_token_file: Path | None) -> None:
    """Serve programs of this machine over streamable HTTP until Ctrl-C."""
    from windowpane.cli.serve import configured_token, wait_for_stop
    from windowpane.config.loading import load_config
    from windowpane.outputs.http.asgi_server import AsgiServer
    from windowpane.outputs.http.authentication import read_token
    from windowpane.outputs.http.connections import SERVE_LIMITS
    from windowpane.outputs.http.http_server import LOOPBACK, listening_socket
    from windowpane.outputs.mcp.server import PATH, mcp_app

    token = configured_token(load_config().server) if bearer_token_file is None else read_token(bearer_token_file)
    try:
        listening = listening_socket(LOOPBACK, port)
    except OSError as error:
        raise click.ClickException(f"cannot serve on {LOOPBACK}:{port}: {error.strerror or error}") from error
    with AsgiServer(mcp_app(server, bearer_token=token), listening, limits=SERVE_LIMITS) as running:
        click.echo(f"MCP on {running.url}{PATH}; Ctrl-C stops", err=True)
        wait_for_stop()
