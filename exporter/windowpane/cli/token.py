"""`windowpane token`: tokens with which agents on other hosts send sessions of a project."""

from __future__ import annotations

import secrets

import click

from windowpane.cli.options import report_errors
from windowpane.config.projects import hashed_token
from windowpane.core.names import check_project

TOKEN_BYTES = 32
PREFIX = "wp_"
"""Start of every token, by which scanners for leaked secrets can recognize one."""


@click.group("token")
def command() -> None:
    """Make tokens for agents on other hosts."""


@command.command("new")
@click.option("--project", required=True, help="Project that the token may write to.")
@report_errors
def new(project: str) -> None:
    """Print a new token once, and the form for the configuration, which does not give it away.

    \b
    Example:
      windowpane token new --project shop
    """
    check_project("project", project)
    if not project:
        raise click.UsageError("--project must not be empty")
    token = PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
    click.echo("Give this token to the agents; it is shown only here:\n")
    click.echo(f"  WINDOWPANE_INGEST_TOKEN={token}\n")
    click.echo("Add this to the configuration of `windowpane serve --ingest`:\n")
    click.echo(f"  projects:\n    {project}:\n      tokens:\n        - {hashed_token(token)}\n")
    click.echo("To replace a token, add the new one to the list until every agent has it.")
