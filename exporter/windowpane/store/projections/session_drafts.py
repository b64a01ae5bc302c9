"""The rows of sessions as the writer loads, changes and saves them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Final

import msgspec

from windowpane.core.decoders import json_decoder
from windowpane.core.tracking.peak import WindowPeak
from windowpane.core.vocabulary import ZONES, Severity, Zone
from windowpane.exceptions import EventsRefusedError, StoreError
from windowpane.store.database import Database
from windowpane.store.statements import padded, placeholders

PRICE_SCALE: Final = 1_000_000_000_000
"""Prices of one token are stored in trillionths of a dollar."""


REMEMBERED_COMPRESSIONS: Final = 8
REMEMBERED_PARTS: Final = 32
"""Parts of a session's runs that are remembered: what arrives late for an earlier one counts as another run."""


class RunPart(msgspec.Struct, frozen=True, array_like=True):
    """Turns of one run of a session, and what is added to the numbers that the run counts by itself."""

    run: str
    """Stream of the run."""
    number: int
    from_turn: int = 0
    turns: int = 0
    windows: int = 0
    exchanges: int = 0


@dataclass(slots=True)
class ProjectionMemory:
    """State of the projection between two batches, beyond the row itself."""

    next_position: int = 0
    """Position of the next appended block."""
    pending: dict[str, int] = field(default_factory=dict)
    """Replacements announced by a reduction: id to the position they will take, -1 for the end."""
    called_turn: int = 0
    """The last turn whose model call was seen."""
    firing: list[tuple[str, int]] = field(default_factory=list)
    """Alert and crossing turn of each alert that is firing."""
    compressed_exchange: int | None = None
    """The exchange of a compression after which no turn has ended yet."""
    peak: WindowPeak = field(default_factory=WindowPeak)
    compressions: list[str] = field(default_factory=list)
    """Event ids of the last accepted compressions, whose evaluations may come late."""
    day_row: tuple[int, str, str, str] | None = None
    """Day, agent, model and release of the last event that the trends count."""
    runs: int = 1
    """Runs that recorded the session."""
    parts: list[RunPart] = field(default_factory=list)
    """The last parts of its runs, in the order in which they started; empty while there is one run."""
    copied: list[tuple[int, int]] = field(default_factory=list)
    """First and last turn of the last ranges whose calls another session counts."""
    copies: int = 0
    """Number of these ranges."""

    def add_copied(self, first_turn: int, last_turn: int) -> None:
        """Remember a range of turns whose calls another session counts."""
        self.copied = [*self.copied[1 - REMEMBERED_PARTS :], (first_turn, last_turn)]
        self.copies += 1

    def is_copied(self, turn: int) -> bool:
        """Return whether another session counts the call of a turn."""
        return bool(self.copied) and any(first <= turn <= last for first, last in self.copied)

    def compress(self, event_id: str) -> None:
        """Remember an accepted compression."""
        self.compressions = [*self.compressions[1 - REMEMBERED_COMPRESSIONS :], event_id]

    def continue_with(self, part: RunPart) -> None:
        """Remember a part."""
        self.runs = max(self.runs, part.number)
        self.parts = [*self.parts[1 - REMEMBERED_PARTS :], part]


@dataclass(slots=True)
class SessionDraft:
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
    """The `pressure_rank` of its zone and utilization."""
    last_turn: int = 0
    """The highest turn any event had."""
    count_source: str | None = None
    compaction_tokens: int | None = None
    compaction_evidence: str | None = None
    turns_until_compaction: float | None = None
    cache_breaks: int = 0
    cache_break_tokens: int = 0
    cache_break_dollars: float | None = None
    carried_price: int = 0
    """Sum over all calls of the cost of one token that they sent, in trillionths of a dollar."""
    title: str = ""
    title_source: str = ""
    folder: str = ""
    repository: str = ""
    branch: str = ""
    agent_version: str = ""
    label: str = ""
    compressions_in_task: int = 0
    project: str = ""
    same_as: str = ""
    """Session that the store recognized as the same one, which counts for both."""
    estimated_outputs: int = 0
    """Calls whose output is an estimate."""
    copied_turns: int = 0
    """Turns whose calls another session counts."""
    stated_input_tokens: int | None = None
    """Total that the recording states of the whole session; likewise the two below."""
    stated_output_tokens: int | None = None
    stated_cost_dollars: float | None = None
    memory: ProjectionMemory = field(default_factory=ProjectionMemory)
    key: int = 0
    """The row's number in this database."""
    is_new: bool = False
    """The row is not stored yet."""


