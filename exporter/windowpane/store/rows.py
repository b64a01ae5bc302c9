"""Database rows to the plain records of `store.records`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from windowpane.core.codec import decode
from windowpane.core.vocabulary import ContentType, CountSource
from windowpane.exceptions import EventFormatError
from windowpane.store.interface import OnUnreadable
from windowpane.store.records import AlertRow, BlockRow, DamagedEvent, SessionRow, StoredEvent, TurnRow
from windowpane.store.session_state import read_memory

SESSION_COLUMNS: Final = (
    "session_id, revision, agent, model, source, parent_session_id, started_at, last_at, ended, incomplete, "
    "turns, exchanges, events, windows, limit_tokens, limit_source, used_tokens, peak_used_tokens, utilization, "
    "peak_utilization, zone, worst_zone, velocity, turns_until_red, cost_dollars, input_tokens, output_tokens, "
    "cache_read_tokens, evicted_blocks, evicted_tokens, compressions, regrets, overflows, fidelity, firing, "
    "worst_severity, last_event, count_source, memory"
)
TURN_COLUMNS: Final = (
    "turn, window_id, at, model, used_before, used_after, used_final, count_source, components, limit_tokens, "
    "usable_tokens, red_tokens, zone, utilization, velocity, added_tokens, turns_until_red, turns_until_red_p10, "
    "turns_until_red_p90, burn_rate, stale_tokens, duplicate_tokens, input_tokens, output_tokens, "
    "cache_read_tokens, cache_write_tokens, cost_dollars, latency_seconds, estimate_error"
)
BLOCK_COLUMNS: Final = (
    "b.block_id, b.position, b.turn_removed, b.removed_by, b.reason, b.score, b.replaced_by, "
    'b.last_referenced, b."references", b.regretted_turn, e.seq, e.turn, e.body'
)
ALERT_COLUMNS: Final = (
    "s.session_id, s.agent, a.alert, a.severity, a.crossing_turn, a.fired_turn, a.fired_at, a.resolved_turn, "
    "a.resolved_at, a.value, a.threshold, a.summary, a.delivered, a.failed"
)
EVENT_COLUMNS: Final = "e.seq, s.revision, e.seq >= s.counted_from, e.hash, e.body"
RECORD_COLUMNS: Final = (
    EVENT_COLUMNS + ", s.session_id, e.turn, (SELECT name FROM event_types WHERE id = e.type), e.at"  # noqa: S608
)

_ENDED: Final = 8
_INCOMPLETE: Final = 9
_COMPONENTS: Final = 8


class _Block(msgspec.Struct):
    """The part of a block's event that its row shows."""

    content_type: ContentType
    tokens: int
    turn: int
    group: str
    exchange: int
    digest: str
    chars: int
    count_source: CountSource
    tool_call_id: str | None = None
    tool_name: str | None = None
    pinned: bool = False
    replaces: str | None = None


_components_decoder: Final = msgspec.json.Decoder(dict[str, int])
_channels_decoder: Final = msgspec.json.Decoder(tuple[str, ...])


def session_row(row: Sequence[Any]) -> SessionRow:
    """A row of `SESSION_COLUMNS`."""
    *values, count_source, memory = row
    values[_ENDED], values[_INCOMPLETE] = bool(values[_ENDED]), bool(values[_INCOMPLETE])
    peak: int = values[17]
    values += [read_memory(memory).sparkline.points(peak), count_source]
    return SessionRow(*values)


def turn_row(row: Sequence[Any]) -> TurnRow:
    """A row of `TURN_COLUMNS`."""
    values = list(row)
    values[_COMPONENTS] = _components_decoder.decode(values[_COMPONENTS])
    return TurnRow(*values)


class BlockEvent(msgspec.Struct):
    """The part of a `block.added` that its block's row shows."""

    window_id: int
    data: _Block
    damage: str | None = None


_block_decoder: Final = msgspec.json.Decoder(BlockEvent)


def block_event(seq: int, turn: int, body: bytes) -> BlockEvent:
    """A stored `block.added`, read as far as a row needs it; of a damaged one only its place is known."""
    try:
        return _block_decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError):
        unknown = _Block("unattributed", 0, turn, "", 0, "", 0, "estimate")
        return BlockEvent(0, unknown, f"event {seq}, which brought this block, cannot be read")


def block_row(row: Sequence[Any], event: BlockEvent, previews: dict[str, str]) -> BlockRow:
    """A row of `BLOCK_COLUMNS`; it tells the block's whole life, whatever the turn it is shown at."""
    (
        block_id, position, turn_removed, removed_by, reason, score, replaced_by, last_referenced, references,
        regretted_turn, *_event,
    ) = row  # fmt: skip
    block = event.data
    return BlockRow(
        block_id=block_id,
        content_type=block.content_type,
        tokens=block.tokens,
        group=block.group,
        exchange=block.exchange,
        turn_added=block.turn,
        turn_removed=turn_removed,
        window_id=event.window_id,
        position=position,
        removed_by=removed_by,
        reason=reason or "",
        score=score,
        replaced_by=replaced_by,
        replaces=block.replaces,
        last_referenced=last_referenced,
        references=references,
        regretted_turn=regretted_turn,
        tool_name=block.tool_name,
        tool_call_id=block.tool_call_id,
        pinned=block.pinned,
        digest=block.digest,
        chars=block.chars,
        count_source=block.count_source,
        preview=event.damage or previews.get(block.digest),
    )


def alert_row(row: Sequence[Any]) -> AlertRow:
    """A row of `ALERT_COLUMNS`."""
    *values, delivered, failed = row
    values += [_channels_decoder.decode(delivered), _channels_decoder.decode(failed)]
    return AlertRow(*values)


def readable_events(rows: Iterable[Sequence[Any]], unreadable: OnUnreadable | None) -> Iterator[StoredEvent]:
    """Rows of `EVENT_COLUMNS`; *unreadable* hears of those that are no events, else they raise."""
    for row in rows:
        try:
            event = stored_event(row)
        except EventFormatError as error:
            if unreadable is None:
                raise
            unreadable(row[0], error)
        else:
            yield event


def stored_event(row: Sequence[Any]) -> StoredEvent:
    """A row of `EVENT_COLUMNS`."""
    seq, revision, counted, event_hash, body = row
    return StoredEvent(seq, revision, bool(counted), event_hash.hex(), decode(body))


def recorded_event(row: Sequence[Any]) -> StoredEvent | DamagedEvent:
    """A row of `RECORD_COLUMNS`; what became another kind of event than its row says is damaged too."""
    *event_row, session_id, turn, kind, at = row
    try:
        stored = stored_event(event_row)
    except EventFormatError as error:
        problem = str(error)
    else:
        if stored.event.type == kind:
            return stored
        problem = f"type: expected {kind!r}, got {stored.event.type!r}"
    seq, revision, _counted, event_hash, _body = event_row
    return DamagedEvent(seq, revision, event_hash.hex(), session_id, turn, kind, at, problem)
