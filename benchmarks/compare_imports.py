"""The rows that two checkouts store for the same recordings, compared.

    python benchmarks/compare_imports.py write BEFORE.db PATH...    # in the checkout before the change
    python benchmarks/compare_imports.py write AFTER.db PATH...     # in the one after it
    python benchmarks/compare_imports.py BEFORE.db AFTER.db

`write` imports every recording below the paths as `windowpane import` does, with a fixed digest key and clock.
The comparison lists each table whose rows differ, with the first differences; events are rows as well, with the
hash that chains them.
"""

from __future__ import annotations

import logging
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

from windowpane.alerts.rules import configured
from windowpane.config.loading import load_config
from windowpane.sources.imports.importer import import_paths
from windowpane.sources.imports.pipeline import AlertingStore, playback_settings
from windowpane.sources.transcripts.discovery import all_readers
from windowpane.store.embedded import SqliteStore

LISTED = 5


def write(file: Path, paths: list[Path]) -> None:
    """Import the recordings below *paths* into a new store, searchable."""
    file.unlink(missing_ok=True)
    SqliteStore(file).close()
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE store SET digest_key = ?", (b"\1" * 32,))
    config = load_config(environ={})
    store = SqliteStore(file, clock=lambda: 0.0)
    playback = playback_settings(store.digester(), config=config, history=store.earlier_sessions)
    target = AlertingStore(store, rules=configured(**config.alert_settings()))
    import_paths(paths, target, playback=playback, readers=all_readers())
    while store.index_text():
        pass
    store.close()


def differences(before: Path, after: Path) -> Iterator[str]:
    """Yield the tables whose rows differ, each with its first differences."""
    connection = sqlite3.connect(before)
    connection.execute("ATTACH ? AS later", (str(after),))
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'")
    for (name,) in names.fetchall():
        if name == "schema_versions":  # it has the time of the store's making
            continue
        for first, second, side in (("main", "later", "only before"), ("later", "main", "only after")):
            rows = connection.execute(f'SELECT * FROM {first}."{name}" EXCEPT SELECT * FROM {second}."{name}"')
            different = rows.fetchall()
            if different:
                yield f"{name}: {len(different)} rows {side}"
                yield from (f"    {row!r:.600}" for row in different[:LISTED])


def main() -> int:
    """Write a store, or compare two; return 1 where they differ."""
    logging.basicConfig(level=logging.ERROR)
    match sys.argv[1:]:
        case ["write", file, *paths] if paths:
            write(Path(file), [Path(path) for path in paths])
            return 0
        case [before, after]:
            lines = list(differences(Path(before), Path(after)))
            print("\n".join(lines) or "the same rows in every table")
            return 1 if lines else 0
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main())
