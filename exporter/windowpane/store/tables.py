"""The tables of a store, declared once: each database makes its own statements of them.

`events` is the record. `sessions` holds each chain's head and the fleet's row. The `PROJECTIONS` can be rebuilt
from the events. `heads` is the store-wide chain of session heads and tombstones. `contents` holds captured
texts and may be emptied at any time. Each database adds indexes for search, and triggers that keep `daily`
the sum of `session_days`. A change of a table is a new schema version with a migration: see `migrations`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Final

SUMS: Final = (
    "calls", "input_tokens", "output_tokens", "cache_read_tokens", "cost_micros", "compactions",
    "fidelity_millis", "fidelities", "regrets", "cache_breaks", "cache_break_micros", "estimated_outputs",
)  # fmt: skip
"""Sums of a session on a day."""
PEAK: Final = "peak_millis"
"""Highest utilization of the session on the day, in thousandths; -1 while it is unknown."""
RED_MILLIS: Final = 900
DAILY_SUMS: Final = (*SUMS, "sessions", "peaks", "peak_sum_millis", "red_sessions")
DAILY_KEY: Final = ("day", "agent", "model", "release", "project")

ADDED_COLUMNS: Final = f"{', '.join(DAILY_KEY)}, pruned, {', '.join(DAILY_SUMS)}"
ADD_TO_SUMS: Final = f"ON CONFLICT ({', '.join(DAILY_KEY)}, pruned) DO UPDATE SET " + ", ".join(
    f"{name} = daily.{name} + excluded.{name}" for name in DAILY_SUMS
)
"""The end of an INSERT into `daily` of `ADDED_COLUMNS`."""


class Kind(Enum):
    """The values of a column; each database has a type for each."""

    INTEGER = "integer"
    REAL = "real"
    TEXT = "text"
    BYTES = "bytes"
    FLAG = "flag"
    """0 or 1."""
    NAME = "name"
    """A text of few distinct values."""
    LIST = "list"
    """Texts, as a JSON array."""
    DAY = "day"
    """Days since the epoch."""
    VERSION = "version"
    """Grows with each change of a row."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column; `default` is an SQL literal, empty without one."""

    name: str
    kind: Kind
    null: bool = False
    default: str = ""

    @classmethod
    def parse(cls, declaration: str) -> Column:
        """Return a column; see `columns`."""
        declared, _, default = declaration.partition(" default ")
        name, kind, *null = declared.split()
        return cls(name, Kind(kind), null=null == ["null"], default=default.strip())


@dataclass(frozen=True, slots=True)
class Index:
    """An index; each of *columns* may end with `DESC`, under which NULL comes last."""

    name: str
    columns: tuple[str, ...]
    where: str = ""


@dataclass(frozen=True)
class Table:
    """A table with its primary key."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    indexes: tuple[Index, ...] = ()
    unique: tuple[str, ...] = ()
    numbered: bool = False
    """The database numbers the key itself, and never gives a number again."""
    fill_percent: int = 100
    """Part of a page that new rows fill where rows are updated in place (PostgreSQL)."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def integer_key(self) -> Column | None:
        """The column of a key that is one number."""
        (column,) = [one for one in self.columns if one.name == self.key[0]]
        return column if len(self.key) == 1 and column.kind is Kind.INTEGER else None


def columns(declarations: str) -> tuple[Column, ...]:
    """Return the columns of declarations `name kind [null] [default literal]`, separated by commas."""
    return tuple(map(Column.parse, _names(declarations)))


def table(
    name: str,
    declarations: str,
    *,
    key: str,
    indexes: Sequence[Index] = (),
    unique: str = "",
    numbered: bool = False,
    fill_percent: int = 100,
) -> Table:
    """Declare a table; its columns as in `columns`, and names separated by commas."""
    return Table(name, columns(declarations), _names(key), tuple(indexes), _names(unique), numbered, fill_percent)


def index(name: str, columns: str, where: str = "") -> Index:
    """Declare an index."""
    return Index(name, _names(columns), where)


def _names(names: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in names.split(",") if name.strip())


def _integers(names: Sequence[str]) -> str:
    return ", ".join(f"{name} integer" for name in names)


