"""Stores with sessions of the real tracker, and their copies in a running ClickHouse."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.store.conftest import make_session, store  # noqa: F401  # fixtures

from windowpane.store.clickhouse.connection import ClickHouse
from windowpane.store.clickhouse.schema import Schema
from windowpane.store.clickhouse.store_copy import StoreCopy
from windowpane.store.reads.reader import Reader

CopyStore = Callable[..., StoreCopy]


@pytest.fixture
def copy_store(clickhouse: ClickHouse) -> CopyStore:
    """A function that copies everything a store holds, as a process that has just started does."""

    def copy(copied: Reader, *, into: ClickHouse = clickhouse, batch_events: int = 1_000) -> StoreCopy:
        one = StoreCopy(copied, into, Schema(into.database), batch_events=batch_events)
        one.open()
        while one.copy_batch():
            pass
        return one

    return copy
