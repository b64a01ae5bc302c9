"""`windowpane run`: a program whose model calls go through a separate proxy."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from logging.handlers import MemoryHandler
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from windowpane.cli.options import report_errors
from windowpane.cli.proxy import call_options, running_proxy
from windowpane.outputs.http.http_server import LOOPBACK

MAXIMUM_WARNINGS = 100
UNSEEN = "nothing was recorded (its configuration or its login may choose another base URL)"
SIGNALLED = 128
"""Exit code of a program that a signal ended, less the signal's number, as shells report it."""


@click.command("run", context_settings={"ignore_unknown_options": True})
@call_options
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
@report_errors
def command(*, program: tuple[str, ...], upstreams: tuple[str, ...], **options: Any) -> None:
    """Run PROGRAM with its model calls sent through a proxy that observes them.

    The proxy listens on a free port for as long as the program runs; only this program's environment names it.
    Exits with the code of the program.

    \b
    Example:
      windowpane run -- claude
      windowpane run --agent reviewer -- python my_agent.py
    """
    from windowpane.sources.installed_agents.arguments import stated_settings
    from windowpane.sources.proxy.programs import settings_of
    from windowpane.sources.proxy.upstreams import client_environment

    if shutil.which(program[0]) is None:
        raise click.UsageError(f"no program {program[0]!r} on the path")
    settings = settings_of(program[0], os.environ)
    source = click.get_current_context().get_parameter_source("agent")
    if settings.agent is not None and source is ParameterSource.DEFAULT:
        options["agent"] = settings.agent
    options["folder"] = str(Path.cwd())
    options["overrides"] = stated_settings(program[0], program[1:], Path.cwd())
    with running_proxy(LOOPBACK, 0, (*settings.upstreams, *upstreams), options) as (server, chosen, _):
        environment = {
            **settings.variables(server.url), **os.environ, **client_environment(chosen, server.url),
        }  # fmt: skip
        with _warnings_held_back():
            code = _run(settings.command(program, server.url), environment)
        if not server.forwarded:
            click.echo(f"no call of {program[0]} came through the proxy: {UNSEEN}", err=True)
    sys.exit(code)


def _run(program: Sequence[str], environment: dict[str, str]) -> int:
    """Run the program in the foreground; an interrupt from the terminal is for it to handle."""
    interrupts = signal.signal(signal.SIGINT, lambda *_: None)  # unlike SIG_IGN, not inherited by the program
    child = subprocess.Popen(program, env=environment)  # noqa: S603  # the user's own
    terminate = signal.signal(signal.SIGTERM, lambda number, _: child.send_signal(number))
    try:
        code = child.wait()
    finally:
        signal.signal(signal.SIGINT, interrupts)
        signal.signal(signal.SIGTERM, terminate)
    return code if code >= 0 else SIGNALLED - code


@contextmanager
def _warnings_held_back() -> Iterator[None]:
    """Print Windowpane's warnings after the program ended: the terminal is the program's until then."""
    log = logging.getLogger("windowpane")
    held = MemoryHandler(MAXIMUM_WARNINGS, flushLevel=logging.CRITICAL + 1, target=logging.StreamHandler())
    propagate, log.propagate = log.propagate, False
    log.addHandler(held)
    try:
        yield
    finally:
        log.removeHandler(held)
        held.close()
        log.propagate = propagate
