"""The report on one turn of a session: its window, its events, what it removed; as text, JSON and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from windowpane.core.events import BlockAdded
from windowpane.core.vocabulary import COMPONENT_OF, COMPONENTS
from windowpane.report.block_life import block_name
from windowpane.report.block_sizes import WindowBlock, window_blocks
from windowpane.report.headline import turn_headline
from windowpane.report.html_page import escape, html_page, identity, legend, table, tiles
from windowpane.report.text import text_page
from windowpane.store.filters import AlertFilter, EventFilter
from windowpane.store.reads.notes import NOTE_EVENTS, Note, notes_of
from windowpane.store.reads.project_reader import EventReader
from windowpane.store.records import (
    AlertRow,
    BlockRow,
    DamagedEvent,
    SessionRow,
    StoredEvent,
    TurnRow,
    intact_events,
)
from windowpane.text import formats
from windowpane.text.events import describe_damage, describe_event
from windowpane.text.labels import COMPONENT_LABELS, content_name

MAXIMUM_EVENTS: Final = 500
MAXIMUM_REMOVED: Final = 200

ROWS: Final = 12
"""Rows of each section; further rows are counted."""


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
            zone=turn.zone, estimated=turn.count_source == "estimate", ended=turn.used_final is not None,
            removed_from=None if turn.used_after is None else turn.used_before,
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
    blocks = window_blocks(store.blocks_at(name, turn), here.components)
    window = {one.block.block_id: one for one in blocks}
    return TurnReport(
        session=session,
        turn=here,
        change_tokens=_change(before, here),
        blocks=blocks,
        removed=sorted(removed, key=lambda row: -row.tokens),
        alerts=[alert for alert in store.alerts(AlertFilter(session_id=name)) if alert.fired_turn == turn],
        notes=[note for note in notes_of(intact_events(noted)) if note.turn == turn],
        events=[_event(one, window) for one in recorded],
    )


def _change(before: TurnRow | None, here: TurnRow) -> int | None:
    if before is None or before.used_tokens is None or here.used_tokens is None:
        return None
    return here.used_tokens - before.used_tokens


def _event(stored: StoredEvent | DamagedEvent, window: dict[str, WindowBlock]) -> TurnEvent:
    """Return an event in one sentence, in which a block of the *window* has the size that it has there."""
    if isinstance(stored, DamagedEvent):
        return TurnEvent(stored.seq, stored.type, describe_damage(stored.problem))
    event = stored.event
    if isinstance(event.data, BlockAdded) and event.data.block.id in window:
        here = window[event.data.block.id]
        block = replace(
            event.data.block, tokens=here.tokens, count_source="estimate" if here.is_estimated else "exact"
        )
        event = event._replace(data=replace(event.data, block=block))
    return TurnEvent(stored.seq, event.type, describe_event(event))


def turn_to_text(report: TurnReport, *, unicode: bool = True) -> str:
    """Return the whole report in lines of at most 80 columns."""
    sections = [_head(report), _composition(report), _largest(report), _removed(report), _events(report)]
    return text_page(sections, unicode=unicode)


def _head(report: TurnReport) -> list[str]:
    turn = report.turn
    calls = [
        f"change {formats.tokens_short(report.change_tokens, signed=True)}",
        f"input {formats.tokens(turn.input_tokens)}",
        f"output {formats.tokens(turn.output_tokens, estimated=turn.is_cost_estimated)}{_recorded(turn)}",
        f"cost {formats.dollars(turn.cost_dollars, estimated=turn.is_cost_estimated)}",
    ]
    return [report.session.session_id, f"at {formats.local(turn.at)}", "", report.headline, "   ".join(calls)]


def _recorded(turn: TurnRow) -> str:
    """Return the output that the recording states, where the other is an estimate."""
    recorded = turn.recorded_output_tokens
    return "" if recorded is None else f" ({formats.tokens(recorded)} recorded)"


def _composition(report: TurnReport) -> list[str]:
    sizes = report.turn.components
    rows = [f"  {COMPONENT_LABELS[name]:<21}{sizes[name]:>12,}" for name in COMPONENTS if sizes.get(name)]
    return ["Composition, tokens", *rows] if rows else []


def _largest(report: TurnReport) -> list[str]:
    ordered = sorted(report.blocks, key=lambda one: -one.tokens)
    rows = [
        f"  {formats.tokens(one.tokens, estimated=one.is_estimated):>10}  "
        f"{' '.join(filter(None, (block_name(one.block), one.block.target)))}"
        for one in ordered
    ]
    return _listed("Largest items, tokens", rows)


def _removed(report: TurnReport) -> list[str]:
    rows = [
        f"  {formats.tokens(row.tokens):>10}  {block_name(row)}: {row.reason or row.removed_by}"
        for row in report.removed
    ]
    return _listed("Removed at this turn, tokens", rows)


def _events(report: TurnReport) -> list[str]:
    return _listed("Events", [f"  {event.text}" for event in report.events])


def _listed(title: str, rows: list[str]) -> list[str]:
    more = [f"  and {len(rows) - ROWS:,} more"] if len(rows) > ROWS else []
    return [title, *rows[:ROWS], *more] if rows else []


def turn_to_html(report: TurnReport) -> str:
    """Return the whole page."""
    session = report.session
    return html_page(
        f"{session.agent}: turn {report.turn.turn} of {session.session_id}",
        f"<h1>{escape(report.headline)}</h1>",
        identity(
            [
                ("session", session.session_id),
                ("agent", session.agent),
                ("model", report.turn.model or formats.UNKNOWN),
                ("turn", _number(report)),
                ("at", formats.utc(report.turn.at)),
            ]
        ),
        _tiles(report),
        "<h2>The window, in the order the model saw it</h2>",
        _strip(report),
        _tables(report),
    )


def _number(report: TurnReport) -> str:
    if report.turn.used_final is None:
        return f"{report.turn.turn:,}, not ended"
    return f"{report.turn.turn:,} of {report.session.turns:,}"


def _tiles(report: TurnReport) -> str:
    turn = report.turn
    cached = None
    if turn.input_tokens and turn.cache_read_tokens is not None:
        cached = turn.cache_read_tokens / turn.input_tokens
    return tiles(
        [
            ("change", formats.tokens_short(report.change_tokens, signed=True), "tokens"),
            ("input", formats.tokens(turn.input_tokens), "tokens"),
            ("from the cache", formats.percent(cached), "of the input"),
            (
                "output",
                formats.tokens(turn.output_tokens, estimated=turn.is_cost_estimated),
                f"tokens{_recorded(turn)}",
            ),
            ("cost", formats.dollars(turn.cost_dollars, estimated=turn.is_cost_estimated), "of this call"),
            ("took", formats.seconds(turn.latency_seconds), ""),
        ]
    )


def _strip(report: TurnReport) -> str:
    drawn = "".join(
        f'<i class="{COMPONENT_OF[one.block.content_type]}" style="flex:{one.tokens}" '
        f'title="{escape(_name(one.block))}, {_size(one)} tokens"></i>'
        for one in report.blocks
        if one.tokens > 0
    )
    free = (report.turn.limit_tokens or 0) - sum(one.tokens for one in report.blocks)
    room = f'<i class=free style="flex:{free}"></i>' if free > 0 else ""
    seen = legend(name for name in COMPONENTS if report.turn.components.get(name))
    return f"<div class=strip>{drawn}{room}</div><p class=legend>{seen}</p>"


def _size(one: WindowBlock) -> str:
    return formats.tokens(one.tokens, estimated=one.is_estimated)


def _name(block: BlockRow) -> str:
    return content_name(block.content_type, block.tool_name, block.target)


def _tables(report: TurnReport) -> str:
    sizes = report.turn.components
    components = [
        [COMPONENT_LABELS[name], formats.tokens(sizes[name]), formats.percent(sizes[name] / sum(sizes.values()))]
        for name in COMPONENTS
        if sizes.get(name)
    ]
    blocks = [
        [
            _name(one.block), _size(one), str(one.block.turn_added), one.block.block_id, one.block.preview or "",
        ]
        for one in report.blocks
    ]  # fmt: skip
    removed = [
        [_name(row), formats.tokens(row.tokens, estimated=row.count_source == "estimate"), str(row.turn_added),
         row.removed_by or "", row.reason, row.block_id]
        for row in report.removed
    ]  # fmt: skip
    return "".join(
        [
            table("Components", ("component", "tokens", "share"), components),
            table("Alerts", ("severity", "alert", "what"),
                  [[item.severity, item.alert, item.summary] for item in report.alerts]),
            table("Notes of readers", ("written", "note"),
                  [[formats.local(note.at), note.text or note.kind] for note in report.notes]),
            table("Removed at this turn", ("what", "tokens", "since turn", "how", "why", "item"), removed),
            table("Items of the window", ("what", "tokens", "since turn", "item", "text"), blocks),
            table("Events of the turn", ("seq", "event", "what"),
                  [[str(event.seq), event.type, event.text] for event in report.events]),
        ]
    )  # fmt: skip
