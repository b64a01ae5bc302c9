"""One row a turn: its measurements before and after, what the provider reported, and where its call stands."""

from __future__ import annotations

from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Final

import msgspec

from windowpane.core.events import Event, PressureMeasured, TurnEnded
from windowpane.core.vocabulary import Component
from windowpane.store.operations import Operations


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
        """Take in a measurement made at *moment* (None after the call); the newest one describes the turn."""
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
        """Take in what the model call reported."""
        self.model = event.context.model or self.model
        self.cost_dollars, self.latency_seconds = data.cost_dollars, data.latency_seconds
        usage = data.usage
        if usage is not None:
            self.input_tokens, self.output_tokens = usage.input_total, usage.output_tokens
            self.cache_read_tokens, self.cache_write_tokens = usage.cache_read_tokens, usage.cache_write_tokens


_encoder: Final = msgspec.json.Encoder()
COLUMNS: Final = tuple(item.name for item in fields(TurnDraft))
_LIST: Final = ", ".join(COLUMNS)
_values: Final = attrgetter(*COLUMNS)
_SELECT: Final = f"SELECT {_LIST} FROM turns WHERE session = ? AND turn = ?"  # noqa: S608  # our columns
_REPLACE: Final = f"INSERT OR REPLACE INTO turns ({_LIST}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608


class TurnDrafts:
    """The turns that a batch touches."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._drafts: dict[tuple[int, int], TurnDraft] = {}

    def begin(self, session: int, event: Event, seq: int) -> None:
        """The session's first event of a turn, so there is no row to look for."""
        context = event.context
        self._drafts[session, context.turn] = TurnDraft(
            session, context.turn, seq, None, context.window_id, event.at, context.model
        )

    def of(self, session: int, event: Event, seq: int) -> TurnDraft:
        """The row of the event's turn, begun here when the event is its first."""
        turn = event.context.turn
        draft = self._drafts.get((session, turn))
        if draft is None:
            row = self._operations.one(_SELECT, (session, turn))
            if row is not None:
                draft = TurnDraft(*row)  # type: ignore[arg-type]  # columns and fields are one list
            else:
                self.begin(session, event, seq)
                return self._drafts[session, turn]
            self._drafts[session, turn] = draft
        if draft.at is None:
            draft.at = event.at
        return draft

    def known(self, session: int, turn: int) -> TurnDraft | None:
        """The row of a turn, if there is one."""
        draft = self._drafts.get((session, turn))
        if draft is None:
            row = self._operations.one(_SELECT, (session, turn))
            if row is None:
                return None
            draft = self._drafts[session, turn] = TurnDraft(*row)  # type: ignore[arg-type]
        return draft

    def save(self) -> None:
        """Write every touched row."""
        for draft in self._drafts.values():
            if not isinstance(draft.components, str):
                draft.components = _encoder.encode(draft.components).decode()
            self._operations.add(_REPLACE, _values(draft))
        self._drafts.clear()
