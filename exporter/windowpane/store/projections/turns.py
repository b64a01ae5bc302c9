"""One row per turn: its measurements, what the provider reported, and the moment of its model call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec

from windowpane.core.decoders import json_decoder
from windowpane.core.events import Event, Pressure, PressureMeasured, TurnEnded
from windowpane.core.limits import WindowLimits
from windowpane.store.database import Database
from windowpane.store.records import TurnRow
from windowpane.store.statements import StatementBatch, padded, placeholders

_ROW_FIELDS: Final = tuple(item.name for item in fields(TurnRow))
_COLUMNS: Final = ("session", "first_seq", "call_seq", *_ROW_FIELDS)
_NEW_ROW: Final[dict[str, Any]] = {
    **dict.fromkeys(_COLUMNS), "components": "{}", "added_tokens": 0, "stale_tokens": 0, "duplicate_tokens": 0
}  # fmt: skip
_MEASURED: Final = tuple(
    item.name for item in fields(Pressure) if item.name in _ROW_FIELDS and item.name != "estimate_error"
)
"""Columns that repeat the turn's latest measurement; of the estimate error the latest known is kept."""
_measured_values: Final = attrgetter(*_MEASURED)

_LIST: Final = ", ".join(_COLUMNS)
_SELECT: Final = f"SELECT {_LIST} FROM turns WHERE session = ? AND turn = ?"  # noqa: S608  # our columns
_SELECT_LAST: Final = (
    f"SELECT {', '.join(f't.{name}' for name in _COLUMNS)} FROM sessions JOIN turns AS t "  # noqa: S608
    "ON t.session = key AND t.turn = last_turn WHERE key IN"
)
_SELECT_UNDER: Final = f"SELECT {_LIST} FROM turns WHERE session = ? AND limit_tokens = ?"  # noqa: S608  # our columns
_KEY: Final = ("session", "turn")
_CHANGING: Final = tuple(name for name in _COLUMNS if name not in _KEY)
_SAVE: Final = (
    f"INSERT INTO turns ({_LIST}) VALUES ({', '.join('?' * len(_COLUMNS))}) "  # noqa: S608  # our columns
    f"ON CONFLICT (session, turn) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _CHANGING)}"
)
_READ: Final = (
    f"SELECT {', '.join(_ROW_FIELDS)} FROM turns WHERE session = ? AND turn >= ? AND turn <= ? ORDER BY turn"  # noqa: S608
)
FIRST_SEQ: Final = "SELECT first_seq FROM turns WHERE session = ? AND turn >= ? ORDER BY turn LIMIT 1"
"""Number of the first event of a turn or of the next one with events."""

_COMPONENTS: Final = _ROW_FIELDS.index("components")
_encoder: Final = msgspec.json.Encoder()
_components_decoder: Final = json_decoder(dict[str, int])


class TurnDraft:
    """One row of `turns` as the writer changes it: the fields of `TurnRow` and three more columns.

    `session` is the session's row number, `first_seq` the turn's first event, and `call_seq` the moment whose
    window the model saw: before its reply, or the last measurement until the reply.
    """

    __slots__ = ("values",)

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values
        """By column; `components` becomes JSON when the row is written."""

    @classmethod
    def first(cls, session: int, event: Event, seq: int) -> TurnDraft:
        """Return the row of a turn that starts with *event*."""
        context = event.context
        draft = cls(_NEW_ROW.copy())
        draft.values.update(
            session=session, turn=context.turn, first_seq=seq, window_id=context.window_id, at=event.at,
            model=context.model,
        )  # fmt: skip
        return draft

    @property
    def call_seq(self) -> int | None:
        """The event number at which the model was called, or would be now."""
        moment: int | None = self.values["call_seq"]
        return moment

    def call(self, moment: int) -> None:
        """Record the moment of the model call."""
        self.values["call_seq"] = moment

    def measure(self, data: PressureMeasured, moment: int | None) -> None:
        """Record a measurement made at *moment* (None after the call); the newest one describes the turn."""
        if data.phase == "next":
            return  # of the call that follows, whose row starts with its turn
        values = self.values
        if moment is not None and data.phase != "final":
            values["call_seq"] = moment
        values[f"used_{data.phase}"] = data.used_tokens
        values.update(zip(_MEASURED, _measured_values(data), strict=True))
        values["components"] = data.used_by_component
        if data.estimate_error is not None:
            values["estimate_error"] = data.estimate_error

    def end(self, event: Event, data: TurnEnded, input_tokens: int) -> None:
        """Record what the model call reported, with an input of *input_tokens*."""
        values, usage = self.values, data.usage
        values["model"] = event.context.model or values["model"]
        values.update(
            cost_dollars=data.cost_dollars, list_cost_dollars=data.list_cost_dollars,
            latency_seconds=data.latency_seconds,
        )  # fmt: skip
        if usage is not None:
            values.update(
                input_tokens=input_tokens, output_tokens=usage.output_tokens,
                cache_read_tokens=usage.cache_read_tokens, cache_write_tokens=usage.cache_write_tokens,
                recorded_output_tokens=data.recorded_output_tokens,
            )  # fmt: skip

    def correct(self, limits: WindowLimits) -> None:
        """Replace the limits that the turn was measured by, which never were."""
        values = self.values
        sizes = (values["used_final"], values["used_after"], values["used_before"])
        used = next((size for size in sizes if size is not None), 0)
        values.update(
            limit_tokens=limits.limit_tokens, usable_tokens=limits.usable_tokens, red_tokens=limits.red_tokens,
            utilization=used / limits.limit_tokens, zone=limits.zone_of(used),
        )  # fmt: skip

    def row(self) -> tuple[Any, ...]:
        """Return the values in the order of the columns."""
        if not isinstance(self.values["components"], str):
            self.values["components"] = _encoder.encode(self.values["components"]).decode()
        return tuple(self.values.values())


