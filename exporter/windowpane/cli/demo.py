"""`windowpane demo`: recorded sessions, the dashboard and /metrics in one command."""

from __future__ import annotations

import shlex
import shutil
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import click

from windowpane.cli.dashboard_process import dashboard_process
from windowpane.cli.demonstration import load
from windowpane.cli.options import DEMO_ONCE, StoreOption, open_to_write, report_errors
from windowpane.cli.output import print_table
from windowpane.cli.serve import listen, wait_for_stop
from windowpane.cli.sessions import session_table
from windowpane.config.loading import load_config
from windowpane.config.paths import data_folder
from windowpane.core.store_names import StoreName
from windowpane.outputs.http.http_server import DEFAULT_PORT, LOOPBACK, start_http_server
from windowpane.outputs.http.store_exporter import StoreExporter
from windowpane.store.filters import AlertFilter, SessionFilter
from windowpane.store.open import store_exists
from windowpane.text.formats import seconds

if TYPE_CHECKING:
    from windowpane.config.schema import Config
    from windowpane.store.store import Store

MAXIMUM_ALERTS = 12


@click.command("demo")
@click.option("--once", is_flag=True, help="Print the report and exit; for scripts.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=8501, show_default=True, help="Port of the dashboard."
)
@click.option("--metrics-port", type=click.IntRange(0, 65_535), default=DEFAULT_PORT, show_default=True)
@click.option(
    "--store",
    "store_path",
    type=StoreOption(),
    help="Store to create; by default a new one in your data folder.",
)
@report_errors
def command(port: int, metrics_port: int, store_path: StoreName | None, *, once: bool) -> None:
    """Import recorded agent sessions into a new store and show them.

    Four packaged recordings are imported with today's times; the longest one is also replayed by the manager in
    an 8K and a 32K window. Then the dashboard and /metrics are served until Ctrl-C.

    \b
    Example:
      windowpane demo --once
    """
    started, config = time.perf_counter(), load_config()
    with _fresh_store(store_path, DEMO_ONCE if once else "demo") as store:
        loaded = load(store, now=time.time(), progress=_print_progress, config=config)
        events = sum(session.events for session in loaded)
        took = time.perf_counter() - started
        click.echo(f"{len(loaded)} sessions, {events:,} events in {seconds(took)}, stored in {store.name}")
        _report(store)
        if once:
            click.echo(f"\nlook further: windowpane sessions --store {shlex.quote(store.name)}")
        else:
            _serve(store, config=config, port=port, metrics_port=metrics_port)


def _print_progress(step: str) -> None:
    click.echo(f"  {step}", err=True)


@contextmanager
def _fresh_store(path: StoreName | None, name: str) -> Iterator[Store]:
    """Open an empty store: at *path*, else that of the demo *name*, which is recreated."""
    if path is not None:
        if store_exists(path):
            raise click.ClickException(f"{path} exists; the demo needs a new store")
        with open_to_write(path, capture=True) as store:
            yield store
        return
    folder = data_folder() / name
    shutil.rmtree(folder, ignore_errors=True)
    with open_to_write(folder / "demo.db", capture=True) as store:
        yield store


def _report(store: Store) -> None:
    print_table(session_table(store.sessions(SessionFilter(limit=20))))
    alerts = [alert for alert in store.alerts(AlertFilter(limit=10_000)) if alert.severity != "info"]
    alerts.sort(key=lambda alert: alert.severity != "critical")
    click.echo(f"\n{len(alerts)} warnings and critical alerts fired, the critical ones first:")
    for alert in alerts[:MAXIMUM_ALERTS]:
        click.echo(f"  {alert.severity:<8} {alert.agent:<14} turn {alert.fired_turn:>4}  {alert.summary}"[:100])
    if len(alerts) > MAXIMUM_ALERTS:
        click.echo(f"  and {len(alerts) - MAXIMUM_ALERTS} more")


def _serve(store: Store, *, config: Config, port: int, metrics_port: int) -> None:
    serving = StoreExporter(store, config=config, as_of="last")
    serving.catch_up()
    serving.verify_chain()
    with (
        closing(serving),
        listen(start_http_server, serving.routes(), host=LOOPBACK, port=metrics_port, tls=None) as server,
        dashboard_process(store.address, port=port) as dashboard,
    ):
        url = dashboard.wait()
        serving.start()
        click.echo(f"\ndashboard  {url}\nmetrics    {server.url}\n\nCtrl-C stops both.")
        wait_for_stop()
        click.echo("stopping")
