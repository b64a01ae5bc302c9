"""`windowpane`, the command line: one command a module, each loaded only when it is called."""

from __future__ import annotations

import io
import sys
from importlib import import_module
from typing import Final

import click

import windowpane

COMMANDS: Final[dict[str, str]] = {
    "alerts": "alerts",
    "audit": "audit",
    "check": "check",
    "dashboard": "dashboard",
    "demo": "demo",
    "doctor": "doctor",
    "fidelity": "fidelity",
    "hook": "hook",
    "import": "importing",
    "prune": "prune",
    "replay": "replay",
    "report": "report",
    "rules": "rules",
    "serve": "serve",
    "sessions": "sessions",
    "top": "top",
    "watch": "watch",
}
"""Command to the module that holds it, in a variable named `command`."""


class LazyGroup(click.Group):
    """A group whose commands are imported on first use, so that `--help` and completion stay quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Every command, sorted."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of that name, or None."""
        module = COMMANDS.get(cmd_name)
        if module is None:
            return None
        command = import_module(f"windowpane.cli.{module}").command
        assert isinstance(command, click.Command)
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(windowpane.__version__, prog_name="windowpane")
def main() -> None:
    """Observability for the context windows of LLM agents.

    Start with `windowpane demo`, or with `windowpane import` on sessions of your own.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a sign the terminal does not know is no reason to stop
