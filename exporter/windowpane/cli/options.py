"""Options, exit codes and error messages that commands share, and access to the store that they name."""

from __future__ import annotations

import errno
import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypedDict, TypeVar

import click

from windowpane.config.paths import data_folder, default_store_file
from windowpane.core.characters import encodable, plain
from windowpane.core.store_names import StoreName, StoreUrl, parse_store_name
from windowpane.exceptions import ConfigurationError, OlderStoreError, WindowpaneError
from windowpane.sources.installed_agents.locations import default_folders, locations

DEMO_ONCE: Final = "demo-once"
"""Folder of the store that `windowpane demo --once` makes."""

if TYPE_CHECKING:  # the store is loaded by the commands that open it, not by their options
    from windowpane.config.outputs import StoreConfig
    from windowpane.config.schema import Config
    from windowpane.store.reads.project_reader import EventReader, ProjectReader
    from windowpane.store.reads.reader import Reader as StoreReader
    from windowpane.store.records import SessionRow
    from windowpane.store.store import Store

P = ParamSpec("P")
R = TypeVar("R")

MAXIMUM_CHOICES = 20
"""Sessions that an error lists where a name is ambiguous."""
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_PARTIAL = 3
"""Some of the input was read, some could not be."""
EXIT_ALERTS = 4
"""`check` found an alert of the given severity or worse."""


class InvalidOption(click.ClickException):
    """The value of an option, or the file it names, is invalid; the exit code differs from work that failed."""

    exit_code = EXIT_USAGE


class StoreOption(click.Path):
    """An event store, given as the path of its file or as a URL."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, dir_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path of the file, or the URL."""
        try:
            name = parse_store_name(str(value), key="--store")
        except ConfigurationError as error:
            raise InvalidOption(str(error)) from error
        return name if isinstance(name, StoreUrl) else super().convert(name, param, ctx)


store_option = click.option(
    "--store",
    "store_path",
    type=StoreOption(),
    default=None,
    help="Event store; by default the configured one, else windowpane.db in your data folder.",
)
capture_option = click.option(
    "--capture", is_flag=True, help="Store content too, with secrets redacted, for diffs and time travel."
)
limit_option = click.option(
    "--limit", "limit_tokens", type=click.IntRange(1), help="Size of the context window, in tokens."
)

project_option = click.option("--project", help="Project of sessions that are not stored yet.")

project_filter_option = click.option("--project", help="Only sessions of this project, by its exact name.")


def of_project(store: StoreReader, project: str | None) -> StoreReader | ProjectReader:
    """Return the sessions of *project* in a store; all where it is None."""
    from windowpane.store.reads.project_reader import ProjectReader

    return store if project is None else ProjectReader(store, (project,))


def project_config(project: str | None) -> Config:
    """Return the configuration, with *project* where it is given."""
    from windowpane.config.loading import load_config  # slow, and not needed by commands that only read

    return load_config(arguments=None if project is None else {"project": project})


class SessionNames(TypedDict):
    """The options of `session_filters`."""

    text: str | None
    folder: str | None
    repository: str | None
    branch: str | None
    label: str | None
    project: str | None


_SESSION_FILTERS = {
    "text": "Part of the id, agent, title, folder, repository, branch or label.",
    "folder": "Part of the folder it works in.",
    "repository": "Part of its repository.",
    "branch": "Part of its git branch.",
    "label": "Part of its label.",
    "project": "Its project, by its exact name.",
}


def session_filters(function: Callable[P, R]) -> Callable[P, R]:
    """Add the options that select sessions by their names, as fields of `SessionFilter`."""
    for name, text in reversed(_SESSION_FILTERS.items()):
        function = click.option(f"--{name}", help=text)(function)
    return function


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


def report_errors(function: Callable[P, R]) -> Callable[P, R]:
    """Report expected errors as one line on standard error, without a traceback.

    Names among the arguments are passed on as text that can be encoded.
    """

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        for name, value in kwargs.items():
            kwargs[name] = encodable(value) if isinstance(value, str) else value
        try:
            return function(*args, **kwargs)
        except WindowpaneError as error:
            raise click.ClickException(str(error)) from error
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise  # the reader of our output has closed it; click ends quietly
            file = "" if error.filename is None else f"{error.filename}: "
            raise click.ClickException(f"{file}{error.strerror or error}") from error

    return wrapped


def recording_folders() -> Sequence[Path]:
    """Return the existing default folders of recordings. Raises `click.ClickException` if none exists."""
    folders = default_folders()
    if not folders:
        searched = "\n".join(f"  {path}" for path in locations())
        raise click.ClickException(
            "no recordings in the default folders; `windowpane import PATH` reads others, and `windowpane demo` "
            f"shows recorded sessions. Searched:\n{searched}"
        )
    return folders


