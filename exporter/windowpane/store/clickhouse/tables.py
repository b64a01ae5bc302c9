"""The tables of the copy, as data: columns, keys, partitions and the sharding of a cluster.

Every row states its absolute values and has a key, and every table keeps the newest row of a key. So a batch that
is written twice is there once, in whatever order, for a query that reads with FINAL. Sums by day are tables too,
which the copier computes anew for the days that a batch touched: a materialized view of ClickHouse would add a
repeated batch a second time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from windowpane.store import tables as store_tables
from windowpane.store.tables import Column, Table, columns

MONTH: Final = "toYYYYMM(day)"
BY_SESSION: Final = "cityHash64(session_id)"


@dataclass(frozen=True, slots=True)
class CopyTable:
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


def _copied(table: Table, *, without: str) -> tuple[Column, ...]:
    """Return the columns of a table of the store, except some."""
    return tuple(column for column in table.columns if column.name not in without.split())


_WRITERS_OWN: Final = """key current keyed_by counted_from head_seq head_hash pressure last_turn carried_price
    memory"""
"""Columns of a session that only the store's writer reads."""
_SESSION: Final = columns("session_id text, revision integer")
_VERSION: Final = columns("version version")
_REMOVABLE: Final = columns("version version, removed flag")
_PROJECT: Final = columns("project name")
_DAY_SUMS: Final = _copied(store_tables.DAILY, without="project pruned")
_USE: Final = columns("blocks integer, tokens integer, carried_tokens integer, dollars real null")
_FIND_SESSION: Final = "INDEX session_index session_id TYPE bloom_filter GRANULARITY 1"

EVENTS: Final = CopyTable(
    "events",
    columns(
        """
        seq integer, session_id text, revision integer, counted flag, turn integer, type name, at real null,
        day day, agent name, model name, hash bytes, body bytes, search_text text
        """
    ),
    order_by="seq",
    sharding=BY_SESSION,
    partition_by=MONTH,
    expires=True,
    indexes=(_FIND_SESSION, "INDEX text_index search_text TYPE tokenbf_v1(65536, 2, 0) GRANULARITY 1"),
)
SESSIONS: Final = CopyTable(
    "sessions",
    (*_copied(store_tables.SESSIONS, without=_WRITERS_OWN), *columns("day day"), *_VERSION),
    order_by="session_id",
    sharding=BY_SESSION,
    version="version",
    expires=True,
)
TURNS: Final = CopyTable(
    "turns",
    (
        *_SESSION,
        *columns("day day, agent name, release name"),
        *_copied(store_tables.TURNS, without="session first_seq call_seq"),
        *_REMOVABLE,
    ),
    order_by="session_id, revision, turn",
    sharding=BY_SESSION,
    version="version",
    partition_by=MONTH,
    expires=True,
)
ALERTS: Final = CopyTable(
    "alerts",
    (
        *_SESSION,
        *columns("day day, agent name"),
        *_copied(store_tables.ALERTS, without="session fired_seq"),
        *_REMOVABLE,
    ),
    order_by="session_id, revision, alert, crossing_turn",
    sharding=BY_SESSION,
    version="version",
    partition_by=MONTH,
    expires=True,
)
SESSION_DAYS: Final = CopyTable(
    "session_days",
    (*_SESSION, *_DAY_SUMS, *_REMOVABLE, *_PROJECT),
    order_by="day, agent, model, release, session_id, revision",
    sharding=BY_SESSION,
    version="version",
    partition_by=MONTH,
    indexes=(_FIND_SESSION,),
)
TOOL_USE: Final = CopyTable(
    "tool_use",
    (*_SESSION, *columns("day day, tool name, target text"), *_USE, *_REMOVABLE, *_PROJECT),
    order_by="day, tool, target, session_id, revision",
    sharding=BY_SESSION,
    version="version",
    partition_by=MONTH,
    expires=True,
    indexes=(_FIND_SESSION,),
)
DAILY: Final = CopyTable(
    "daily",
    (*_DAY_SUMS, *_VERSION),
    order_by="day, agent, model, release",
    sharding="cityHash64(day)",
    version="version",
)
TOOL_DAYS: Final = CopyTable(
    "tool_days",
    (
        *columns("day day, tool name, target text"),
        *_USE,
        *columns("sessions integer"),
        *_VERSION,
    ),
    order_by="day, tool, target",
    sharding="cityHash64(day)",
    version="version",
    partition_by=MONTH,
    expires=True,
)
PROJECT_DAYS: Final = CopyTable(
    "project_days",
    (*_PROJECT, *DAILY.columns),
    order_by=f"{DAILY.order_by}, project",
    sharding=DAILY.sharding,
    version="version",
)
PROJECT_TOOL_DAYS: Final = CopyTable(
    "project_tool_days",
    (*_PROJECT, *TOOL_DAYS.columns),
    order_by=f"{TOOL_DAYS.order_by}, project",
    sharding=TOOL_DAYS.sharding,
    version="version",
    partition_by=MONTH,
    expires=True,
)
POSITIONS: Final = CopyTable(
    "positions",
    columns("store text, seq integer, at real"),
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
