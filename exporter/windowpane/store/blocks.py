"""The life of every block: which event added it, its position, when and why it was removed.

Moments are event numbers: a block is in the window at moment m when `entered_seq <= m < left_seq`. Positions
follow `core.window.Window`: an appended block gets the next one, a replacement the first of those it replaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from windowpane.core.events import (
    BlockAdded,
    BlocksEvicted,
    BlocksReferenced,
    ContentCompressed,
    Event,
    ReplyDiscarded,
)
from windowpane.core.vocabulary import REPLY_TYPES, ContentType, CountSource
from windowpane.core.window.blocks import Block
from windowpane.store import captured_content
from windowpane.store.database import Database
from windowpane.store.records import BlockRow
from windowpane.store.session_drafts import SessionDraft
from windowpane.store.statements import END, StatementBatch
from windowpane.store.turns import FIRST_SEQ

IN_WINDOW: Final = END
"""`left_seq` of a block that is in the window."""
AT_THE_END: Final = -1
TOOL_TYPES: Final[frozenset[ContentType]] = frozenset({"tool_call", "tool_result", "placeholder"})
"""Types of content that belong to a tool."""

_INSERT: Final = (
    "INSERT INTO blocks (session, block_id, event_seq, entered_seq, left_seq, position, tool, target, "
    "tokens, calls_in, price_in) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
)
_POSITION: Final = "SELECT position FROM blocks WHERE session = ? AND block_id = ? AND left_seq = ?"
_FIRST_POSITION: Final = "SELECT min(position) FROM blocks WHERE session = ? AND left_seq = ? AND block_id IN "
IDS_PER_STATEMENT: Final = 200
_REMOVE: Final = (
    "UPDATE blocks SET left_seq = ?, turn_removed = ?, removed_by = ?, reason = ?, score = ?, replaced_by = ?, "
    "calls_out = ?, price_out = ? WHERE session = ? AND block_id = ? AND left_seq = ?"
)
_REMOVE_ALL: Final = (
    "UPDATE blocks SET left_seq = ?, turn_removed = ?, removed_by = 'roll', reason = ?, calls_out = ?, "
    "price_out = ? WHERE session = ? AND left_seq = ?"
)
_MOVE_BACK: Final = "UPDATE blocks SET position = position + ? WHERE session = ? AND position > ?"
"""Removed blocks move as well, so that the order at any earlier turn stays the same."""
_REFER: Final = (
    'UPDATE blocks SET last_referenced = ?, "references" = "references" + 1 WHERE session = ? AND block_id = ?'
)
_REGRET: Final = (
    "UPDATE blocks SET regretted_turn = coalesce(regretted_turn, ?) WHERE session = ? AND block_id = ?"
)


def starts_reply(session: SessionDraft, block: Block, turn: int) -> bool:
    """Return whether a block is the first of the turn's reply, so that everything before it was sent."""
    return block.content_type in REPLY_TYPES and session.memory.called_turn != turn


def append(statements: StatementBatch, session: SessionDraft, block: Block, seq: int) -> bool:
    """Add a block at the end of the window; return False, without a change, when it replaces another."""
    if block.exchange > session.exchanges:  # noqa: PLR1730  # max() costs a call, on the busiest path of all
        session.exchanges = block.exchange
    memory = session.memory
    if block.replaces is not None or block.content_type == "unattributed" or block.id in memory.pending:
        return False
    position = memory.next_position
    memory.next_position = position + 1
    statements.add(_INSERT, (session.key, block.id, seq, seq, IN_WINDOW, position, *_use(session, block)))
    return True


def _use(session: SessionDraft, block: Block) -> tuple[str | None, str | None, int, int, int]:
    """Return the tool and target of a block, its tokens, and the calls so far with their price per token."""
    tool = block.tool_name if block.content_type in TOOL_TYPES else None
    return tool, block.target if tool else None, block.tokens, session.turns, session.carried_price


def replace_others(
    statements: StatementBatch, session: SessionDraft, event: Event, seq: int, call_seq: int | None
) -> None:
    """Add a block in the position of others. *call_seq* is the moment of the turn's call, once it was made.

    The unattributed block is known when the call returns but was part of it, so it counts from the call on.
    """
    assert isinstance(event.data, BlockAdded)
    block, memory = event.data.block, session.memory
    unattributed = block.content_type == "unattributed"
    entered = call_seq if unattributed and call_seq is not None else seq
    position = memory.pending.pop(block.id, None)
    if position is None and block.replaces is not None:
        position = _remove_replaced(statements, session, event, block.replaces, entered)
    if unattributed and not block.tokens:
        return  # the provider's total no longer exceeds the visible content
    if position is None or position == AT_THE_END:
        position, memory.next_position = memory.next_position, memory.next_position + 1
    row = (session.key, block.id, seq, entered, IN_WINDOW, position, *_use(session, block))
    statements.add(_INSERT, row)