def store_path_or_default(path: StoreName | None) -> StoreName:
    """Return *path*, else the configured store, else the default one."""
    return path or _store_config().path


def _store_config() -> StoreConfig:
    from windowpane.config.loading import load_config  # slow, and not needed where --store is given

    return load_config().store


@contextmanager
def open_to_read(path: StoreName | None) -> Iterator[StoreReader]:
    """Open the store for reading; one of an older release is migrated first.

    Raises `click.ClickException` with the next step when there is none.
    """
    from windowpane.store.open import open_reader

    existing = _demo_instead_of_none(path) or _existing(path)
    try:
        reader = open_reader(existing)
    except OlderStoreError:
        with open_to_write(existing):
            click.echo(f"migrated {existing} to this release", err=True)
        reader = open_reader(existing)
    with closing(reader):
        yield reader


def _demo_instead_of_none(path: StoreName | None) -> Path | None:
    """Return the store of `windowpane demo --once` while the user has none, with a note; else None."""
    demo = data_folder() / DEMO_ONCE / "demo.db"
    if path is not None or not demo.exists() or store_path_or_default(None) != default_store_file():
        return None
    if default_store_file().exists():
        return None
    click.echo("the sessions are those of the demo; `windowpane import` starts your store", err=True)
    return demo


@contextmanager
def open_existing(path: StoreName | None) -> Iterator[Store]:
    """Open the store for writing; a missing or empty file is an error, because nothing was recorded in it."""
    from windowpane.store.open import open_reader

    existing = _existing(path)
    with suppress(OlderStoreError):
        open_reader(existing).close()
    with open_to_write(existing) as store:
        yield store


def _existing(path: StoreName | None) -> StoreName:
    from windowpane.store.open import store_exists

    store = store_path_or_default(path)
    if not store_exists(store):
        raise click.ClickException(
            f"no store at {store}; create one with `windowpane import` or try `windowpane demo`"
        )
    return store


@contextmanager
def open_to_write(path: StoreName | None, *, capture: bool = False) -> Iterator[Store]:
    """Open the store for writing, and create it when there is none. Content is redacted before it is stored.

    The audit key is the configured one: without it a keyed chain would neither verify nor continue.
    """
    from windowpane.effects.private_files import create_folder
    from windowpane.store.keys import key_in, keys_in
    from windowpane.store.open import open_store

    configured = _store_config()
    chosen = path or configured.path
    if isinstance(chosen, Path):
        try:
            create_folder(chosen.parent)
        except OSError as error:
            raise click.ClickException(
                f"cannot create the folder of the store {chosen}: {error.strerror}"
            ) from error
    key = key_in(configured.audit_key_file, "store.audit_key_file")
    old_keys = keys_in(configured.audit_old_key_files, "store.audit_old_key_files")
    opened = open_store(
        chosen,
        capture=capture or configured.capture,
        redact=without_secrets,
        audit_key=key,
        old_audit_keys=old_keys,
    )
    with closing(opened) as store:
        yield store


def without_secrets(text: str) -> str:
    """Return *text* with every secret replaced by `[redacted:kind]`."""
    from windowpane.core.redaction import redact

    return redact(text).text


def pick_session(store: EventReader, prefix: str) -> SessionRow:
    """Return the one session whose id starts with *prefix*, else the one that it is a name or part of a name of.

    Raises `click.ClickException` with the choices.
    """
    from windowpane.core.redaction import stored_id
    from windowpane.store.filters import SessionFilter
    from windowpane.store.writes.project_sessions import named_in_projects

    prefix = encodable(prefix)
    rows = store.find_sessions(prefix)
    if not rows:
        sources = store.facets().get("sources", ())
        rows = [row for source in sources for row in store.find_sessions(f"{source}:{prefix}")]
    if not rows:
        rows = store.sessions(SessionFilter(text=prefix, order="recent", limit=MAXIMUM_CHOICES))
    exact = [row for row in rows if prefix in (row.session_id, row.title, row.label)]
    exact = exact or named_in_projects(store, prefix)
    if len(exact) == 1:
        return exact[0]
    if len(rows) == 1:
        return rows[0]
    if not rows:
        raise click.ClickException(
            f"no session starts with {stored_id(prefix)!r} or has a name with it; "
            "`windowpane sessions` lists them"
        )
    names = "\n".join(f"  {plain(row.session_id)}  {plain(row.title)}".rstrip() for row in rows)
    raise click.ClickException(f"{prefix!r} is ambiguous; it could be any of:\n{names}")
