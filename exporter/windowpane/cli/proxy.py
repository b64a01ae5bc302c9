"""`windowpane proxy`: a reverse proxy for model providers that observes the calls."""

from __future__ import annotations

import logging
import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windowpane.cli.options import report_errors, store_option
from windowpane.cli.serve import wait_for_stop
from windowpane.core.limits import MAXIMUM_TOKENS
from windowpane.core.names import check_name
from windowpane.core.store_names import StoreName
from windowpane.core.version import install_command
from windowpane.outputs.http.authentication import require_protection
from windowpane.outputs.http.http_server import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from windowpane.sources.conversations.conversations import LevelBySettings, WindowBySettings
    from windowpane.sources.proxy.server import ProxyServer
    from windowpane.sources.proxy.upstreams import Upstream

DEFAULT_PORT = 4_180


def call_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options by which passing calls are observed."""
    for option in (
        click.option("--upstream", "upstreams", multiple=True, metavar="NAME=URL",
                     help="Also forward /NAME to this base URL; openai, anthropic and gemini are known."),
        click.option("--agent", default="agent", show_default=True,
                     help="Name of the caller where its program is not a known agent."),
        click.option("--limit", "limit_tokens", type=click.IntRange(1, MAXIMUM_TOKENS),
                     help="Size of the window in tokens, for models that the catalog does not have."),
        click.option("--capture", is_flag=True, default=None, help="Store the content of the calls, redacted."),
        click.option("--metrics-port", type=click.IntRange(0, 65_535), default=0,
                     help="Port of /metrics.  [default: a free one]"),
        store_option,
    ):  # fmt: skip
        function = option(function)
    return function


@click.command("proxy")
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=DEFAULT_PORT, show_default=True, help="Port to listen on."
)
@click.option("--address", default=LOOPBACK, show_default=True, help="Address to listen on.")
@click.option("--insecure", is_flag=True, help="Forward calls of other machines, over plain HTTP.")
@call_options
@report_errors
def command(*, port: int, address: str, insecure: bool, upstreams: Sequence[str], **options: Any) -> None:
    """Forward model calls to their providers, unchanged, and observe them. Ctrl-C stops.

    A client sends its calls to http://127.0.0.1:4180/openai, /anthropic or /gemini instead of the provider.

    \b
    Example:
      windowpane proxy --upstream vllm=http://gpu.internal:8000/v1
    """
    require_protection(address, has_token=False, tls=None, insecure=insecure)
    with running_proxy(address, port, upstreams, options) as (server, chosen, metrics_url):
        for upstream in chosen.values():
            click.echo(f"{server.url}/{upstream.name}  ->  {upstream.url}")
        click.echo(f"metrics: {metrics_url or 'none, no port is free'}; Ctrl-C stops")
        wait_for_stop()


@contextmanager
def running_proxy(
    address: str, port: int, upstreams: Sequence[str], options: Mapping[str, Any]
) -> Iterator[tuple[ProxyServer, dict[str, Upstream], str | None]]:
    """Run a proxy and the outputs until the block ends; yields the proxy, upstreams, and URL of metrics."""
    from windowpane.models.tokens import load_for_bulk
    from windowpane.outputs.runtime.start import start
    from windowpane.sources.conversations.conversations import Scope
    from windowpane.sources.proxy.upstreams import upstreams_of

    try:
        from windowpane.sources.proxy.call_queue import CallQueue
        from windowpane.sources.proxy.call_reader import CallReader
        from windowpane.sources.proxy.recorded_sessions import RecordedSessions
        from windowpane.sources.proxy.server import ProxyServer
    except ImportError as error:
        raise click.ClickException(
            f"the proxy requires uvicorn and httpx2 ({error.name} is missing); run: {install_command('proxy')}"
        ) from error
    check_name("agent", options["agent"])
    logging.getLogger("asyncio").setLevel(
        logging.ERROR
    )  # it warns of each write to a client that has disconnected
    chosen = upstreams_of(upstreams, os.environ)
    level, window = _by_settings(options)
    scope = Scope(
        options["agent"], limit_tokens=options["limit_tokens"], level_by_settings=level, window_by_settings=window
    )
    store: StoreName | None = options["store_path"]
    load_for_bulk()
    folder = options.get("folder")
    recorded = RecordedSessions(Path(folder), since=time.time()) if folder else None
    with (
        start(port=options["metrics_port"], store=store, capture=options["capture"]) as outputs,
        CallQueue(CallReader(outputs, scope, recorded), outputs.record_drop) as calls,
        ProxyServer(address, port, chosen, calls) as server,
    ):
        yield server, chosen, outputs.url


def _by_settings(options: Mapping[str, Any]) -> tuple[LevelBySettings | None, WindowBySettings | None]:
    """Return how to find the level and the window of the program that runs in the *folder*, by its settings."""
    if not options.get("folder"):
        return None, None
    from windowpane.sources.installed_agents.settings import LocalSettings

    settings = LocalSettings(environment=os.environ, overrides=options["overrides"])
    folder = options["folder"]

    def level(agent: str, limit_tokens: int | None) -> int | None:
        return settings.level(agent, limit_tokens=limit_tokens, started_at=time.time(), folder=folder)

    def window(agent: str, model: str) -> int | None:
        size = settings.window(agent, model, session_id="", started_at=time.time(), folder=folder)
        return size and size.tokens

    return level, window
