"""Output of the commands: JSON, tables, a progress bar."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:  # slow to load, and few commands draw a table
    from rich.console import RenderableType
    from rich.progress import Progress
    from rich.table import Table

MAXIMUM_COLUMNS = 1_000
"""Width of a table in characters, at most."""


def print_json(value: object, kind: Any = None) -> None:
    """Write a value of *kind* as one JSON document to standard output, by default as its own type.

    JSON has no infinite numbers, and UTF-8 no halves of surrogate pairs: they become null and `?`.
    """
    from pydantic import TypeAdapter

    plain = TypeAdapter[Any](kind or type(value)).dump_python(value, mode="json", warnings=False, fallback=str)
    encoded = json.dumps(plain, ensure_ascii=False).encode("utf-8", "replace")
    document = json.loads(encoded, parse_constant=lambda _name: None)
    text = json.dumps(document, ensure_ascii=not supports_unicode())
    sys.stdout.write(f"{msgspec.json.format(text, indent=2)}\n")  # json indents slowly


def frameless_table(texts: Mapping[str, tuple[int | None, int | None]], numbers: Mapping[str, int]) -> Table:
    """Return an empty table: columns of text by their minimum and maximum width, then right-aligned numbers."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    for name, (minimum, maximum) in texts.items():
        table.add_column(name, no_wrap=True, overflow="ellipsis", min_width=minimum, max_width=maximum)
    for name, width in numbers.items():
        table.add_column(name, justify="right", no_wrap=True, min_width=width)
    return table


def print_table(table: RenderableType) -> None:
    """Write a table at its full width: a narrow terminal wraps its lines, and no number is cut off."""
    from rich.console import Console

    console = Console()
    width = console.measure(table, options=console.options.update(max_width=MAXIMUM_COLUMNS)).maximum
    Console(width=max(console.width, width)).print(table)


def progress_bar(*, quiet: bool) -> Progress:
    """Return a bar on standard error that disappears when it is complete; nothing is drawn where *quiet*."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=quiet,
    )


def supports_unicode() -> bool:
    """Return whether standard output can encode the symbols of the zones, beyond ASCII."""
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower()
    return encoding.replace("-", "") in {"utf8", "utf16", "utf32"}
