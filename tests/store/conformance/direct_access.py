"""Changes and reads of a store's database without the store's knowledge."""

from __future__ import annotations

from typing import Any

from windowpane.store.reads.reader import Reader
from windowpane.store.store import Store


def edit(store: Store, statement: str, *values: object) -> None:
    """Run one statement on the database."""
    database = store._engine.open_writer()
    try:
        with store._engine.transaction(database):
            database.execute(statement, values)
    finally:
        database.close()


def fetch(store: Reader, statement: str, *values: object) -> list[tuple[Any, ...]]:
    """Return the rows of one statement."""
    with store._engine.lend() as database:
        return [tuple(row) for row in database.execute(statement, values).fetchall()]


def contents_of(store: Reader, tables: dict[str, str]) -> dict[str, list[tuple[Any, ...]]]:
    """Return every row of each table, in the order of its columns named."""
    return {table: fetch(store, f"SELECT * FROM {table} ORDER BY {order}") for table, order in tables.items()}


PROJECTIONS = {
    "sessions": "key",
    "turns": "session, turn",
    "blocks": "session, block_id",
    "alerts": "session, alert, crossing_turn",
    "late_events": "session, turn, seq",
}
