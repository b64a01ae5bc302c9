"""`windowpane alerts`: test a channel, list the alerts."""

from __future__ import annotations

import click

from windowpane.alerts.delivery.notifier import send_test
from windowpane.alerts.rules import RULES
from windowpane.cli.options import EXIT_FAILED, report_errors
from windowpane.config.loading import load_config


@click.group("alerts")
def command() -> None:
    """List the alerts, and test that their messages arrive."""


@command.command("test")
@click.argument("url", required=False)
@click.option("--public-url", help="Address of the dashboard, for the link in the message.")
@click.pass_context
@report_errors
def test(ctx: click.Context, url: str | None, public_url: str | None) -> None:
    """Send a test message to the configured channels, or to URL, and report whether it was accepted.

    URL is any Apprise address (json:// or jsons:// for a plain webhook), alertmanager://host:port, or log://.

    \b
    Example:
      windowpane alerts test json://127.0.0.1:8000/hook
    """
    results = [send_test(address, public_url=public_url) for address in ([url] if url else _configured())]
    for result in results:
        if result.delivered:
            click.echo(f"delivered to {result.channel}")
        else:
            click.echo(f"not delivered to {result.channel}: {result.reason}", err=True)
    if not all(result.delivered for result in results):
        ctx.exit(EXIT_FAILED)


def _configured() -> list[str]:
    """Return the addresses of the configured channels."""
    channels = load_config().channels()
    if not channels:
        raise click.ClickException("no channel is configured in notify.channels; name the address of one")
    return [channel.url.get_secret_value() for channel in channels]


@command.command("list")
def rules() -> None:
    """List all alerts with severity, meaning and first step.

    \b
    Example:
      windowpane alerts list
    """
    for rule in RULES:
        off = "" if rule.enabled else " (off)"
        click.echo(f"{rule.severity:<8} {rule.name}{off}\n         {rule.title}. {rule.todo}")
