"""Append-only schema changes, one module each, applied in the order of their names.

A module `mNNN_verb_noun.py` here has a docstring and `apply(connection)`, which runs inside a transaction
together with the record that it ran. A released migration is never edited: a correction is a further module.
"""

from __future__ import annotations

import pkgutil
import sqlite3
from importlib import import_module
from pathlib import Path
from time import time
from typing import Any, Final, NamedTuple, Protocol, cast

from windowpane.exceptions import SchemaVersionError, StoreError

_PRESENT: Final = ("already exists", "duplicate column")
"""Errors of a migration whose changes are there already."""


class Migration(Protocol):
    """A migration module."""

    def apply(self, connection: Any) -> None:
        """Change the schema, inside the caller's transaction."""
        ...


class NamedMigration(NamedTuple):
    """A migration and the name it is recorded under."""

    name: str
    module: Migration


def available() -> list[NamedMigration]:
    """Return every migration of this release, in order."""
    names = sorted(
        module.name
        for module in pkgutil.iter_modules([str(Path(__file__).parent)])
        if module.name.startswith("m")
    )
    return [NamedMigration(name, cast("Migration", import_module(f"{__name__}.{name}"))) for name in names]


def migrate(
    connection: sqlite3.Connection, path: Path, migrations: list[NamedMigration] | None = None
) -> list[str]:
    """Apply the missing migrations, each in a transaction with its record; return the names of those applied.

    Several processes may open a new store at once: each migration is checked again under the write lock. Raises
    `SchemaVersionError` for a database that a newer release has changed, and `StoreError` where the record of a
    migration is missing although its changes are there.
    """
    migrations = available() if migrations is None else migrations
    done = applied(connection)
    check(done, path, migrations)
    missing = [migration for migration in migrations if migration.name not in done]
    try:
        return [migration.name for migration in missing if _apply(connection, migration)]
    except sqlite3.OperationalError as error:
        if any(text in str(error) for text in _PRESENT):
            raise _incomplete(path, missing[0].name) from error
        raise


def _incomplete(path: Path, missing: str) -> StoreError:
    return StoreError(
        f"{path}: its table of migrations lacks {missing}, whose changes it has; nothing was changed. "
        "The table was cut short: restore a copy of the file, or name another file"
    )


def check(done: set[str], path: Path | str, migrations: list[NamedMigration] | None = None) -> None:
    """Raise `SchemaVersionError` for a database with migrations that this release does not know."""
    unknown = sorted(done - {migration.name for migration in (available() if migrations is None else migrations)})
    if unknown:
        raise SchemaVersionError(
            f"{path}: written by a newer release of Windowpane (it has {unknown[-1]}); "
            "upgrade the package, or name another file"
        )


def applied(connection: sqlite3.Connection) -> set[str]:
    """Return the names of the migrations this database has; empty for a new file."""
    table = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'migrations'").fetchone()
    if table is None:
        return set()
    return {name for (name,) in connection.execute("SELECT name FROM migrations")}


def _apply(connection: sqlite3.Connection, migration: NamedMigration) -> bool:
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at REAL NOT NULL)"
        )
        new = connection.execute(
            "INSERT OR IGNORE INTO migrations VALUES (?, ?)", (migration.name, time())
        ).rowcount
        if new:
            migration.module.apply(connection)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    return bool(new)