STORE: Final = table(
    "store",
    """
    one integer, next_seq integer, writes integer, flushes integer, indexed_seq integer, digest_key bytes,
    metric_base bytes null
    """,
    key="one",
    fill_percent=10,
)
"""One row of what the whole store shares. `next_seq` only grows, so that a deleted number never comes again."""
SCHEMA_VERSIONS: Final = table("schema_versions", "version integer, applied_at real", key="version")
EVENT_TYPES: Final = table(
    "event_types",
    "id integer, name text, events integer default 0",
    key="id",
    unique="name",
    numbered=True,
    fill_percent=30,
)
EVENTS: Final = table(
    "events",
    "seq integer, session integer, turn integer, type integer, at real null, body bytes, hash bytes",
    key="seq",
    indexes=(
        index("events_session", "session, seq"),
        index("events_type", "type, session, seq"),
        index("events_at", "at"),
    ),
)
SESSIONS: Final = table(
    "sessions",
    """
    key integer, session_id text, revision integer, current flag, keyed_by text, counted_from integer,
    head_seq integer, head_hash bytes, events integer, agent name, model name, source name,
    parent_session_id text null, started_at real null, last_at real null, ended flag, incomplete flag,
    turns integer, exchanges integer, windows integer, limit_tokens integer null, limit_source text null,
    used_tokens integer, peak_used_tokens integer, utilization real null, peak_utilization real null,
    zone name null, worst_zone name null, velocity real null, turns_until_red real null, cost_dollars real null,
    input_tokens integer, output_tokens integer, cache_read_tokens integer, evicted_blocks integer,
    evicted_tokens integer, compressions integer, regrets integer, overflows integer, fidelity real null,
    firing integer, worst_severity name null, last_event name, pressure real, last_turn integer,
    count_source text null, compaction_tokens integer null, compaction_evidence text null,
    turns_until_compaction real null, cache_breaks integer default 0, cache_break_tokens integer default 0,
    cache_break_dollars real null, carried_price integer default 0, title text default '',
    title_source name default '', folder text default '', repository text default '', branch text default '',
    agent_version name default '', label text default '', compressions_in_task integer default 0,
    project text default '', same_as text default '', estimated_outputs integer default 0,
    copied_turns integer default 0, stated_input_tokens integer null, stated_output_tokens integer null,
    stated_cost_dollars real null, memory bytes
    """,
    key="key",
    indexes=(
        index("sessions_pressure", "current, pressure DESC, last_at DESC, key DESC"),
        index("sessions_recent", "current, last_at DESC, key DESC"),
        index("sessions_cost", "current, cost_dollars DESC, key DESC"),
        index("sessions_regret", "current, regrets DESC, last_at DESC, key DESC"),
        index("sessions_parent", "parent_session_id, current", where="parent_session_id IS NOT NULL"),
        index(
            "sessions_compacted",
            "agent, model, last_at DESC",
            where="compaction_evidence = 'recorded' AND current = 1",
        ),
        index("sessions_same_as", "same_as, current", where="same_as <> ''"),
    ),
    unique="session_id, revision",
    numbered=True,
    fill_percent=70,
)
TURNS: Final = table(
    "turns",
    """
    session integer, turn integer, first_seq integer, call_seq integer null, window_id integer, at real null,
    model name, used_before integer null, used_after integer null, used_final integer null,
    count_source text null, components text, limit_tokens integer null, usable_tokens integer null,
    red_tokens integer null, zone name null, utilization real null, velocity real null, added_tokens integer,
    turns_until_red real null, turns_until_red_p10 real null, turns_until_red_p90 real null,
    burn_rate real null, stale_tokens integer, duplicate_tokens integer, input_tokens integer null,
    output_tokens integer null, cache_read_tokens integer null, cache_write_tokens integer null,
    cost_dollars real null, latency_seconds real null, estimate_error real null,
    compaction_tokens integer null, turns_until_compaction real null, turns_until_compaction_p10 real null,
    turns_until_compaction_p90 real null, recorded_output_tokens integer null,
    list_cost_dollars real null
    """,
    key="session, turn",
)
BLOCKS: Final = table(
    "blocks",
    """
    session integer, block_id text, event_seq integer, entered_seq integer, left_seq integer, position integer,
    turn_removed integer null, removed_by text null, reason text null, score real null,
    replaced_by text null, last_referenced integer null, references integer default 0,
    regretted_turn integer null, tool text null, target text null, tokens integer default 0,
    calls_in integer default 0, price_in integer default 0, calls_out integer null, price_out integer null,
    content_type name default ''
    """,
    key="session, block_id",
    indexes=[index("blocks_left", "session, left_seq, entered_seq")],
    fill_percent=80,
)
"""The content of a block is in its event, found by `event_seq`; here are its position and what became of it."""
ALERTS: Final = table(
    "alerts",
    """
    session integer, alert name, crossing_turn integer, fired_seq integer, severity name, fired_turn integer,
    fired_at real null, resolved_turn integer null, resolved_at real null, value real null,
    threshold real null, summary text, delivered list default '[]', failed list default '[]'
    """,
    key="session, alert, crossing_turn",
    indexes=(
        index("alerts_at", "fired_at DESC, fired_seq DESC"),
        index("alerts_unresolved_at", "fired_at DESC, fired_seq DESC", where="resolved_turn IS NULL"),
    ),
)
LATE_EVENTS: Final = table("late_events", "session integer, turn integer, seq integer", key="session, turn, seq")
"""Events stored after a later turn had started, such as deliveries, which a range of turns would miss."""
SESSION_DAYS: Final = table(
    "session_days",
    f"""
    session integer, day day, agent name, model name, release name, {_integers(SUMS)}, {PEAK} integer,
    project name default '', repeated flag default 0
    """,
    key="session, day, agent, model, release",
    indexes=[index("session_days_repeated", "day", where="repeated = 1")],
    fill_percent=70,
)
DAILY: Final = table(
    "daily",
    f"day day, agent name, model name, release name, project name, pruned flag, {_integers(DAILY_SUMS)}",
    key=", ".join((*DAILY_KEY, "pruned")),
    fill_percent=50,
)
PRUNED_DAYS: Final = table(
    "pruned_days",
    f"number integer, day day, agent name, model name, release name, project name, {PEAK} integer",
    key="number, day, agent, model, release",
    indexes=[index("pruned_days_day", "day")],
)
CALL_IDS: Final = table(
    "call_ids", "session integer, call integer", key="session, call", indexes=[index("call_ids_call", "call")]
)
HEADS: Final = table(
    "heads",
    """
    id integer, kind text, session_id text, revision integer, events integer, head bytes, keyed_by text,
    at real, signed_by text, hash bytes
    """,
    key="id",
    indexes=[index("heads_session", "session_id, revision")],
)
RECEIVED_STREAMS: Final = table(
    "received_streams",
    "stream_id text, session_id text, numbers text",
    key="stream_id, session_id",
    indexes=[index("received_streams_of", "session_id")],
)
"""Numbers of the events that were received from other hosts, so that none is stored twice."""
CONTENTS: Final = table("contents", "digest text, chars integer, preview text, body bytes", key="digest")
CONTENT_QUEUE: Final = table("content_queue", "digest text", key="digest")
CONTENT_NUMBERS: Final = table(
    "content_numbers", "id integer, digest text", key="id", unique="digest", numbered=True
)
AGENTS: Final = table("agents", "name text", key="name")
QUOTAS: Final = table(
    "quotas",
    "agent name, minutes integer, resets_at integer, percent integer, at real",
    key="agent, minutes, resets_at, percent",
)
"""The time at which each whole percent of a plan's quota was first seen used, by the end of its window."""
ENDPOINTS: Final = table(
    "endpoints",
    "machine text, host text, port integer, pid integer, started_at real, scheme text",
    key="machine, host, port",
)
REPLAYS: Final = table(
    "replays",
    "id text, name text, at real, sessions integer, runs integer, notes text",
    key="id",
    indexes=[index("replays_at", "at")],
)
REPLAY_RUNS: Final = table(
    "replay_runs",
    """
    replay text, number integer, session text, setup text, kind text, policy text, preset text,
    limit_tokens integer, measures text, config text, timeline bytes, note text
    """,
    key="replay, number",
)
READ_FILES: Final = table(
    "read_files",
    "path text, inode integer, size integer, mtime_ns integer, reading text, report bytes",
    key="path",
)
COPIED_FROM: Final = table(
    "copied_from", "source text, last_seq integer, heads integer, finished flag", key="source"
)
"""The source of a copy, and where the copy left this store."""

