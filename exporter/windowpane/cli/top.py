"""`windowpane top`: the sessions in the store by pressure, updated on the terminal."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Final, Unpack

import click
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from windowpane.cli.options import SessionNames, open_to_read, report_errors, session_filters, store_option
from windowpane.cli.output import frameless_table, print_table, supports_unicode
from windowpane.cli.sessions import TABLE_COLUMNS, short_id
from windowpane.core.characters import plain
from windowpane.core.store_names import StoreName
from windowpane.core.times import is_live, live_since
from windowpane.store.filters import SessionFilter
from windowpane.text import formats
from windowpane.text.forecasts import next_event
from windowpane.text.quota import quota_text
from windowpane.text.zones import gauge, zone_mark

if TYPE_CHECKING:
    from windowpane.core.quota import QuotaForecast
    from windowpane.store.records import SessionRow

NAME_CHARACTERS: Final = 11
REFRESH_SECONDS: Final = 1.0
MAXIMUM_QUOTAS: Final = 4
"""Windows of plans that are listed."""
MAXIMUM_KEYS: Final = 1_024
"""Key presses that are read at once."""


@click.command("top")
@click.option("--limit", type=click.IntRange(1, 1_000), default=20, show_default=True)
@click.option("--all", "everything", is_flag=True, help="Include sessions that are no longer live.")
@click.option("--once", is_flag=True, help="Print the table once and exit, for scripts.")
@session_filters
@store_option
@report_errors
def command(
    limit: int, *, everything: bool, once: bool, store_path: StoreName | None, **names: Unpack[SessionNames]
) -> None:
    """Show live sessions by pressure, refreshed every second; q or Ctrl-C stops.

    \b
    Example:
      windowpane top --all --once
    """
    console = Console()
    unicode = supports_unicode()
    with open_to_read(store_path) as store:

        def table() -> Group:
            since = None if everything else live_since(time.time())
            rows = store.sessions(SessionFilter(order="pressure", limit=limit, live_since=since, **names))
            now = time.time()
            return top_table(rows, now=now, unicode=unicode, quotas=store.quotas(now=now))

        if once or not sys.stdout.isatty():
            print_table(table())
            return
        with suppress(KeyboardInterrupt), _single_keys(), Live(console=console, screen=True) as live:
            while True:
                live.update(table(), refresh=True)
                if _pressed("q", within_seconds=REFRESH_SECONDS):
                    return


def top_table(
    rows: Sequence[SessionRow], *, now: float, unicode: bool = True, quotas: Sequence[QuotaForecast] = ()
) -> Group:
    """Return the sessions as a table of at most 80 columns, the fullest first, below the quotas of plans."""
    lines = [f"{formats.count(len(rows), 'session')} by pressure, {formats.local(now)}"]
    live = {row.agent for row in rows if is_live(row, now)}
    lines += [plain(quota_text(quota, now, live)) for quota in quotas[:MAXIMUM_QUOTAS]]
    head = Text("\n".join(lines))
    if not rows:
        hint = "No session is live. `windowpane watch` follows transcripts; --all lists all stored sessions."
        return Group(head, Text(hint))
    name_columns = NAME_CHARACTERS + max(0, get_terminal_size().columns - TABLE_COLUMNS)
    texts = {"window": (27, None), "session": (8, None), "title": (None, name_columns)}
    numbers = {"next": 10, "Δ/turn" if unicode else "d/turn": 6, "cost": 6, "last": 6}
    table = frameless_table(texts, numbers)
    for row in rows:
        share = formats.percent(row.utilization, estimated=row.is_estimated)
        level = f"{gauge(row.utilization)} {share} {zone_mark(row.zone, unicode=unicode)}"
        cells = [
            next_event(row).text_short if is_live(row, now) else "not live",
            formats.tokens_short(row.velocity, signed=True),
            formats.dollars(
                row.shown_cost_dollars, estimated=row.is_cost_estimated, stated=row.is_cost_stated
            ),
            formats.ago(row.last_at, now).removesuffix(" ago"),
        ]  # fmt: skip
        table.add_row(
            Text(level if unicode else formats.in_ascii(level)),
            short_id(row),
            Text(plain(row.name)),
            *cells,
        )
    return Group(head, table)


@contextmanager
def _single_keys() -> Iterator[None]:
    """Read keys without Return, where standard input is a terminal that supports it."""
    if sys.platform == "win32":  # Ctrl-C still stops
        yield
        return
    import termios
    import tty

    try:
        file = sys.stdin.fileno()
        before = termios.tcgetattr(file)
    except (termios.error, OSError, ValueError):  # standard input is not a terminal
        yield
        return
    tty.setcbreak(file)
    try:
        yield
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)


def _pressed(key: str, *, within_seconds: float) -> bool:
    """Wait, and return True as soon as *key* is pressed; without a keyboard, wait the whole time."""
    try:
        if not sys.stdin.isatty():  # a closed file or pipe is always ready
            time.sleep(within_seconds)
            return False
        ready, _, _ = select.select([sys.stdin], [], [], within_seconds)
        return bool(ready) and key.encode() in os.read(sys.stdin.fileno(), MAXIMUM_KEYS)
    except (OSError, ValueError):  # standard input cannot be waited for
        time.sleep(within_seconds)
        return False
