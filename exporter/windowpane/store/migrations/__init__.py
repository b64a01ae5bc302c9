"""Append-only schema changes, one module each, applied in the order of their names.

A module `mNNN_verb_noun.py` here has a docstring and `apply(connection)`, which runs inside a transaction
together with the record that it ran. What was released is never edited: a correction is a further module.
"""

from __future__ import annotations

import pkgutil
import sqlite3
from importlib import import_module
from pathlib import Path
from time import time
from typing import NamedTuple, Protocol, cast

from windowpane.exceptions import SchemaVersionError


class Migration(Protocol):
    """What a migration module offers."""

    def apply(self, connection: sqlite3.Connection) -> None:
        """Change the schema, inside the caller's transaction."""
        ...


class Step(NamedTuple):
    """A migration and the name it is recorded under."""

    name: str
    migration: Migration


def available() -> list[Step]:
    """Every migration of this release, in order."""
    names = sorted(
        module.name
        for module in pkgutil.iter_modules([str(Path(__file__).parent)])
        if module.name.startswith("m")
    )
    return [Step(name, cast("Migration", import_module(f"{__name__}.{name}"))) for name in names]


def migrate(connection: sqlite3.Connection, path: Path, steps: list[Step] | None = None) -> list[str]:
    """Apply what is missing, each step in a transaction with its record; returns the names of what was applied.

    Several processes may open a new store at once: each step looks again under the write lock. Raises
    `SchemaVersionError` for a database that a newer release has changed.
    """
    steps = available() if steps is None else steps
    done = applied(connection)
    check(done, path, steps)
    missing = [step for step in steps if step.name not in done]
    return [step.name for step in missing if _apply(connection, step)]


def check(done: set[str], path: Path, steps: list[Step] | None = None) -> None:
    """Refuse a database with migrations that this release does not know."""
    unknown = sorted(done - {step.name for step in (available() if steps is None else steps)})
    if unknown:
        raise SchemaVersionError(
            f"{path}: written by a newer release of Windowpane (it has {unknown[-1]}); "
            "upgrade the package, or name another file"
        )


def applied(connection: sqlite3.Connection) -> set[str]:
    """Names of the migrations this database has; empty for a new file."""
    known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'migrations'").fetchone()
    if known is None:
        return set()
    return {name for (name,) in connection.execute("SELECT name FROM migrations")}


def _apply(connection: sqlite3.Connection, step: Step) -> bool:
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at REAL NOT NULL)"
        )
        new = connection.execute("INSERT OR IGNORE INTO migrations VALUES (?, ?)", (step.name, time())).rowcount
        if new:
            step.migration.apply(connection)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    return bool(new)
