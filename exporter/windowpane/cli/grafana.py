"""`windowpane grafana`: the dashboards and the files that run Prometheus, Alertmanager and Grafana with them."""

from __future__ import annotations

from pathlib import Path

import click

from windowpane.cli.shipped import GRAFANA, shipped_folder, write_files


@click.group("grafana")
def command() -> None:
    """Export the Grafana dashboards and the files of the stack around them."""


@command.command("export")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option("--force", is_flag=True, help="Overwrite files that were changed.")
def export(folder: Path, *, force: bool) -> None:
    """Write the dashboards to DIR/dashboards, and next to them the provisioning of Grafana, the rules and
    configuration of Prometheus, the routes of Alertmanager, and the runbook.

    The provisioning reads the dashboards from /etc/grafana/windowpane; `windowpane rules export` writes the rules
    with other addresses.

    \b
    Example:
      windowpane grafana export monitoring
    """
    written = write_files(shipped_folder("grafana"), folder, entries=GRAFANA, force=force)
    for path in written:
        click.echo(path)
