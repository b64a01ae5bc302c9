"""One empty store of each kind for every test of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from windowpane.store.open import open_reader, open_store
from windowpane.store.reads import Reader
from windowpane.store.store import Store

KINDS = ["sqlite"]


class Stores:
    """One database under a test, opened as often as it needs."""

    def __init__(self, name: str) -> None:
        self.name = name
        """A path or an address, as users name a store."""
        self._opened: list[Reader] = []

    @property
    def is_sqlite(self) -> bool:
        return "://" not in self.name

    def open(self, **options: Any) -> Store:
        """The store opened for writing; it is closed when the test ends."""
        store = open_store(self.name, **options)
        self._opened.append(store)
        return store

    def read(self) -> Reader:
        """The store opened for reading."""
        reader = open_reader(self.name)
        self._opened.append(reader)
        return reader

    def close(self) -> None:
        for reader in self._opened:
            reader.close()


@pytest.fixture(params=KINDS)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    """An empty database of each kind."""
    is_sqlite = request.param == "sqlite"
    opened = Stores(str(tmp_path / "windowpane.db") if is_sqlite else request.getfixturevalue("postgres_url"))
    yield opened
    opened.close()


@pytest.fixture
def store(stores: Stores) -> Store:
    """An empty store of each kind."""
    return stores.open()
