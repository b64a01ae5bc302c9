"""The copy that the configuration describes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windowpane.store.clickhouse.connection import WRITING, ClickHouse, require_client
from windowpane.store.clickhouse.copier import Copier
from windowpane.store.clickhouse.fallback import Copy
from windowpane.store.clickhouse.reads import ClickHouseReader
from windowpane.store.clickhouse.schema import Schema
from windowpane.store.clickhouse.store_copy import StoreCopy
from windowpane.store.reads.reader import Reader

if TYPE_CHECKING:
    from windowpane.config.outputs import ClickHouseConfig


def configured_schema(config: ClickHouseConfig) -> Schema:
    """Return the tables of the copy."""
    return Schema(database=config.database, cluster=config.cluster, retention_days=config.retention_days)


def configured_copier(config: ClickHouseConfig, store: Reader) -> Copier:
    """Return a copier of *store*, not started. Raises `ClickHouseError` without the client library."""
    require_client()
    return Copier(StoreCopy(store, _connection(config, writes=True), configured_schema(config)))


def configured_copy(config: ClickHouseConfig) -> Copy | None:
    """Return the copy to read; None where none is configured."""
    if config.url is None:
        return None
    return Copy(ClickHouseReader(_connection(config, writes=False)))


def _connection(config: ClickHouseConfig, *, writes: bool) -> ClickHouse:
    assert config.url is not None
    reading = {} if config.cluster is None else {"distributed_product_mode": WRITING["distributed_product_mode"]}
    return ClickHouse(
        config.url,
        database=config.database,
        user=config.user,
        password=config.password.get_secret_value(),
        settings=WRITING if writes else reading,
    )