class TurnChange(NamedTuple):
    """A change of the row of an event's turn."""

    event: Event
    seq: int
    change: Callable[[TurnDraft], object] | None = None
    """None: the row is started, if there is none."""
    is_new: bool = False
    """The turn has no row."""


class TurnDrafts:
    """The turns that a batch touches."""

    def __init__(self, statements: StatementBatch) -> None:
        self._statements = statements
        self._drafts: dict[tuple[int, int], TurnDraft] = {}

    def apply(self, session: int, changes: Iterable[TurnChange]) -> None:
        """Change rows in order."""
        for event, seq, change, is_new in changes:
            draft = self.start(session, event, seq) if is_new else self.of(session, event, seq)
            if change is not None:
                change(draft)

    def start(self, session: int, event: Event, seq: int) -> TurnDraft:
        """Start the row of a turn with the session's first event of it."""
        draft = self._drafts[session, event.context.turn] = TurnDraft.first(session, event, seq)
        return draft

    def of(self, session: int, event: Event, seq: int) -> TurnDraft:
        """Return the row of the event's turn, started here when the event is its first."""
        draft = self.find(session, event.context.turn) or self.start(session, event, seq)
        if draft.values["at"] is None:
            draft.values["at"] = event.at
        return draft

    def find(self, session: int, turn: int) -> TurnDraft | None:
        """Return the row of a turn, if there is one."""
        draft = self._drafts.get((session, turn))
        if draft is None:
            row = self._statements.first(_SELECT, (session, turn))
            if row is None:
                return None
            draft = self._add(row)
        return draft

    def load_last(self, sessions: Sequence[int]) -> None:
        """Read the last turn of each of the sessions."""
        keys = padded(sessions)
        for row in self._statements.connection.execute(f"{_SELECT_LAST} ({placeholders(keys)})", keys).fetchall():
            self._add(row)

    def correct(self, session: int, before: int, limits: WindowLimits) -> None:
        """Replace the limit *before* of a session's turns, which never was."""
        stored = self._statements.connection.execute(_SELECT_UNDER, (session, before)).fetchall()
        for row in stored:
            values = dict(zip(_COLUMNS, row, strict=True))
            if (session, values["turn"]) not in self._drafts:
                self._add(row)
        for (of, _turn), draft in self._drafts.items():
            if of == session and draft.values["limit_tokens"] == before:
                draft.correct(limits)

    def save(self) -> None:
        """Write every touched row."""
        drafts, self._drafts = self._drafts, {}
        self._statements.add_all(_SAVE, [draft.row() for draft in drafts.values()])

    def _add(self, row: Sequence[Any]) -> TurnDraft:
        draft = TurnDraft(dict(zip(_COLUMNS, row, strict=True)))
        self._drafts[draft.values["session"], draft.values["turn"]] = draft
        return draft


def read(connection: Database, session: int, first: int, last: int) -> list[TurnRow]:
    """Return the turns from *first* to *last* of the session with this row number, in order."""
    return [_row(row) for row in connection.execute(_READ, (session, first, last))]


def _row(row: Sequence[Any]) -> TurnRow:
    values = list(row)
    values[_COMPONENTS] = _components_decoder.decode(values[_COMPONENTS])
    return TurnRow(*values)
