"""`windowpane serve`: metrics of everything in the store."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click

from windowpane.cli.options import open_to_write, plain_errors, store_option
from windowpane.config import load_config
from windowpane.server import DEFAULT_PORT, LOOPBACK, TlsOptions, start_http_server
from windowpane.serving import StoreServer

if TYPE_CHECKING:
    from windowpane.config import ServerConfig
    from windowpane.state import AsOf

_file = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command("serve")
@click.option("--port", type=click.IntRange(0, 65_535), help=f"Port to listen on.  [default: {DEFAULT_PORT}]")
@click.option("--address", help=f"Address to listen on.  [default: {LOOPBACK}]")
@click.option(
    "--as-of",
    type=click.Choice(["now", "last"]),
    default="now",
    show_default=True,
    help="When sessions count as live: by the clock, or each as of its last event.",
)
@click.option("--session-label", type=click.IntRange(0, 1_000), help="Label the N fullest sessions too.")
@click.option("--otlp-endpoint", help="Push metrics and new events to this OTLP receiver too.")
@click.option("--bearer-token-file", type=_file, help="Require this token of every client.")
@click.option("--tls-certificate", type=_file, help="Serve HTTPS with this certificate chain.")
@click.option("--tls-key", type=_file, help="Its private key.")
@click.option("--tls-client-ca", type=_file, help="Require client certificates signed by this authority.")
@store_option
@plain_errors
def command(
    *,
    port: int | None,
    address: str | None,
    as_of: AsOf,
    session_label: int | None,
    otlp_endpoint: str | None,
    bearer_token_file: Path | None,
    tls_certificate: Path | None,
    tls_key: Path | None,
    tls_client_ca: Path | None,
    store_path: Path | None,
) -> None:
    """Expose /metrics, /healthz and /sd for what is in the store, and keep up with it. Ctrl-C stops.

    What no option says is taken from the configuration, except that it pushes only with --otlp-endpoint: an
    endpoint that is configured is where the agents push to, and everything would be counted twice.

    \b
    Example:
      windowpane serve --port 9464
    """
    if (tls_certificate is None) != (tls_key is None):
        raise click.UsageError("--tls-certificate and --tls-key go together")
    config = load_config()
    tls = _tls(config.server)
    if tls_certificate is not None and tls_key is not None:
        tls = TlsOptions(tls_certificate, tls_key, tls_client_ca)
    token = bearer_token_file.read_text(encoding="utf-8").strip() if bearer_token_file else _token(config.server)
    top = config.session_label if session_label is None else session_label
    with open_to_write(store_path) as store:
        serving = StoreServer(store, config=config, as_of=as_of, top_sessions=top)
        folded = serving.catch_up()
        verified = serving.verify_chain()
        if otlp_endpoint is not None:
            serving.push(config.otlp.model_copy(update={"endpoint": otlp_endpoint}))
        with start_http_server(
            serving.routes(bearer_token=token),
            host=address or config.server.address,
            port=config.server.port if port is None else port,
            tls=tls,
        ) as server:
            serving.start()
            click.echo(f"{folded:,} events folded; audit chain {'intact' if verified.intact else 'BROKEN'}")
            click.echo(f"metrics on {server.url}")
            wait_for_stop()
            serving.close()


def _tls(server: ServerConfig) -> TlsOptions | None:
    """The certificate that is configured."""
    tls = server.tls
    return None if tls is None else TlsOptions(tls.certificate, tls.key, tls.client_ca)


def _token(server: ServerConfig) -> str | None:
    """The bearer token that is configured."""
    return None if server.bearer_token is None else server.bearer_token.get_secret_value()


def wait_for_stop() -> None:
    """Return on Ctrl-C or a request to terminate."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    stop.wait()
