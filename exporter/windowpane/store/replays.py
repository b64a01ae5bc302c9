"""Stored policy replays, in separate tables, so that fleet, metrics and audit never see them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from windowpane.store.database import Database
from windowpane.store.statements import END

MAXIMUM_REPLAYS: Final = 200
"""Replays stored; of more, the oldest are deleted."""

_LIST: Final = "SELECT id, name, at, sessions, runs, notes FROM replays "
_LATEST: Final = _LIST + "ORDER BY at DESC, id LIMIT ?"
_ONE: Final = _LIST + "WHERE id = ?"
_RUNS: Final = (
    "SELECT session, setup, kind, policy, preset, limit_tokens, measures, config, timeline, note "
    "FROM replay_runs WHERE replay = ? ORDER BY number"
)
_OLD: Final = f"SELECT id FROM replays ORDER BY at DESC, id LIMIT {END} OFFSET ?"  # noqa: S608  # our number


@dataclass(frozen=True, slots=True)
class ReplayRow:
    """One replay as a list shows it."""

    id: str
    """Derived from its results: the same replay stored again is the same row."""
    name: str
    at: float
    """Seconds since the epoch."""
    sessions: int
    runs: int
    notes: tuple[str, ...] = ()
    """Sessions and setups that could not be replayed, with the reasons."""


@dataclass(frozen=True, slots=True)
class ReplayRunRow:
    """One session under one setup."""

    session: str
    """Name of the session that was replayed."""
    setup: str
    """Label of the setup."""
    kind: str
    """`managed`, or the baseline: `truncate`, `keep_last`."""
    policy: str
    preset: str
    limit_tokens: int
    measures: Mapping[str, Any] = field(default_factory=dict)
    """Values by the field names of `evaluation.replay.Measures`."""
    config: str = ""
    """YAML that manages a live session like this."""
    timeline: tuple[int, ...] = ()
    """Tokens of each call."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class StoredReplay:
    """A replay with its runs, in the order of the request."""

    row: ReplayRow
    runs: tuple[ReplayRunRow, ...]


def save(connection: Database, stored: StoredReplay) -> None:
    """Store a replay, replacing the same one, and delete the oldest; inside the caller's transaction."""
    row = stored.row
    _delete(connection, row.id)
    connection.execute(
        "INSERT INTO replays (id, name, at, sessions, runs, notes) VALUES (?, ?, ?, ?, ?, ?)",
        (row.id, row.name, row.at, row.sessions, row.runs, json.dumps(row.notes)),
    )
    connection.executemany(
        "INSERT INTO replay_runs (replay, number, session, setup, kind, policy, preset, limit_tokens, measures, "
        "config, timeline, note) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [_values(row.id, number, run) for number, run in enumerate(stored.runs)],
    )
    for (old,) in connection.execute(_OLD, (MAXIMUM_REPLAYS,)).fetchall():
        _delete(connection, old)


def latest(connection: Database, limit: int) -> list[ReplayRow]:
    """Return the latest replays, newest first."""
    return [_row(row) for row in connection.execute(_LATEST, (limit,))]


def read(connection: Database, replay_id: str) -> StoredReplay | None:
    """Return a replay with its runs, or None."""
    row = connection.execute(_ONE, (replay_id,)).fetchone()
    if row is None:
        return None
    return StoredReplay(_row(row), tuple(_run(run) for run in connection.execute(_RUNS, (replay_id,))))


def _delete(connection: Database, replay_id: str) -> None:
    connection.execute("DELETE FROM replay_runs WHERE replay = ?", (replay_id,))
    connection.execute("DELETE FROM replays WHERE id = ?", (replay_id,))


def _values(replay_id: str, number: int, run: ReplayRunRow) -> tuple[Any, ...]:
    return (
        replay_id, number, run.session, run.setup, run.kind, run.policy, run.preset, run.limit_tokens,
        json.dumps(dict(run.measures), sort_keys=True), run.config, _pack(run.timeline), run.note,
    )  # fmt: skip


def _row(row: Sequence[Any]) -> ReplayRow:
    replay_id, name, at, sessions, runs, notes = row
    return ReplayRow(replay_id, name, at, sessions, runs, tuple(json.loads(notes)))


def _run(row: Sequence[Any]) -> ReplayRunRow:
    session, setup, kind, policy, preset, limit_tokens, measures, config, timeline, note = row
    return ReplayRunRow(
        session, setup, kind, policy, preset, limit_tokens, json.loads(measures), config,
        tuple(json.loads(zlib.decompress(timeline))), note,
    )  # fmt: skip


def _pack(timeline: Sequence[int]) -> bytes:
    return zlib.compress(json.dumps(list(timeline)).encode())
