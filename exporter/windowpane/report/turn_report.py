"""The content of a report on one turn of a session: its window, its events, what it removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from windowpane.core.vocabulary import COMPONENT_OF, Component
from windowpane.report.headline import turn_headline
from windowpane.report.session_report import plain_values
from windowpane.store.interface import EventFilter, EventReader
from windowpane.store.notes import NOTE_EVENTS, Note, notes_of
from windowpane.store.records import (
    AlertRow,
    BlockRow,
    DamagedEvent,
    SessionRow,
    StoredEvent,
    TurnRow,
    intact_events,
)
from windowpane.text.events import describe_damage, describe_event

MAXIMUM_EVENTS: Final = 500
MAXIMUM_REMOVED: Final = 200


@dataclass(frozen=True, slots=True)
class WindowBlock:
    """A block of the window, with its share of what the call measured."""

    block: BlockRow
    tokens: int
    is_estimated: bool


@dataclass(frozen=True, slots=True)
class TurnEvent:
    """An event of the turn in one sentence."""

    seq: int
    type: str
    text: str


@dataclass(frozen=True, slots=True)
class TurnReport:
    """The content of a report on one turn; tokens, ratios 0 to 1, dollars."""

    session: SessionRow
    turn: TurnRow
    change_tokens: int | None
    """Used tokens against the turn before; None where either was not measured."""
    blocks: Sequence[WindowBlock]
    """The window in the order the model saw it."""
    removed: Sequence[BlockRow]
    """Blocks removed at this turn, the largest first."""
    alerts: Sequence[AlertRow]
    """Alerts that fired at this turn."""
    notes: Sequence[Note]
    events: Sequence[TurnEvent]

    @property
    def headline(self) -> str:
        """The size of the window in one sentence."""
        turn = self.turn
        return turn_headline(
            turn.turn, turn.used_tokens, limit_tokens=turn.limit_tokens, utilization=turn.utilization,
            zone=turn.zone, estimated=turn.count_source == "estimate",
        )  # fmt: skip


def gather_turn(store: EventReader, session: SessionRow, turn: int) -> TurnReport | None:
    """Read the content of a report on *turn*, bounded for sessions of any length; None without such a turn."""
    rows = {row.turn: row for row in store.turns(session.session_id, first=max(1, turn - 1), last=turn)}
    here, before = rows.get(turn), rows.get(turn - 1)
    if here is None:
        return None
    name = session.session_id
    recorded = store.events_or_damage(
        EventFilter(session_id=name, turn_from=turn, turn_to=turn, limit=MAXIMUM_EVENTS)
    )
    noted = store.events_or_damage(EventFilter(session_id=name, types=NOTE_EVENTS, limit=MAXIMUM_EVENTS))
    removed = [row for row in store.removed_blocks(name, turn, limit=MAXIMUM_REMOVED) if row.turn_removed == turn]
    return TurnReport(
        session=session,
        turn=here,
        change_tokens=_change(before, here),
        blocks=window_blocks(store.blocks_at(name, turn), here.components),
        removed=sorted(removed, key=lambda row: -row.tokens),
        alerts=[alert for alert in store.alerts(session_id=name) if alert.fired_turn == turn],
        notes=[note for note in notes_of(intact_events(noted)) if note.turn == turn],
        events=[_event(one) for one in recorded],
    )


def _change(before: TurnRow | None, here: TurnRow) -> int | None:
    if before is None or before.used_tokens is None or here.used_tokens is None:
        return None
    return here.used_tokens - before.used_tokens


def window_blocks(rows: Sequence[BlockRow], measured: dict[Component, int]) -> list[WindowBlock]:
    """Return the blocks with the tokens of each component that the turn measured, as in the chart."""
    sizes: dict[str, int] = {}
    for component, total in measured.items():
        counted = [row for row in rows if COMPONENT_OF[row.content_type] == component]
        scaled = scaled_to([row.tokens for row in counted], total)
        sizes |= {row.block_id: size for row, size in zip(counted, scaled, strict=True)}
    return [
        WindowBlock(
            row,
            size := sizes.get(row.block_id, row.tokens),
            is_estimated=size != row.tokens or row.count_source == "estimate",
        )
        for row in rows
    ]


def scaled_to(counted: Sequence[int], total: int) -> list[int]:
    """Return whole numbers in the proportions of *counted* that sum to *total*."""
    whole, passed, edge, scaled = sum(counted), 0, 0, []
    for size in counted:
        passed += size
        last, edge = edge, round(passed * total / whole) if whole else 0
        scaled.append(edge - last)
    return scaled


def _event(stored: StoredEvent | DamagedEvent) -> TurnEvent:
    if isinstance(stored, DamagedEvent):
        return TurnEvent(stored.seq, stored.type, describe_damage(stored.problem))
    return TurnEvent(stored.seq, stored.event.type, describe_event(stored.event))


def turn_to_json(report: TurnReport) -> dict[str, Any]:
    """Return the report as plain JSON types; infinite forecasts become the string `inf`."""
    return {**plain_values(asdict(report)), "answer": report.headline}
