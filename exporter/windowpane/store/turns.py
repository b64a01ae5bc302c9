"""One row per turn: its measurements, what the provider reported, and the moment of its model call."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, Final

import msgspec

from windowpane.core.events import Event, PressureMeasured, TurnEnded
from windowpane.core.vocabulary import Component
from windowpane.store.records import TurnRow
from windowpane.store.statements import StatementBatch


@dataclass(slots=True)
class TurnDraft:
    """One row of `turns`, in the order of its columns."""

    session: int
    turn: int
    first_seq: int
    """The turn's first event."""
    call_seq: int | None
    """The moment whose window the model saw: before its reply, or the last measurement while there is none."""
    window_id: int
    at: float | None
    model: str
    used_before: int | None = None
    used_after: int | None = None
    used_final: int | None = None
    count_source: str | None = None
    components: str | dict[Component, int] = "{}"
    """JSON once it is stored; of several measurements only the last is encoded."""
    limit_tokens: int | None = None
    usable_tokens: int | None = None
    red_tokens: int | None = None
    zone: str | None = None
    utilization: float | None = None
    velocity: float | None = None
    added_tokens: int = 0
    turns_until_red: float | None = None
    turns_until_red_p10: float | None = None
    turns_until_red_p90: float | None = None
    burn_rate: float | None = None
    stale_tokens: int = 0
    duplicate_tokens: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    cost_dollars: float | None = None
    latency_seconds: float | None = None
    estimate_error: float | None = None

    def measure(self, data: PressureMeasured, moment: int | None) -> None:
        """Record a measurement made at *moment* (None after the call); the newest one describes the turn."""
        if moment is not None and data.phase != "final":
            self.call_seq = moment
        if data.phase == "before":
            self.used_before = data.used_tokens
        elif data.phase == "after":
            self.used_after = data.used_tokens
        else:
            self.used_final = data.used_tokens
        self.count_source = data.count_source
        self.components = data.used_by_component
        self.limit_tokens, self.usable_tokens, self.red_tokens = (
            data.limit_tokens, data.usable_tokens, data.red_tokens,
        )  # fmt: skip
        self.zone, self.utilization, self.velocity = data.zone, data.utilization, data.velocity
        self.added_tokens, self.burn_rate = data.added_tokens, data.burn_rate
        self.turns_until_red = data.turns_until_red
        self.turns_until_red_p10 = data.turns_until_red_p10
        self.turns_until_red_p90 = data.turns_until_red_p90
        self.stale_tokens, self.duplicate_tokens = data.stale_tokens, data.duplicate_tokens
        if data.estimate_error is not None:
            self.estimate_error = data.estimate_error

    def end(self, event: Event, data: TurnEnded) -> None:
        """Record what the model call reported."""
        self.model = event.context.model or self.model
        self.cost_dollars, self.latency_seconds = data.cost_dollars, data.latency_seconds
        usage = data.usage
        if usage is not None:
            self.input_tokens, self.output_tokens = usage.input_total, usage.output_tokens
            self.cache_read_tokens, self.cache_write_tokens = usage.cache_read_tokens, usage.cache_write_tokens


_encoder: Final = msgspec.json.Encoder()
_COLUMNS: Final = tuple(item.name for item in fields(TurnDraft))
_LIST: Final = ", ".join(_COLUMNS)
_values: Final = attrgetter(*_COLUMNS)
_SELECT: Final = f"SELECT {_LIST} FROM turns WHERE session = ? AND turn = ?"  # noqa: S608  # our columns
_REPLACE: Final = f"INSERT OR REPLACE INTO turns ({_LIST}) VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608


class TurnDrafts:
    """The turns that a batch touches."""

    def __init__(self, statements: StatementBatch) -> None:
        self._statements = statements
        self._drafts: dict[tuple[int, int], TurnDraft] = {}

    def start(self, session: int, event: Event, seq: int) -> TurnDraft:
        """Start the row of a turn with the session's first event of it."""
        context = event.context
        draft = self._drafts[session, context.turn] = TurnDraft(
            session, context.turn, seq, None, context.window_id, event.at, context.model
        )
        return draft

    def of(self, session: int, event: Event, seq: int) -> TurnDraft:
        """Return the row of the event's turn, started here when the event is its first."""
        turn = event.context.turn
        draft = self.find(session, turn) or self.start(session, event, seq)
        if draft.at is None:
            draft.at = event.at
        return draft

    def find(self, session: int, turn: int) -> TurnDraft | None:
        """Return the row of a turn, if there is one."""
        draft = self._drafts.get((session, turn))
        if draft is None:
            row = self._statements.first(_SELECT, (session, turn))
            if row is None:
                return None
            draft = self._drafts[session, turn] = TurnDraft(*row)  # type: ignore[arg-type]  # columns are the fields
        return draft

    def save(self) -> None:
        """Write every touched row."""
        for draft in self._drafts.values():
            if not isinstance(draft.components, str):
                draft.components = _encoder.encode(draft.components).decode()
            self._statements.add(_REPLACE, _values(draft))
        self._drafts.clear()


FIRST_SEQ: Final = "SELECT first_seq FROM turns WHERE session = ? AND turn >= ? ORDER BY turn LIMIT 1"
"""Number of the first event of a turn or of the next one with events."""

_components_decoder: Final = msgspec.json.Decoder(dict[str, int])
_ROW_FIELDS: Final = tuple(item.name for item in fields(TurnRow))
_COMPONENTS: Final = _ROW_FIELDS.index("components")
_READ: Final = (
    f"SELECT {', '.join(_ROW_FIELDS)} FROM turns WHERE session = ? AND turn >= ? AND turn <= ? ORDER BY turn"  # noqa: S608
)


def read(connection: sqlite3.Connection, session: int, first: int, last: int) -> list[TurnRow]:
    """Return the turns from *first* to *last* of the session with this row number, in order."""
    return [_row(row) for row in connection.execute(_READ, (session, first, last))]


def _row(row: Sequence[Any]) -> TurnRow:
    values = list(row)
    values[_COMPONENTS] = _components_decoder.decode(values[_COMPONENTS])
    return TurnRow(*values)
