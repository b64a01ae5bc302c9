"""The schema version of a store: the tables of a new one, and the migrations that bring an older one up to date.

From release 0.1.0 on every store can be opened by every later release. A change of the tables is made in
`tables` and has a migration here, which is never edited once it is released.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Final

from windowpane.exceptions import SchemaVersionError
from windowpane.store.database import Database
from windowpane.store.tables import EVENT_TYPES, SCHEMA_VERSIONS

Migration = Callable[[Database], object]
"""Changes the tables inside a transaction; `Dialect` has the statements for new tables and columns."""

MIGRATIONS: Final[Mapping[int, Migration]] = {}
"""By the version that each gives a store of the version before."""
SCHEMA_VERSION: Final = max(MIGRATIONS, default=1)
"""That of this release; 1 is that of 0.1.0."""

_INSERT_STORE: Final = (
    "INSERT INTO store (one, next_seq, writes, flushes, indexed_seq, digest_key) VALUES (1, 1, 0, 0, 0, ?)"
)
_RECORD: Final = "INSERT INTO schema_versions (version, applied_at) VALUES (?, ?)"
_LATEST: Final = "SELECT max(version) FROM schema_versions"


def bring_up_to_date(
    database: Database, name: object, transaction: Callable[[Database], AbstractContextManager[object]]
) -> None:
    """Create the tables of a new store, or apply the missing migrations; all in one transaction.

    Several processes may do so at once: the version is read again under the writers' lock. Raises
    `SchemaVersionError` for a store that this release cannot open.
    """
    if stored_version(database, name) == SCHEMA_VERSION:
        return
    with transaction(database):
        version = stored_version(database, name)
        if version is None:
            create_tables(database)
            return
        for number in range(version + 1, SCHEMA_VERSION + 1):
            MIGRATIONS[number](database)
            database.execute(_RECORD, (number, time.time()))


def create_tables(database: Database) -> None:
    """Create the tables, and the random key of this store's digests."""
    for statement in database.dialect.create_store():
        database.execute(statement)
    database.execute(_INSERT_STORE, (secrets.token_bytes(32),))
    database.execute(_RECORD, (SCHEMA_VERSION, time.time()))


def stored_version(database: Database, name: object) -> int | None:
    """Return the schema version of the store with this *name*; None where the database has no store.

    Raises `SchemaVersionError` for a store of a newer release, and for one from before release 0.1.0.
    """
    if not _has_table(database, SCHEMA_VERSIONS.name):
        if not _has_table(database, EVENT_TYPES.name):
            return None
        raise SchemaVersionError(
            f"{name}: was written before release 0.1.0, whose stores are the first that can be opened. "
            "Name a new store, and import the sessions into it again"
        )
    (version,) = database.execute(_LATEST).fetchone()
    if version is None:
        raise SchemaVersionError(
            f"{name}: its table schema_versions is empty; nothing was changed. "
            "Restore a copy, or name another store"
        )
    if version < 1:
        raise SchemaVersionError(
            f"{name}: its schema version is {version}, and that of the first release is 1; nothing was changed. "
            "Restore a copy, or name another store"
        )
    if version > SCHEMA_VERSION:
        raise SchemaVersionError(
            f"{name}: written by a newer release of Windowpane (schema version {version}, this release knows "
            f"{SCHEMA_VERSION}); upgrade the package, or name another store"
        )
    return int(version)


def _has_table(database: Database, table: str) -> bool:
    return database.execute(database.dialect.table_exists, (table,)).fetchone() is not None
