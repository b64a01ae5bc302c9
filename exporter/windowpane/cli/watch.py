"""`windowpane watch`: follow transcripts of coding agents while they are written."""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from windowpane.cli.options import (
    capture_option,
    limit_option,
    open_to_write,
    project_config,
    project_option,
    recording_folders,
    report_errors,
    store_option,
)
from windowpane.cli.output import supports_unicode
from windowpane.cli.serve import configured_token, listen
from windowpane.config.paths import local_base
from windowpane.core.characters import plain
from windowpane.core.store_names import StoreName
from windowpane.effects.stop_request import StopRequest
from windowpane.outputs.http.http_server import DEFAULT_PORT, start_http_server
from windowpane.outputs.http.store_exporter import StoreExporter
from windowpane.outputs.runtime.notifier import configured_notifier
from windowpane.sources.imports.watch import WatchedSession, Watcher
from windowpane.sources.installed_agents.locations import default_folders, locations
from windowpane.text.status_line import gauge_line

POLL_SECONDS: Final = 0.5
LINES: Final = 20
NAME_CHARACTERS: Final = 24
HOUR: Final = 3_600.0


@click.command("watch")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path, exists=True))
@click.option("--port", type=click.IntRange(0, 65_535), help=f"Port of /metrics.  [default: {DEFAULT_PORT}]")
@click.option(
    "--since",
    "since_hours",
    type=click.FloatRange(0),
    default=24.0,
    show_default=True,
    help="Hours; files without a change since then are skipped until they change.",
)
@limit_option
@project_option
@capture_option
@click.option("--once", is_flag=True, help="Import the existing recordings, print them, and exit.")
@store_option
@report_errors
def command(
    paths: tuple[Path, ...],
    *,
    port: int | None,
    since_hours: float,
    limit_tokens: int | None,
    project: str | None,
    capture: bool,
    once: bool,
    store_path: StoreName | None,
) -> None:
    """Follow transcripts in PATHS (files or folders) as they are written; Ctrl-C stops.

    Without PATHS the default folders of Claude Code, Codex and the other supported tools, also those that appear
    later. Sessions are written to the store, alerts are sent to your channels, and metrics are served at
    /metrics.

    \b
    Example:
      windowpane watch ~/.claude/projects --port 9464
    """
    config = project_config(project)
    chosen = paths or (recording_folders() if once else tuple(locations()))
    with open_to_write(store_path, capture=capture) as store:
        watcher = Watcher.configured(
            chosen,
            store,
            config,
            since_seconds=since_hours * HOUR,
            limit_tokens=limit_tokens,
            longest_poll_seconds=math.inf if once else POLL_SECONDS,
        )
        if once:
            _import_once(watcher, chosen, since_hours)
            return
        serving = StoreExporter(store, config=config, top_sessions=config.session_label)
        notifier = configured_notifier(
            config,
            outbox=local_base(store.address),
            emit=watcher.record_deliveries,
            count=serving.internal.record_notification,
            store=store,
        )
        watcher.notifier = serving.notifier = notifier
        notifier.start()
        settings = config.server
        try:
            with listen(
                start_http_server,
                serving.routes(bearer_token=configured_token(settings)),
                host=settings.address,
                port=settings.port if port is None else port,
                tls=settings.tls,
                insecure=settings.insecure,
            ) as server:
                serving.start()
                click.echo(_watched(paths), err=True)
                click.echo(f"metrics on {server.url}; Ctrl-C stops", err=True)
                with _stopping() as stop:
                    follow(watcher, stop, changed=serving.wake)
        finally:
            serving.close()
            notifier.close()
        store.flush()


def _watched(paths: Sequence[Path]) -> str:
    """Return what is watched: *paths*, else the default folders, which need not exist yet."""
    existing = paths or default_folders()
    if existing:
        return f"watching {', '.join(map(str, existing))}"
    return "no agent has recorded anything on this machine yet; waiting for the first session"


def follow(watcher: Watcher, stop: StopRequest, *, changed: Callable[[], object]) -> None:
    """Poll until a stop is requested: one line per live session on a terminal, else one line per change.

    *changed* is called after a poll that stored something.
    """
    if not sys.stdout.isatty():
        while not stop.is_set:
            if show_lines(watcher.poll()):
                changed()
            stop.wait(_pause(watcher))
        return
    unicode = supports_unicode()
    with Live(console=Console(), auto_refresh=False) as live:
        while not stop.is_set:
            if watcher.poll():
                changed()
            live.update(_screen(_live(watcher), unicode=unicode), refresh=True)
            stop.wait(_pause(watcher))


def _pause(watcher: Watcher) -> float:
    """Return the seconds until the next poll; none while files wait for it."""
    return 0.0 if watcher.is_behind else POLL_SECONDS


def _import_once(watcher: Watcher, paths: Sequence[Path], since_hours: float) -> None:
    """Poll once, and report it when there is no session."""
    if not show_lines(watcher.poll()):
        searched = ", ".join(map(str, paths))
        hint = "--since searches further back"
        click.echo(f"no session in {searched} that changed within {since_hours:g} h; {hint}", err=True)


def show_lines(sessions: Sequence[WatchedSession]) -> int:
    """Print one line per session; return the number of sessions."""
    unicode = supports_unicode()
    for session in sessions:
        click.echo(_line(session, unicode=unicode))
    return len(sessions)


def _live(watcher: Watcher) -> list[WatchedSession]:
    import time

    now = time.time()
    live = [session for session in watcher.sessions.values() if session.is_live(now)]
    return sorted(live, key=lambda session: -(session.pressure.utilization or 0.0))


def _screen(live: Sequence[WatchedSession], *, unicode: bool) -> Group:
    lines = [Text(_line(session, unicode=unicode), no_wrap=True, overflow="ellipsis") for session in live[:LINES]]
    if len(live) > LINES:
        lines.append(Text(f"and {len(live) - LINES} more"))
    return Group(*lines) if lines else Group(Text("no live session yet; waiting for a transcript to change"))


def _line(session: WatchedSession, *, unicode: bool) -> str:
    name = plain(f"{session.agent} {session.session_id}")
    return f"{name[:NAME_CHARACTERS]:<{NAME_CHARACTERS}} {gauge_line(session.pressure, unicode=unicode)}"


@contextmanager
def _stopping() -> Iterator[StopRequest]:
    """Yield a request that Ctrl-C or SIGTERM sets."""
    stop = StopRequest()
    try:
        yield stop
    finally:
        stop.restore_handlers()
        logging.getLogger("windowpane").debug("watching has ended")
