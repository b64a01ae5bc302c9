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
    from windowpane.state import AsOf

_file = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command("serve")
@click.option("--port", type=click.IntRange(0, 65_535), default=DEFAULT_PORT, show_default=True)
@click.option("--address", default=LOOPBACK, show_default=True, help="Address to listen on.")
@click.option(
    "--as-of",
    type=click.Choice(["now", "last"]),
    default="now",
    show_default=True,
    help="When sessions count as live: by the clock, or each as of its last event.",
)
@click.option(
    "--session-label", type=click.IntRange(0, 1_000), default=0, help="Label the N fullest sessions too."
)
@click.option("--bearer-token-file", type=_file, help="Require this token of every client.")
@click.option("--tls-certificate", type=_file, help="Serve HTTPS with this certificate chain.")
@click.option("--tls-key", type=_file, help="Its private key.")
@click.option("--tls-client-ca", type=_file, help="Require client certificates signed by this authority.")
@store_option
@plain_errors
def command(
    *,
    port: int,
    address: str,
    as_of: AsOf,
    session_label: int,
    bearer_token_file: Path | None,
    tls_certificate: Path | None,
    tls_key: Path | None,
    tls_client_ca: Path | None,
    store_path: Path | None,
) -> None:
    """Expose /metrics, /healthz and /sd for what is in the store, and keep up with it. Ctrl-C stops.

    \b
    Example:
      windowpane serve --port 9464
    """
    if (tls_certificate is None) != (tls_key is None):
        raise click.UsageError("--tls-certificate and --tls-key go together")
    tls = None
    if tls_certificate is not None and tls_key is not None:
        tls = TlsOptions(tls_certificate, tls_key, tls_client_ca)
    token = bearer_token_file.read_text(encoding="utf-8").strip() if bearer_token_file else None
    with open_to_write(store_path) as store:
        serving = StoreServer(store, config=load_config(), as_of=as_of, top_sessions=session_label)
        folded = serving.catch_up()
        verified = serving.verify_chain()
        with start_http_server(serving.routes(bearer_token=token), host=address, port=port, tls=tls) as server:
            serving.start()
            click.echo(f"{folded:,} events folded; audit chain {'intact' if verified.intact else 'BROKEN'}")
            click.echo(f"metrics on {server.url}")
            wait_for_stop()
            serving.close()


def wait_for_stop() -> None:
    """Return on Ctrl-C or a request to terminate."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    stop.wait()
