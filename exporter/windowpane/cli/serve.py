"""`windowpane serve`: metrics of all sessions in the store."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from windowpane.cli.options import open_to_write, report_errors, store_option
from windowpane.cli.otlp_receiver import receiving
from windowpane.config.loading import load_config
from windowpane.config.outputs import Tls
from windowpane.config.paths import local_base
from windowpane.core.redaction import redact
from windowpane.core.store_names import StoreName
from windowpane.core.version import install_command
from windowpane.effects.processes import rare_collection
from windowpane.effects.stop_request import StopRequest
from windowpane.models.catalog import load_packaged_data
from windowpane.outputs.http.authentication import read_token, require_protection
from windowpane.outputs.http.http_server import DEFAULT_PORT, LOOPBACK, RunningServer
from windowpane.outputs.http.routes import Health
from windowpane.outputs.http.store_exporter import StoreExporter
from windowpane.outputs.remote.access import IngestAccess
from windowpane.outputs.remote.endpoint import IngestEndpoint
from windowpane.outputs.remote.group_commit import GroupCommit
from windowpane.outputs.runtime.notifier import configured_notifier
from windowpane.store.clickhouse.configured import configured_copier

if TYPE_CHECKING:
    from windowpane.config.outputs import ServerConfig
    from windowpane.config.schema import Config
    from windowpane.metrics.fold import AsOf
    from windowpane.outputs.http.asgi_server import AsgiServer
    from windowpane.outputs.http.routes import Routes
    from windowpane.store.store import Store

_file = click.Path(path_type=Path, exists=True, dir_okay=False)

Server = TypeVar("Server", bound=RunningServer)


@click.command("serve")
@click.option("--port", type=click.IntRange(0, 65_535), help=f"Port to listen on.  [default: {DEFAULT_PORT}]")
@click.option("--address", help=f"Address to listen on.  [default: {LOOPBACK}]")
@click.option(
    "--as-of",
    type=click.Choice(["now", "last"]),
    default="now",
    show_default=True,
    help="Time at which sessions count as live: now, or each at its last event.",
)
@click.option("--session-label", type=click.IntRange(0, 1_000), help="Also label the N fullest sessions.")
@click.option("--otlp", "receives", is_flag=True, help="Also record what OpenTelemetry exporters send here.")
@click.option(
    "--otlp-port", type=click.IntRange(0, 65_535), help="Port to receive on.  [default: 4318]", metavar="PORT"
)
@click.option("--ingest", "ingests", is_flag=True, help="Also store what agents on other hosts send here.")
@click.option("--capture", is_flag=True, help="With --otlp or --ingest, store texts too, with secrets redacted.")
@click.option("--otlp-endpoint", help="Also push metrics and new events to this OTLP receiver.")
@click.option(
    "--clickhouse", "clickhouse_url", help="Also keep a copy for analysis in this ClickHouse.", metavar="URL"
)
@click.option("--bearer-token-file", type=_file, help="Require the token in this file from every client.")
@click.option("--tls-certificate", type=_file, help="Serve HTTPS with this certificate chain.")
@click.option("--tls-key", type=_file, help="Private key of the certificate.")
@click.option("--tls-client-ca", type=_file, help="Require client certificates signed by this authority.")
@click.option("--insecure", is_flag=True, help="Serve other machines without a token or client certificates.")
@store_option
@report_errors
def command(
    *,
    port: int | None,
    address: str | None,
    as_of: AsOf,
    session_label: int | None,
    receives: bool,
    otlp_port: int | None,
    ingests: bool,
    capture: bool,
    otlp_endpoint: str | None,
    clickhouse_url: str | None,
    bearer_token_file: Path | None,
    tls_certificate: Path | None,
    tls_key: Path | None,
    tls_client_ca: Path | None,
    insecure: bool,
    store_path: StoreName | None,
) -> None:
    """Serve /metrics, /healthz and /sd for the store, including new events. Ctrl-C stops.

    With --otlp also receive OTLP/HTTP: the model calls in the traces and logs that agents export are recorded.
    With --ingest agents on other hosts store here: WINDOWPANE_STORE=https://this-host there, with a token.

    Defaults come from the configuration, except that metrics are pushed only with --otlp-endpoint: the agents
    already push to a configured endpoint, and everything would be counted twice.

    \b
    Example:
      windowpane serve --port 9464
      windowpane serve --otlp
      windowpane serve --ingest --address 0.0.0.0 --bearer-token-file token
      windowpane serve --clickhouse http://127.0.0.1:8123
    """
    if (tls_certificate is None) != (tls_key is None):
        raise click.UsageError("--tls-certificate and --tls-key require each other")
    if tls_client_ca is not None and tls_certificate is None:
        raise click.UsageError("--tls-client-ca requires --tls-certificate and --tls-key")
    start = server_start()
    config = load_config(arguments={"clickhouse": {"url": clickhouse_url}} if clickhouse_url else None)
    tls = config.server.tls
    if tls_certificate is not None and tls_key is not None:
        tls = Tls(certificate=tls_certificate, key=tls_key, client_ca=tls_client_ca)
    token = configured_token(config.server) if bearer_token_file is None else read_token(bearer_token_file)
    host, insecure = address or config.server.address, insecure or config.server.insecure
    require_protection(host, has_token=token is not None, tls=tls, insecure=insecure)
    access = IngestAccess(config, bearer_token=token)
    top = config.session_label if session_label is None else session_label
    with open_to_write(store_path, capture=capture and ingests) as store:
        serving = StoreExporter(
            store, config=config, as_of=as_of, top_sessions=top, report=partial(click.echo, err=True)
        )
        serving.notifier = configured_notifier(
            config,
            outbox=local_base(store.address),
            emit=store.append,
            count=serving.internal.record_notification,
            store=store,
        )
        if config.clickhouse.url is not None:
            serving.copier = configured_copier(config.clickhouse, store)
        if otlp_endpoint is not None:
            serving.push(config.otlp.model_copy(update={"endpoint": otlp_endpoint}))
        routes = serving.routes(bearer_token=token)
        with (
            ingesting(store, serving, routes, access) if ingests else nullcontext(routes) as served,
            listen(
                start,
                served,
                host=host,
                port=config.server.port if port is None else port,
                tls=tls,
                insecure=insecure,
                move=not port and not ingests,  # a port that was requested is where Prometheus scrapes
            ) as server,
        ):
            click.echo(f"metrics on {server.url}/metrics")
            serving.start()
            serving.notifier.start()
            if ingests:
                click.echo(f"receiving events of other hosts on {server.url}")
            if serving.copier is not None:
                serving.copier.start()
                click.echo(f"copying to ClickHouse on {config.clickhouse.url}")
            if receives:
                port = config.otlp.receive_port if otlp_port is None else otlp_port
                received = _received(config, store, capture=capture)
                with receiving(
                    received,
                    store,
                    serving,
                    token=token,
                    listen=partial(
                        listen,
                        start,
                        host=host,
                        port=port,
                        tls=tls,
                        insecure=insecure,
                        move=False,
                        option="--otlp-port",
                    ),
                ) as base_url:
                    click.echo(f"receiving OTLP on {base_url}")
                    wait_for_stop()
            else:
                wait_for_stop()
            if serving.copier is not None:
                serving.copier.close()
            serving.close()
            serving.notifier.close()


def _received(config: Config, store: Store, *, capture: bool) -> Config:
    """Return the configuration for what is received: the store that is served, with or without texts."""
    stored = config.store.model_copy(update={"path": store.address, "capture": capture or config.store.capture})
    return config.model_copy(update={"store": stored})


def server_start() -> Callable[..., AsgiServer]:
    """Return the function that starts a server. Raises `click.ClickException` without the extra."""
    try:
        from windowpane.outputs.http.asgi_server import start_asgi_server
    except ImportError as error:
        raise click.ClickException(
            f"serve requires uvicorn and starlette ({error.name} is missing); run: {install_command('serve')}"
        ) from error
    return start_asgi_server


def listen(
    start: Callable[..., Server], routes: Routes, *, host: str, port: int, tls: Tls | None,
    insecure: bool = False, move: bool = True, option: str = "--port",
) -> Server:  # fmt: skip
    """Start a server; with *move*, on a free port if *port* is in use. Raises `click.ClickException`."""
    try:
        return start(routes, host=host, port=port, tls=tls, insecure=insecure, free_port_if_busy=move)
    except OSError as error:
        hint = f"; {option} 0 selects a free one" if error.errno == errno.EADDRINUSE else ""
        raise click.ClickException(f"cannot serve on {host}:{port}: {error.strerror or error}{hint}") from error


def configured_token(server: ServerConfig) -> str | None:
    """Return the configured bearer token."""
    return None if server.bearer_token is None else server.bearer_token.get_secret_value()


def wait_for_stop() -> None:
    """Block until Ctrl-C or a request to terminate."""
    StopRequest().wait()


@contextmanager
def ingesting(store: Store, serving: StoreExporter, routes: Routes, access: IngestAccess) -> Iterator[Routes]:
    """Yield *routes* with the endpoint that receives events, until the block ends and everything is stored."""

    def on_stored(seconds: float) -> None:
        serving.internal.record_store_write(seconds)
        serving.wake()

    def health() -> Health:
        served = routes.health()
        details = {**served.details, "waiting_events": commits.waiting_events}
        if commits.problem:
            details["store_problem"] = commits.problem
        return replace(served, degraded=served.degraded or bool(commits.problem), details=details)

    commits = GroupCommit(store, on_stored=on_stored)
    endpoint = IngestEndpoint(commits)
    load_packaged_data()  # the first senders would wait for it, and for what recognizes secrets
    redact("")
    commits.start()
    try:
        with rare_collection():  # a full one stops every thread for 50 ms
            yield replace(
                routes,
                posts={**routes.posts, **endpoint.posts},
                project_of=access.project,
                authorized=dict.fromkeys(endpoint.posts, access.accepts) if access.needs_token else {},
                health=health,
            )
    finally:
        commits.close()