PROJECTIONS: Final = (TURNS, BLOCKS, ALERTS, LATE_EVENTS, SESSION_DAYS, CALL_IDS)
"""Tables that a fold of a session's events fills; each has the column `session`."""
TABLES: Final = (
    STORE, SCHEMA_VERSIONS, EVENT_TYPES, EVENTS, SESSIONS, *PROJECTIONS, DAILY, PRUNED_DAYS, HEADS,
    RECEIVED_STREAMS, CONTENTS, CONTENT_QUEUE, CONTENT_NUMBERS, AGENTS, QUOTAS, ENDPOINTS, REPLAYS, REPLAY_RUNS,
    READ_FILES, COPIED_FROM,
)  # fmt: skip


def parts_of_day(row: str) -> tuple[str, ...]:
    """Return the part of a row of `session_days` in each of `DAILY_SUMS`, for the triggers; *row* names it."""
    peak = f"{row}.{PEAK}"
    return (
        *(f"{row}.{name}" for name in SUMS),
        "1",
        f"CASE WHEN {peak} >= 0 THEN 1 ELSE 0 END",
        f"CASE WHEN {peak} > 0 THEN {peak} ELSE 0 END",
        f"CASE WHEN {peak} >= {RED_MILLIS} THEN 1 ELSE 0 END",
    )
