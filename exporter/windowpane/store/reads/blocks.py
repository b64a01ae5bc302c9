"""The blocks of a session as pages read them: the window at a turn, what was removed before it, and one block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from windowpane.core.decoders import json_decoder
from windowpane.core.vocabulary import ContentType, CountSource
from windowpane.store import captured_content
from windowpane.store.database import Database
from windowpane.store.projections.block_drafts import IN_WINDOW
from windowpane.store.projections.turns import FIRST_SEQ
from windowpane.store.records import BlockRow

_COLUMNS: Final = (
    "b.block_id, b.position, b.turn_removed, b.removed_by, b.reason, b.score, b.replaced_by, "
    'b.last_referenced, b."references", b.regretted_turn, e.seq, e.turn, e.body'
)
_BLOCKS: Final = f"SELECT {_COLUMNS} FROM blocks AS b JOIN events AS e ON e.seq = b.event_seq "  # noqa: S608
_AT: Final = (
    _BLOCKS + "WHERE b.session = ? AND b.left_seq > ? AND b.entered_seq <= ? ORDER BY b.position, b.event_seq"
)
_REMOVED: Final = (
    _BLOCKS + "WHERE b.session = ? AND b.left_seq <= ? ORDER BY b.left_seq DESC, b.event_seq DESC LIMIT ?"
)
_REGRETTED: Final = _REMOVED.replace(" ORDER BY", " AND b.regretted_turn IS NOT NULL ORDER BY")
_ONE: Final = _BLOCKS + "WHERE b.session = ? AND b.block_id = ?"
_BEFORE: Final = (
    _BLOCKS  # noqa: S608  # our columns
    + "WHERE b.session = ? AND b.block_id IN (SELECT block_id FROM blocks WHERE session = ? "
    "AND position < (SELECT position FROM blocks WHERE session = ? AND block_id = ?) "
    "ORDER BY position DESC LIMIT ?)"
)
BEFORE_A_RESULT: Final = 60
"""Blocks searched for the call of a tool result; parallel calls and their results stand together."""
_TURN_AT: Final = "SELECT turn, call_seq FROM turns WHERE session = ? AND turn <= ? ORDER BY turn DESC LIMIT 1"


class _AddedBlock(msgspec.Struct):
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
    target: str | None = None
    pinned: bool = False
    replaces: str | None = None


class _BlockEvent(msgspec.Struct):
    """The part of a `block.added` that its block's row shows."""

    window_id: int
    data: _AddedBlock
    damage: str | None = None


_event_decoder: Final = json_decoder(_BlockEvent)


def window_at(connection: Database, session: int, turn: int) -> list[BlockRow]:
    """Return the exact window at the call of *turn*, in order; *session* is a row number."""
    moment = _moment(connection, session, turn)
    return _rows(connection, _AT, (session, moment, moment))


def removed_before(
    connection: Database, session: int, turn: int, *, limit: int, regretted: bool
) -> list[BlockRow]:
    """Return the blocks removed before the call of *turn*, latest first; *regretted*: those needed again."""
    statement = _REGRETTED if regretted else _REMOVED
    return _rows(connection, statement, (session, _moment(connection, session, turn), limit))


def one(connection: Database, session: int, block_id: str) -> BlockRow | None:
    """Return one block, or None."""
    rows = _rows(connection, _ONE, (session, block_id))
    return rows[0] if rows else None


def tool_call(connection: Database, session: int, result_id: str, tool_call_id: str) -> BlockRow | None:
    """Return the tool call that a tool result answers: of the blocks just before it, the one with the same id."""
    rows = _rows(connection, _BEFORE, (session, session, session, result_id, BEFORE_A_RESULT))
    return next(
        (row for row in rows if row.content_type == "tool_call" and row.tool_call_id == tool_call_id), None
    )


def _moment(connection: Database, session: int, turn: int) -> int:
    """Return the event number at which the call of *turn* was made; the latest for a turn without a call yet."""
    row = connection.execute(_TURN_AT, (session, turn)).fetchone()
    if row is None:
        return 0
    found_turn, call_seq = row
    if found_turn == turn:
        return IN_WINDOW - 1 if call_seq is None else int(call_seq)
    following = connection.execute(FIRST_SEQ, (session, turn)).fetchone()
    return IN_WINDOW - 1 if following is None else int(following[0])


def _rows(connection: Database, statement: str, values: tuple[int | str, ...]) -> list[BlockRow]:
    rows = connection.execute(statement, values).fetchall()
    events = [_block_event(*row[-3:]) for row in rows]
    previews = captured_content.previews(connection, {event.data.digest for event in events})
    return [_row(row, event, previews) for row, event in zip(rows, events, strict=True)]


def _block_event(seq: int, turn: int, body: bytes) -> _BlockEvent:
    """Decode a stored `block.added`; only the turn of a damaged one is known."""
    try:
        return _event_decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError):
        unknown = _AddedBlock("unattributed", 0, turn, "", 0, "", 0, "estimate")
        return _BlockEvent(0, unknown, f"event {seq}, which added this block, cannot be read")


def _row(row: Sequence[Any], event: _BlockEvent, previews: dict[str, str]) -> BlockRow:
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
        target=block.target,
        tool_call_id=block.tool_call_id,
        pinned=block.pinned,
        digest=block.digest,
        chars=block.chars,
        count_source=block.count_source,
        preview=event.damage or previews.get(block.digest),
    )
