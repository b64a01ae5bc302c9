"""What the writer knows of one session: the chain's head, the fleet's row and a little memory between batches."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field, fields
from typing import Final

import msgspec

from windowpane.core.vocabulary import ZONES, Severity, Zone

SPARKLINE_POINTS: Final = 24
SEVERITIES: Final[tuple[Severity, ...]] = ("info", "warning", "critical")


@dataclass(slots=True)
class Sparkline:
    """Used tokens and utilization over a session in at most 48 points: every second one goes when it is full."""

    stride: int = 1
    seen: int = 0
    used: list[int] = field(default_factory=list)
    utilization: list[float | None] = field(default_factory=list)
    last: tuple[int, float | None] | None = None
    """The newest point, whether or not the stride keeps it."""

    def add(self, used_tokens: int, utilization: float | None) -> None:
        """Take in the final measurement of a turn."""
        self.last = (used_tokens, utilization)
        if self.seen % self.stride == 0:
            self.used.append(used_tokens)
            self.utilization.append(utilization)
            if len(self.used) >= 2 * SPARKLINE_POINTS:
                self.used, self.utilization = self.used[::2], self.utilization[::2]
                self.stride *= 2
        self.seen += 1

    def points(self, peak_used_tokens: int) -> tuple[float, ...]:
        """Utilization, or share of the peak where no limit was known; at most 24 points, the last included."""
        if self.last is None:
            return ()
        pairs = list(zip(self.used, self.utilization, strict=True))
        if (self.seen - 1) % self.stride:
            pairs.append(self.last)
        step = -(-len(pairs) // SPARKLINE_POINTS)
        pairs = pairs[::-1][::step][::-1]  # from the end, so that the newest point stays
        if any(utilization is not None for _, utilization in pairs):
            return tuple(round(utilization or 0.0, 4) for _, utilization in pairs)
        peak = peak_used_tokens or 1
        return tuple(round(used / peak, 4) for used, _ in pairs)


@dataclass(slots=True)
class Memory:
    """What the projection must remember between two batches beyond the row itself."""

    next_position: int = 0
    """Where the next appended block stands."""
    pending: dict[str, int] = field(default_factory=dict)
    """Stand-ins announced by a reduction: id to the position they will take, -1 for the end."""
    called_turn: int = 0
    """The last turn whose model call has been seen."""
    firing: list[tuple[str, int]] = field(default_factory=list)
    """Alert and crossing turn of what fires now."""
    sparkline: Sparkline = field(default_factory=Sparkline)


@dataclass(slots=True)
class SessionState:
    """One row of `sessions`, as the writer changes it; the fields from `events` on are the projection."""

    session_id: str
    revision: int
    current: int
    keyed_by: str
    counted_from: int
    head_seq: int
    head_hash: bytes
    events: int = 0
    agent: str = ""
    model: str = ""
    source: str = ""
    parent_session_id: str | None = None
    started_at: float | None = None
    last_at: float | None = None
    ended: int = 0
    incomplete: int = 0
    turns: int = 0
    exchanges: int = 0
    windows: int = 0
    limit_tokens: int | None = None
    limit_source: str | None = None
    used_tokens: int = 0
    peak_used_tokens: int = 0
    utilization: float | None = None
    peak_utilization: float | None = None
    zone: Zone | None = None
    worst_zone: Zone | None = None
    velocity: float | None = None
    turns_until_red: float | None = None
    cost_dollars: float | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    evicted_blocks: int = 0
    evicted_tokens: int = 0
    compressions: int = 0
    regrets: int = 0
    overflows: int = 0
    fidelity: float | None = None
    firing: int = 0
    worst_severity: Severity | None = None
    last_event: str = ""
    pressure: float = -1.0
    """What the fleet is ordered by: the zone's rank, then utilization; -1 where neither is known."""
    last_turn: int = 0
    """The highest turn any event had."""
    count_source: str | None = None
    memory: Memory = field(default_factory=Memory)
    key: int = 0
    """The row's number in this database."""

    def cleared(self) -> SessionState:
        """The same chain with an empty projection, to fold its events again."""
        return SessionState(
            self.session_id, self.revision, self.current, self.keyed_by, self.counted_from, self.head_seq,
            self.head_hash, key=self.key,
        )  # fmt: skip


COLUMNS: Final = tuple(item.name for item in fields(SessionState) if item.name != "key")
_LIST: Final = ", ".join(COLUMNS)
_SELECT: Final = f"SELECT {_LIST}, key FROM sessions WHERE session_id = ? AND current = 1"  # noqa: S608  # our columns
_SELECT_KEY: Final = f"SELECT {_LIST}, key FROM sessions WHERE key = ?"  # noqa: S608  # our columns
_INSERT: Final = f"INSERT INTO sessions ({_LIST}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608  # our columns
_UPDATE: Final = f"UPDATE sessions SET {', '.join(f'{name} = ?' for name in COLUMNS)} WHERE key = ?"  # noqa: S608

_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(Memory)


def load(connection: sqlite3.Connection, session_id: str) -> SessionState | None:
    """The current revision of a session, or None."""
    return _state(connection.execute(_SELECT, (session_id,)).fetchone())


def load_key(connection: sqlite3.Connection, key: int) -> SessionState | None:
    """The revision with this row number, or None."""
    return _state(connection.execute(_SELECT_KEY, (key,)).fetchone())


def insert(connection: sqlite3.Connection, state: SessionState) -> None:
    """Store a new session and take its row number."""
    key = connection.execute(_INSERT, _values(state)).lastrowid
    assert key is not None
    state.key = key


def save(connection: sqlite3.Connection, state: SessionState) -> None:
    """Store what changed."""
    state.pressure = _pressure(state)
    connection.execute(_UPDATE, (*_values(state), state.key))


def read_memory(raw: bytes) -> Memory:
    """The memory as it was stored."""
    return _decoder.decode(raw)


def _state(row: tuple[object, ...] | None) -> SessionState | None:
    if row is None:
        return None
    state = SessionState(*row)  # type: ignore[arg-type]  # columns and fields are one list
    state.memory = _decoder.decode(state.memory)  # type: ignore[arg-type]  # bytes until here
    return state


def _values(state: SessionState) -> list[object]:
    values: list[object] = [getattr(state, name) for name in COLUMNS]
    values[-1] = _encoder.encode(state.memory)
    return values


def _pressure(state: SessionState) -> float:
    if state.zone is None:
        return -1.0
    return ZONES.index(state.zone) * 10 + min(state.utilization or 0.0, 9.0)
