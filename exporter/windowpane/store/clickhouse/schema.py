"""The statements that create the tables: on one server, or on a cluster behind Distributed tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Final

from windowpane.store.clickhouse.tables import EVENTS, TABLES, CopyTable
from windowpane.store.tables import Column, Kind

LOCAL: Final = "_local"
"""Suffix of the tables that hold the rows of one shard."""
UNTIMED: Final = "1970-01-01"
"""The day of rows without a time, which have no age and never expire."""
_TYPES: Final = {
    Kind.INTEGER: "Int64", Kind.REAL: "Float64", Kind.TEXT: "String", Kind.BYTES: "String", Kind.FLAG: "Bool",
    Kind.LIST: "Array(String)", Kind.DAY: "Date32", Kind.VERSION: "UInt64",
}  # fmt: skip
_CODECS: Final = {"seq": "Delta, ZSTD", "body": "ZSTD(3)", "search_text": "ZSTD(3)"}
"""Of the columns of `events`."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The database, and what its statements depend on."""

    database: str = "windowpane"
    cluster: str | None = None
    retention_days: int | None = None
    """Days after which rows are deleted, by their own day; None keeps everything. Sums by day are kept."""

    def create(self) -> Iterator[str]:
        """Yield the statements that create what is missing; they change nothing that is there."""
        yield f"CREATE DATABASE IF NOT EXISTS {self.database}{self._on_cluster}"
        for table in TABLES:
            yield self._create_table(table)
            if self.cluster is not None:
                yield self._create_distributed(table)

    def add_columns(self, present: Mapping[str, Set[str]]) -> Iterator[str]:
        """Yield the statements that add the columns of this release; *present* has those of each table."""
        for table in TABLES:
            for column in table.columns:
                if column.name not in present[table.name]:
                    addition = f"{self._on_cluster} ADD COLUMN IF NOT EXISTS {_define(column, table)}"
                    yield from (f"ALTER TABLE {name}{addition}" for name in self._tables_of(table))

    def set_retention(self, engines: Mapping[str, str]) -> Iterator[str]:
        """Yield the statements that change the retention where the tables have another; *engines* has theirs."""
        for table in TABLES:
            if not table.expires:
                continue
            name = self.storing(table)
            change = f"MODIFY TTL {self._expiry}" if self._expiry else "REMOVE TTL"
            is_set = self._expiry in engines[name] if self._expiry else " TTL " not in engines[name]
            if not is_set:
                yield f"ALTER TABLE {self.database}.{name}{self._on_cluster} {change}"

    def storing(self, table: CopyTable) -> str:
        """Return the name of the table that holds the rows, on each shard."""
        return table.name if self.cluster is None else table.name + LOCAL

    @property
    def _on_cluster(self) -> str:
        return "" if self.cluster is None else f" ON CLUSTER '{self.cluster}'"

    @property
    def _expiry(self) -> str:
        """The TTL as ClickHouse prints it."""
        if self.retention_days is None:
            return ""
        return f"day + toIntervalDay({self.retention_days}) WHERE day > '{UNTIMED}'"

    def _tables_of(self, table: CopyTable) -> tuple[str, ...]:
        names = (table.name,) if self.cluster is None else (table.name + LOCAL, table.name)
        return tuple(f"{self.database}.{name}" for name in names)

    def _create_table(self, table: CopyTable) -> str:
        parts = [*(_define(column, table) for column in table.columns), *table.indexes]
        lines = [
            f"CREATE TABLE IF NOT EXISTS {self.database}.{self.storing(table)}{self._on_cluster} (",
            ",\n".join(f"    {part}" for part in parts),
            f") ENGINE = {self._engine(table)}",
        ]
        if table.partition_by:
            lines.append(f"PARTITION BY {table.partition_by}")
        lines.append(f"ORDER BY ({table.order_by})")
        if table.expires and self._expiry:
            lines.append(f"TTL {self._expiry}")
        return "\n".join(lines)

    def _engine(self, table: CopyTable) -> str:
        if self.cluster is None:
            return f"ReplacingMergeTree({table.version})"
        path = f"'/clickhouse/tables/{{shard}}/{self.database}/{table.name}'"
        version = f", {table.version}" if table.version else ""
        return f"ReplicatedReplacingMergeTree({path}, '{{replica}}'{version})"

    def _create_distributed(self, table: CopyTable) -> str:
        return (
            f"CREATE TABLE IF NOT EXISTS {self.database}.{table.name}{self._on_cluster}\n"
            f"AS {self.database}.{table.name}{LOCAL}\n"
            f"ENGINE = Distributed('{self.cluster}', '{self.database}', '{table.name}{LOCAL}', {table.sharding})"
        )


def _define(column: Column, table: CopyTable) -> str:
    codec = f" CODEC({_CODECS[column.name]})" if table is EVENTS and column.name in _CODECS else ""
    if column.kind is Kind.NAME:
        return f"`{column.name}` LowCardinality({'Nullable(String)' if column.null else 'String'})"
    kind = _TYPES[column.kind]
    return f"`{column.name}` {f'Nullable({kind})' if column.null else kind}{codec}"
