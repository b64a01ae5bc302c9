"""The machine of each registered endpoint: a store on a server has those of many, which use the same ports."""

from __future__ import annotations

from typing import Final

from windowpane.store.database import Database

_COLUMNS: Final = "host, port, pid, started_at, scheme"
STATEMENTS: Final = (
    "ALTER TABLE endpoints RENAME TO earlier_endpoints",
    """CREATE TABLE endpoints (
        machine TEXT NOT NULL, host TEXT NOT NULL, port BIGINT NOT NULL, pid BIGINT NOT NULL,
        started_at DOUBLE PRECISION NOT NULL, scheme TEXT NOT NULL, PRIMARY KEY (machine, host, port)
    )""",
    f"INSERT INTO endpoints (machine, {_COLUMNS}) SELECT '', {_COLUMNS} FROM earlier_endpoints",  # noqa: S608  # ours
    "DROP TABLE earlier_endpoints",
)


def apply(connection: Database) -> None:
    """Create the table anew with its key; of the rows that are there the machine is not known."""
    for statement in STATEMENTS:
        connection.execute(statement)
