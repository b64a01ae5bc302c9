"""The command line, `windowpane`: one module per command, imported when it is called.

A module of the command's name holds the command in a variable named `command`.
"""

from __future__ import annotations

import io
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Final

import click

from windowpane.core.version import package_version

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS: Final[dict[str, str]] = {
    "advise": "Show where a full window makes agents worse, and when to compact.",
    "alerts": "List the alerts, and test that their messages arrive.",
    "audit": "Prove that the stored events are complete and unaltered.",
    "check": "Exit with 4 when an alert fired in a session.",
    "clickhouse": "Print the tables of the copy in ClickHouse.",
    "dashboard": "Serve the dashboard for the store.",
    "demo": "Import recorded agent sessions into a new store and show them.",
    "doctor": "Check what is installed, reachable and configured.",
    "fidelity": "Show what compactions lost, or test a suite of summaries.",
    "grafana": "Export the Grafana dashboards and the files around them.",
    "hook": "Show the window in Claude Code's status line.",
    "import": "Read recorded sessions into the store.",
    "mcp": "Serve tools by which an agent asks about its own window.",
    "migrate": "Move a store to another database.",
    "proxy": "Forward model calls to their providers and observe them.",
    "prune": "Delete whole sessions, oldest first.",
    "replay": "Replay recorded sessions under other settings and compare.",
    "report": "Print the history of a session's window.",
    "run": "Run a program whose model calls are observed on the way.",
    "rules": "Export recording and alerting rules for Prometheus.",
    "search": "Find captured content by any word in it.",
    "serve": "Serve the metrics of all sessions in the store.",
    "sessions": "List the sessions in the store.",
    "token": "Make tokens for agents on other hosts.",
    "top": "Show live sessions by pressure, refreshed every second.",
    "watch": "Follow transcripts as they are written.",
}
"""Each command with its line in the list of commands, which is printed without importing their modules."""


class LazyGroup(click.Group):
    """A group whose commands are imported on first use, so that `--help` and completion stay fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Return the names of all commands, sorted."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return the command of that name; None for an unknown one."""
        if cmd_name not in COMMANDS:
            return None
        module = "import_" if cmd_name == "import" else cmd_name  # not a name that Python allows
        command = import_module(f"windowpane.cli.{module}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that *args* name; for a misspelled one, the error names the nearest."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches

            nearest = get_close_matches(name, COMMANDS, n=1)
            hint = f"did you mean {nearest[0]!r}?" if nearest else "`windowpane --help` lists them"
            ctx.fail(f"no such command {name!r}; {hint}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the completions of a command's name, without importing the commands, and of options."""
        from click.shell_completion import CompletionItem

        names = [
            CompletionItem(name, help=line) for name, line in COMMANDS.items() if name.startswith(incomplete)
        ]
        return names + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


def _print_version(ctx: click.Context, _parameter: click.Parameter, requested: bool) -> None:  # noqa: FBT001
    if requested:
        click.echo(f"windowpane, version {package_version()}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
@click.pass_context
def main(ctx: click.Context) -> None:
    """Observability for the context windows of LLM agents.

    Without a command, it shows the sessions that the agents on this machine have recorded.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # characters that the terminal cannot show
    if ctx.invoked_subcommand is None:
        if not sys.stdout.isatty():
            click.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        from windowpane.cli.machine import show_sessions

        show_sessions()
