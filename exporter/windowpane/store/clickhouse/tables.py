"""The tables of the copy, as data: columns, keys, partitions and the sharding of a cluster.

Every row states its absolute values and has a key, and every table keeps the newest row of a key. So a batch that
is written twice is there once, in whatever order, for a query that reads with FINAL. Sums by day are tables too,
which the copier computes anew for the days that a batch touched: a materialized view of ClickHouse would add a
repeated batch a second time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, fields
from typing import Any, Final

from windowpane.store.projections.trends import DAILY_SUMS
from windowpane.store.records import AlertRow, SessionRow, TurnRow

MONTH: Final = "toYYYYMM(day)"
BY_SESSION: Final = "cityHash64(session_id)"


@dataclass(frozen=True, slots=True)
class Column:
    """A column and its type, with its codec where it has one."""

    name: str
    type: str

    def __str__(self) -> str:
        return f"`{self.name}` {self.type}"


@dataclass(frozen=True, slots=True)
class Table:
    """One table."""

    name: str
    columns: tuple[Column, ...]
    order_by: str
    """The key, of which the newest row is kept."""
    sharding: str
    """Of a cluster; rows with the same key belong to the same shard."""
    version: str = ""
    """Column that is greatest in the newest row of a key; empty where all rows of a key are the same."""
    partition_by: str = ""
    expires: bool = False
    """The retention of the copy applies, by the column `day`."""
    indexes: tuple[str, ...] = ()

    def row(self, values: Mapping[str, Any]) -> list[Any]:
        """Return the values in the order of the columns."""
        return [values[column.name] for column in self.columns]


_TYPES: Final = {
    "int": "Int64",
    "int | None": "Nullable(Int64)",
    "float": "Float64",
    "float | None": "Nullable(Float64)",
    "bool": "Bool",
    "str": "String",
    "str | None": "Nullable(String)",
    "Severity": "LowCardinality(String)",
    "Severity | None": "LowCardinality(Nullable(String))",
    "Zone | None": "LowCardinality(Nullable(String))",
    "dict[Component, int]": "String",
    "tuple[str, ...]": "Array(String)",
}
"""Annotations of the store's rows."""
_REPEATED: Final = frozenset({"agent", "model", "source", "alert", "agent_version", "last_event", "title_source"})
"""Columns with few distinct values."""
COMPUTED: Final = frozenset({"sparkline", "subagent_cost_dollars"})
"""Fields of a session that are not copied: they change with other rows, or are drawings."""


def _columns(row: Any, *, without: frozenset[str] = frozenset()) -> tuple[Column, ...]:
    return tuple(_column(item) for item in fields(row) if item.name not in without)


def _column(item: Field[Any]) -> Column:
    return Column(item.name, "LowCardinality(String)" if item.name in _REPEATED else _TYPES[str(item.type)])


_SESSION: Final = Column("session_id", "String")
_REVISION: Final = Column("revision", "Int64")
_DAY: Final = Column("day", "Date32")
_AGENT: Final = Column("agent", "LowCardinality(String)")
_MODEL: Final = Column("model", "LowCardinality(String)")
_RELEASE: Final = Column("release", "LowCardinality(String)")
_PROJECT: Final = Column("project", "LowCardinality(String)")
_VERSION: Final = Column("version", "UInt64")
_REMOVED: Final = Column("removed", "Bool")
_SUMS: Final = tuple(Column(name, "Int64") for name in DAILY_SUMS)
_USE: Final = (
    Column("blocks", "Int64"),
    Column("tokens", "Int64"),
    Column("carried_tokens", "Int64"),
    Column("dollars", "Nullable(Float64)"),
)
_FIND_SESSION: Final = "INDEX session_index session_id TYPE bloom_filter GRANULARITY 1"

