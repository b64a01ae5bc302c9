"""What the commands share: the store option, opening the store, and turning our errors into plain messages."""

from __future__ import annotations

import errno
import functools
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click

from windowpane.core.redaction import redact
from windowpane.exceptions import OlderStoreError, WindowpaneError
from windowpane.store.chain import key_in
from windowpane.store.reads import SqliteReader
from windowpane.store.sqlite import SqliteStore
from windowpane.text import formats

if TYPE_CHECKING:
    from rich.console import RenderableType

    from windowpane.config.schema import StoreConfig
    from windowpane.store.interface import EventReader
    from windowpane.store.records import SessionRow

P = ParamSpec("P")
R = TypeVar("R")

WIDEST = 1_000
"""Columns of a table, at most."""
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_PARTIAL = 3
"""Something was read, something was not."""
EXIT_ALERTS = 4
"""`check` found an alert of the given severity."""


class Refused(click.ClickException):
    """An option or what it names is wrong: told apart from work that failed."""

    exit_code = EXIT_USAGE


store_option = click.option(
    "--store",
    "store_path",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    help="The event store; by default what the configuration names, else windowpane.db in your data folder.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


def plain_errors(function: Callable[P, R]) -> Callable[P, R]:
    """Report our own errors as one line on standard error, without a traceback."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except WindowpaneError as error:
            raise click.ClickException(str(error)) from error
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise  # the reader of our output has seen enough; click ends quietly
            where = "" if error.filename is None else f"{error.filename}: "
            raise click.ClickException(f"{where}{error.strerror or error}") from error

    return wrapped


def chosen_store(path: Path | None) -> Path:
    """The store that is meant: *path*, else what the configuration names, else the default."""
    return path or _stored_by().path


def _stored_by() -> StoreConfig:
    from windowpane.config.loading import load_config  # a command that is told everything need not pay for it

    return load_config().store


@contextmanager
def open_to_read(path: Path | None) -> Iterator[SqliteReader]:
    """The store, read only; one of an older release is brought up to this one first.

    Raises a message that says what to do when there is none.
    """
    chosen = _existing(path)
    try:
        reader = SqliteReader(chosen)
    except OlderStoreError:
        with open_to_write(chosen):
            click.echo(f"brought {chosen} up to this release", err=True)
        reader = SqliteReader(chosen)
    with closing(reader):
        yield reader


@contextmanager
def open_existing(path: Path | None) -> Iterator[SqliteStore]:
    """As `open_to_write`, but a store that is not there is an error: nothing was ever recorded in it."""
    with open_to_write(_existing(path)) as store:
        yield store


def _existing(path: Path | None) -> Path:
    chosen = chosen_store(path)
    if not chosen.exists():
        raise click.ClickException(
            f"no store at {chosen}; make one with `windowpane import PATH` or look around with `windowpane demo`"
        )
    return chosen


@contextmanager
def open_to_write(path: Path | None, *, capture: bool = False) -> Iterator[SqliteStore]:
    """The store, made when there is none. Secrets are redacted before anything is stored.

    The audit key is the configuration's: without it a keyed chain would not verify, nor go on keyed.
    """
    configured = _stored_by()
    chosen = path or configured.path
    try:
        chosen.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.ClickException(f"cannot make the folder of the store {chosen}: {error.strerror}") from error
    key = key_in(configured.audit_key_file, "store.audit_key_file")
    with closing(SqliteStore(chosen, capture=capture, redact=_without_secrets, audit_key=key)) as store:
        yield store


def _without_secrets(text: str) -> str:
    return redact(text).text


def pick_session(store: EventReader, prefix: str) -> SessionRow:
    """The one session whose id begins with *prefix*. Raises an error that lists the choices otherwise."""
    found = store.find_sessions(prefix)
    if not found:
        sources = store.facets().get("sources", ())
        found = [row for source in sources for row in store.find_sessions(f"{source}:{prefix}")]
    exact = [row for row in found if row.session_id == prefix]
    if exact:
        return exact[0]
    if len(found) == 1:
        return found[0]
    if not found:
        raise click.ClickException(f"no session begins with {prefix!r}; `windowpane sessions` lists them")
    names = "\n".join(f"  {formats.plain(row.session_id)}" for row in found)
    raise click.ClickException(f"{prefix!r} could be any of:\n{names}")


def print_json(value: Any) -> None:
    """Write one JSON document to standard output."""
    json.dump(value, sys.stdout, indent=2, ensure_ascii=not can_draw(), default=str)
    sys.stdout.write("\n")


def print_table(table: RenderableType) -> None:
    """Write a table as wide as it is: a narrow terminal wraps its lines, and no figure loses its end."""
    from rich.console import Console  # slow to load, and few commands draw a table

    console = Console()
    wide = console.measure(table, options=console.options.update(max_width=WIDEST)).maximum
    Console(width=max(console.width, wide)).print(table)


def can_draw() -> bool:
    """Whether standard output takes the shapes of the zones and not only ASCII."""
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower()
    return encoding.replace("-", "") in {"utf8", "utf16", "utf32"}
