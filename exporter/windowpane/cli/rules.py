"""`windowpane rules`: rules for Prometheus and Kubernetes."""

from __future__ import annotations

from pathlib import Path

import click

from windowpane.alerts.prometheus import (
    DEFAULT_DASHBOARD,
    DEFAULT_RUNBOOK,
    TOKEN_SECRET,
    RuleOptions,
    kubernetes_objects,
    prometheus_rules,
    to_yaml,
)


@click.group("rules")
def command() -> None:
    """Export recording and alerting rules for Prometheus."""


@command.command("export")
@click.option(
    "--kubernetes", is_flag=True, help="Write a PodMonitor and a PrometheusRule for the Prometheus operator."
)
@click.option("--namespace", help="Namespace of the Kubernetes objects.")
@click.option(
    "--token-secret",
    default=TOKEN_SECRET,
    show_default=True,
    help="Kubernetes Secret whose key `token` is the bearer token of the pods.",
)
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file instead of printing."
)
@click.option(
    "--runbook-url",
    default=DEFAULT_RUNBOOK,
    show_default=True,
    help="Address of the runbook, without an anchor.",
)
@click.option(
    "--dashboard-url",
    default=DEFAULT_DASHBOARD,
    show_default=True,
    help="Address of the dashboard that alerts link to.",
)
def export(
    *,
    kubernetes: bool,
    namespace: str | None,
    token_secret: str,
    output: Path | None,
    runbook_url: str,
    dashboard_url: str,
) -> None:
    """Write the rules, generated from the alert definitions.

    \b
    Example:
      windowpane rules export --output rules/windowpane.yml
    """
    if namespace is not None and not kubernetes:
        raise click.UsageError("--namespace requires --kubernetes")
    options = RuleOptions(runbook_url=runbook_url, dashboard_url=dashboard_url)
    documents = (
        kubernetes_objects(options, namespace=namespace, token_secret=token_secret)
        if kubernetes
        else [prometheus_rules(options)]
    )
    text = to_yaml(documents)
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"cannot write {output}: {error.strerror}") from error
    click.echo(f"wrote {output}", err=True)