EVENTS: Final = Table(
    "events",
    (
        Column("seq", "Int64 CODEC(Delta, ZSTD)"),
        _SESSION,
        _REVISION,
        Column("counted", "Bool"),
        Column("turn", "Int64"),
        Column("type", "LowCardinality(String)"),
        Column("at", "Nullable(Float64)"),
        _DAY,
        _AGENT,
        _MODEL,
        Column("hash", "String"),
        Column("body", "String CODEC(ZSTD(3))"),
        Column("search_text", "String CODEC(ZSTD(3))"),
    ),
    order_by="seq",
    sharding=BY_SESSION,
    partition_by=MONTH,
    expires=True,
    indexes=(_FIND_SESSION, "INDEX text_index search_text TYPE tokenbf_v1(65536, 2, 0) GRANULARITY 1"),
)
SESSIONS: Final = Table(
    "sessions",
    (*_columns(SessionRow, without=COMPUTED), _DAY, _VERSION),
    order_by="session_id",
    sharding=BY_SESSION,
    version="version",
    expires=True,
)
TURNS: Final = Table(
    "turns",
    (_SESSION, _REVISION, _DAY, _AGENT, _RELEASE, *_columns(TurnRow), _VERSION, _REMOVED),
    order_by="session_id, revision, turn",
    sharding=BY_SESSION,
    version="version",
    partition_by=MONTH,
    expires=True,
)
ALERTS: Final = Table(
    "alerts",
    (_REVISION, _DAY, *_columns(AlertRow), _VERSION, _REMOVED),
    order_by="session_id, revision, alert, crossing_turn",
    sharding=BY_SESSION,
    version="version",
    partition_by=MONTH,
    expires=True,
)
SESSION_DAYS: Final = Table(
    "session_days",
    (_SESSION, _REVISION, _DAY, _AGENT, _MODEL, _RELEASE, *_SUMS, _VERSION, _REMOVED, _PROJECT),
    order_by="day, agent, model, release, session_id, revision",
    sharding=BY_SESSION,
    version="version",
    partition_by=MONTH,
    indexes=(_FIND_SESSION,),
)
TOOL_USE: Final = Table(
    "tool_use",
    (
        _SESSION,
        _REVISION,
        _DAY,
        Column("tool", "LowCardinality(String)"),
        Column("target", "String"),
        *_USE,
        _VERSION,
        _REMOVED,
        _PROJECT,
    ),
    order_by="day, tool, target, session_id, revision",
    sharding=BY_SESSION,
    version="version",
    partition_by=MONTH,
    expires=True,
    indexes=(_FIND_SESSION,),
)
DAILY: Final = Table(
    "daily",
    (_DAY, _AGENT, _MODEL, _RELEASE, *_SUMS, _VERSION),
    order_by="day, agent, model, release",
    sharding="cityHash64(day)",
    version="version",
)
TOOL_DAYS: Final = Table(
    "tool_days",
    (
        Column("by_target", "Bool"),
        _DAY,
        Column("tool", "LowCardinality(String)"),
        Column("target", "String"),
        *_USE,
        Column("sessions", "Int64"),
        _VERSION,
    ),
    order_by="by_target, day, tool, target",
    sharding="cityHash64(day)",
    version="version",
    partition_by=MONTH,
    expires=True,
)
PROJECT_DAYS: Final = Table(
    "project_days",
    (_PROJECT, *DAILY.columns),
    order_by=f"{DAILY.order_by}, project",
    sharding=DAILY.sharding,
    version="version",
)
PROJECT_TOOL_DAYS: Final = Table(
    "project_tool_days",
    (_PROJECT, *TOOL_DAYS.columns),
    order_by=f"{TOOL_DAYS.order_by}, project",
    sharding=TOOL_DAYS.sharding,
    version="version",
    partition_by=MONTH,
    expires=True,
)
POSITIONS: Final = Table(
    "positions",
    (Column("store", "String"), Column("seq", "Int64"), Column("at", "Float64")),
    order_by="store",
    sharding="cityHash64(store)",
    version="seq",
)
BY_DAY: Final = "SETTINGS do_not_merge_across_partitions_select_final = 1"
"""For reads with FINAL of tables whose key has the day, so that no row replaces one of another month."""
TABLES: Final = (
    EVENTS, SESSIONS, TURNS, ALERTS, SESSION_DAYS, TOOL_USE, DAILY, TOOL_DAYS, PROJECT_DAYS, PROJECT_TOOL_DAYS,
    POSITIONS,
)  # fmt: skip