def _remove_replaced(
    statements: StatementBatch, session: SessionDraft, event: Event, replaced: str, moment: int
) -> int | None:
    assert isinstance(event.data, BlockAdded)
    row = statements.first(_POSITION, (session.key, replaced, IN_WINDOW))
    if row is None:
        return None
    turn = event.context.turn
    statements.add(
        _REMOVE,
        (
            moment,
            turn,
            "replaced",
            "",
            None,
            event.data.block.id,
            session.turns,
            session.carried_price,
            session.key,
            replaced,
            IN_WINDOW,
        ),
    )
    return int(row[0] or 0)


def evict(statements: StatementBatch, session: SessionDraft, event: Event, seq: int) -> None:
    """Remove the blocks that a policy evicted; those that were never added have no row to change."""
    assert isinstance(event.data, BlocksEvicted)
    turn, key, memory = event.context.turn, session.key, session.memory
    memory.pending = {}
    for block in event.data.blocks:
        if block.replacement is not None:
            row = statements.first(_POSITION, (key, block.block_id, IN_WINDOW))
            memory.pending[block.replacement] = AT_THE_END if row is None else int(row[0] or 0)
    for block in event.data.blocks:
        statements.add(
            _REMOVE,
            (
                seq,
                turn,
                "eviction",
                block.reason,
                block.score,
                block.replacement,
                session.turns,
                session.carried_price,
                key,
                block.block_id,
                IN_WINDOW,
            ),
        )


def discard_reply(statements: StatementBatch, session: SessionDraft, event: Event, seq: int) -> None:
    """Remove the content of a reply that the agent did not send back."""
    assert isinstance(event.data, ReplyDiscarded)
    turn, reason = event.context.turn, "not sent back by the agent"
    for block_id in event.data.block_ids:
        statements.add(
            _REMOVE,
            (
                seq, turn, "discarded", reason, None, None, session.turns, session.carried_price, session.key,
                block_id, IN_WINDOW,
            ),
        )  # fmt: skip


def compress(statements: StatementBatch, session: SessionDraft, event: Event, seq: int) -> None:
    """Remove the blocks of an accepted compression and reserve the positions of its results."""
    data = event.data
    assert isinstance(data, ContentCompressed)
    turn, key, memory = event.context.turn, session.key, session.memory
    memory.pending = {}
    if data.results:
        memory.pending = _make_room(
            statements, session, data.results, _first_position(statements, key, data.removed)
        )
    replacement = data.results[0] if data.results else None
    for block_id in data.removed:
        statements.add(
            _REMOVE,
            (
                seq,
                turn,
                "compression",
                data.strategy,
                None,
                replacement,
                session.turns,
                session.carried_price,
                key,
                block_id,
                IN_WINDOW,
            ),
        )


def _first_position(statements: StatementBatch, session: int, block_ids: Sequence[str]) -> int | None:
    """Return the first position of those blocks that are in the window; None without any."""
    positions: list[int] = []
    for start in range(0, len(block_ids), IDS_PER_STATEMENT):
        ids = block_ids[start : start + IDS_PER_STATEMENT]
        statement = f"{_FIRST_POSITION}({', '.join('?' * len(ids))})"
        row = statements.first(statement, (session, IN_WINDOW, *ids))
        if row is not None and row[0] is not None:
            positions.append(int(row[0]))
    return min(positions, default=None)


def _make_room(
    statements: StatementBatch, session: SessionDraft, results: tuple[str, ...], position: int | None
) -> dict[str, int]:
    """Return the position of each result, consecutive from *position* on; the blocks behind are moved."""
    if position is None:
        return dict.fromkeys(results, AT_THE_END)
    more = len(results) - 1
    if more:
        statements.add(_MOVE_BACK, (more, session.key, position))
        session.memory.next_position += more
    return {block_id: position + offset for offset, block_id in enumerate(results)}


def roll(statements: StatementBatch, session: SessionDraft, event: Event, seq: int, reason: str) -> None:
    """Remove every block: the session continued in a new window."""
    session.memory.pending = {}
    calls = (session.turns, session.carried_price)
    statements.add(_REMOVE_ALL, (seq, event.context.turn, reason, *calls, session.key, IN_WINDOW))


def refer(statements: StatementBatch, session: SessionDraft, event: Event) -> None:
    """Count a reference to each of the blocks."""
    assert isinstance(event.data, BlocksReferenced)
    for block_id in event.data.block_ids:
        statements.defer(_REFER, (event.context.turn, session.key, block_id))


def regret(statements: StatementBatch, session: SessionDraft, block_id: str, turn: int) -> None:
    """Record the first turn in which a removed block was needed again."""
    statements.defer(_REGRET, (turn, session.key, block_id))


# -- reading --------------------------------------------------------------------------------------------------

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


_event_decoder: Final = msgspec.json.Decoder(_BlockEvent)


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
