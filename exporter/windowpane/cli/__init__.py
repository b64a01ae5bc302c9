"""The command line, `windowpane`: one module per command, loaded when it is called."""

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
    "grafana": "grafana",
    "hook": "hook",
    "import": "import_",
    "prune": "prune",
    "replay": "replay",
    "report": "report",
    "rules": "rules",
    "serve": "serve",
    "sessions": "sessions",
    "top": "top",
    "watch": "watch",
}
"""The module of each command; it holds the command in a variable named `command`."""


class LazyGroup(click.Group):
    """A group whose commands are imported on first use, so that `--help` and completion stay fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Return the names of all commands, sorted."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return the command of that name; None for an unknown one."""
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

    Start with `windowpane demo`, or import your own sessions with `windowpane import`.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # characters that the terminal cannot show
