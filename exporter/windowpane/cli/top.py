"""`windowpane top`: the sessions in the store by pressure, kept up to date on the terminal."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from windowpane.cli.options import can_draw, open_to_read, plain_errors, print_table, store_option
from windowpane.cli.sessions import short_id
from windowpane.core.liveness import live_since
from windowpane.store.interface import SessionFilter
from windowpane.text import formats
from windowpane.text.labels import gauge, zone_mark

if TYPE_CHECKING:
    from windowpane.store.records import SessionRow

REFRESH_SECONDS: Final = 1.0
KEYS_READ: Final = 1_024
"""Pressed since the last look and taken at once."""


@click.command("top")
@click.option("--limit", type=click.IntRange(1, 1_000), default=20, show_default=True)
@click.option("--all", "everything", is_flag=True, help="Sessions that are no longer live as well.")
@click.option("--once", is_flag=True, help="Print the table once and exit, for scripts.")
@store_option
@plain_errors
def command(limit: int, *, everything: bool, once: bool, store_path: Path | None) -> None:
    """Show live sessions by pressure, refreshed every second; q or Ctrl-C stops.

    \b
    Example:
      windowpane top --all --once
    """
    console = Console()
    unicode = can_draw()
    with open_to_read(store_path) as store:

        def table() -> Group:
            since = None if everything else live_since(time.time())
            rows = store.sessions(SessionFilter(order="pressure", limit=limit, live_since=since))
            return top_table(rows, now=time.time(), unicode=unicode)

        if once or not sys.stdout.isatty():
            print_table(table())
            return
        with suppress(KeyboardInterrupt), _single_keys(), Live(console=console, screen=True) as live:
            while True:
                live.update(table(), refresh=True)
                if _pressed("q", within_seconds=REFRESH_SECONDS):
                    return


def top_table(rows: Sequence[SessionRow], *, now: float, unicode: bool = True) -> Group:
    """The sessions as a table of at most 80 columns, the fullest first."""
    head = Text(f"{formats.count(len(rows), 'session')} by pressure, {formats.local(now)}")
    if not rows:
        hint = "None is live. `windowpane watch` follows transcripts; --all lists what is stored."
        return Group(head, Text(hint))
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("window", no_wrap=True, min_width=27)
    table.add_column("session", no_wrap=True, min_width=8)
    table.add_column("agent", no_wrap=True, overflow="ellipsis", max_width=11)
    for name, width in {"red in": 6, "Δ/turn" if unicode else "d/turn": 6, "cost": 5, "last": 6}.items():
        table.add_column(name, justify="right", no_wrap=True, min_width=width)
    for row in rows:
        share = formats.percent(row.utilization, estimated=row.is_estimated)
        level = f"{gauge(row.utilization)} {share} {zone_mark(row.zone, unicode=unicode)}"
        cells = [
            formats.turns_until(row.turns_until_red), formats.tokens_short(row.velocity, signed=True),
            formats.dollars(row.cost_dollars), formats.ago(row.last_at, now).removesuffix(" ago"),
        ]  # fmt: skip
        table.add_row(
            Text(level if unicode else formats.in_ascii(level)),
            short_id(row)[:8],
            Text(formats.plain(row.agent)),
            *cells,
        )
    return Group(head, table)


@contextmanager
def _single_keys() -> Iterator[None]:
    """Keys arrive without Return, where standard input is a terminal that can do that."""
    try:
        import termios
        import tty
    except ImportError:  # no terminal like that on this system: Ctrl-C still stops
        yield
        return
    try:
        file = sys.stdin.fileno()
        before = termios.tcgetattr(file)
    except (termios.error, OSError, ValueError):  # standard input is no terminal
        yield
        return
    tty.setcbreak(file)
    try:
        yield
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)


def _pressed(key: str, *, within_seconds: float) -> bool:
    """Whether *key* was pressed before the time was over; where nothing can be pressed the time passes."""
    try:
        if not sys.stdin.isatty():  # a file or a pipe that has ended is ready at once, for ever
            time.sleep(within_seconds)
            return False
        ready, _, _ = select.select([sys.stdin], [], [], within_seconds)
        return bool(ready) and key.encode() in os.read(sys.stdin.fileno(), KEYS_READ)
    except (OSError, ValueError):  # standard input cannot be waited for
        time.sleep(within_seconds)
        return False