# Statements about a session state `+current`: the indexes of `current` are those of the whole fleet's orders.
_COLUMNS: Final = tuple(item.name for item in fields(SessionDraft) if item.name not in ("key", "is_new"))
_LIST: Final = ", ".join(_COLUMNS)
_SELECT: Final = f"SELECT {_LIST}, key FROM sessions WHERE session_id = ? AND +current = 1"  # noqa: S608  # our columns
_SELECT_CURRENT: Final = f"SELECT {_LIST}, key FROM sessions WHERE +current = 1"  # noqa: S608  # our columns
_SELECT_KEY: Final = f"SELECT {_LIST}, key FROM sessions WHERE key = ?"  # noqa: S608  # our columns
_CHAIN_COLUMNS: Final = _COLUMNS[: _COLUMNS.index("events")]
_SELECT_CHAIN: Final = f"SELECT {', '.join(_CHAIN_COLUMNS)} FROM sessions WHERE key = ?"  # noqa: S608  # our columns
_INSERT: Final = f"INSERT INTO sessions ({_LIST}, key) VALUES ({', '.join('?' * (len(_COLUMNS) + 1))})"  # noqa: S608
_UPDATE: Final = f"UPDATE sessions SET {', '.join(f'{name} = ?' for name in _COLUMNS)} WHERE key = ?"  # noqa: S608

_encoder: Final = msgspec.json.Encoder()
_decoder: Final = json_decoder(ProjectionMemory)


def load_all(connection: Database, session_ids: Sequence[str]) -> dict[str, SessionDraft]:
    """Return the current revisions of those sessions that are stored, by id."""
    ids = padded(session_ids)
    sql = f"{_SELECT_CURRENT} AND session_id IN ({placeholders(ids)})"
    drafts = (_draft(row) for row in connection.execute(sql, ids))
    return {draft.session_id: draft for draft in drafts if draft is not None}


def load(connection: Database, session_id: str) -> SessionDraft | None:
    """Return the current revision of a session, or None."""
    return _draft(connection.execute(_SELECT, (session_id,)).fetchone())


def load_key(connection: Database, key: int) -> SessionDraft | None:
    """Return the revision with this row number, or None."""
    return _draft(connection.execute(_SELECT_KEY, (key,)).fetchone())


def load_chain(connection: Database, key: int) -> SessionDraft:
    """Return the chain of the revision with this row number, with an empty projection to fold its events into."""
    session = SessionDraft(*connection.execute(_SELECT_CHAIN, (key,)).fetchone())
    session.key = key
    return session


def number(connection: Database, sessions: Sequence[SessionDraft]) -> None:
    """Give new sessions the row numbers under which `save` will store them."""
    numbers = connection.execute(connection.dialect.new_numbers("sessions", "key"), (len(sessions),))
    for session, (key,) in zip(sessions, numbers, strict=True):
        if not connection.dialect.can_store(session.session_id):
            raise EventsRefusedError(
                f"session {session.session_id!r}: its id has a character that cannot be stored"
            )
        session.key, session.is_new = key, True


def save(connection: Database, sessions: Iterable[SessionDraft]) -> None:
    """Store the rows of new sessions, and update the others."""
    new: list[list[object]] = []
    changed: list[list[object]] = []
    for session in sessions:
        session.pressure = pressure_rank(session.zone, session.utilization)
        rows = new if session.is_new else changed
        rows.append([*_values(session), session.key])
        session.is_new = False
    connection.executemany(_INSERT, new)
    connection.executemany(_UPDATE, changed)


def pressure_rank(zone: Zone | None, utilization: float | None) -> float:
    """Return the rank that orders the fleet: the zone, then utilization; -1 for a session without a zone."""
    if zone is None:
        return -1.0
    return ZONES.index(zone) * 10 + min(utilization or 0.0, 9.0)


def projected_values(session: SessionDraft) -> dict[str, object]:
    """Return the columns that a fold of the session's events gives."""
    return {name: getattr(session, name) for name in _COLUMNS[len(_CHAIN_COLUMNS) :]}


def _draft(row: tuple[object, ...] | None) -> SessionDraft | None:
    if row is None:
        return None
    session = SessionDraft(*row)  # type: ignore[arg-type]  # columns and fields are one list
    session.memory = decode_memory(session.session_id, session.memory)
    return session


def decode_memory(session_id: str, raw: object) -> ProjectionMemory:
    """Return the memory that a row holds as JSON. Raises `StoreError`."""
    try:
        return _decoder.decode(raw)  # type: ignore[arg-type]  # a database may hold other than bytes
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError) as error:
        raise StoreError(
            f"session {session_id}: sessions.memory cannot be read ({error}); run `windowpane audit rebuild`"
        ) from error


def _values(session: SessionDraft) -> list[object]:
    values: list[object] = [getattr(session, name) for name in _COLUMNS]
    values[-1] = _encoder.encode(session.memory)
    return values
