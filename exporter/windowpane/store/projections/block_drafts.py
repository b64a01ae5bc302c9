"""The rows of `blocks`: which event added a block, its position, when and why it was removed.

Moments are event numbers: a block is in the window at moment m when `entered_seq <= m < left_seq`. Positions
follow `core.window.window.Window`: an appended block gets the next one, a replacement the first of those it
replaces.

A session whose first event is in the batch has no rows yet, so its blocks are changed in memory and stored once.
Of a stored session the rows may be many and are changed where they are. Both give the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Final, NamedTuple, Protocol

import msgspec

from windowpane.core.events import BlocksEvicted, BlocksReferenced, ContentCompressed
from windowpane.core.vocabulary import ContentType
from windowpane.core.window.blocks import Block
from windowpane.store.projections.session_drafts import SessionDraft
from windowpane.store.statements import END, StatementBatch, Value, in_lists, placeholders

AT_THE_END: Final = -1
NAMED_TYPES: Final[frozenset[ContentType]] = frozenset(
    {"tool_call", "tool_result", "placeholder", "tool_definition", "memory_injection"}
)
"""Types of content that belong to a tool, a skill or a memory file."""

IN_WINDOW: Final = END
"""`left_seq` of a block that is in the window, or `removed_seq` of its draft."""
IDS_PER_STATEMENT: Final = 200


class BlockDraft(msgspec.Struct, gc=False):
    """One row of `blocks` as the writer changes it."""

    session: int
    """The session's row number."""
    block_id: str
    event_seq: int
    entered_seq: int
    position: int
    tool: str | None
    target: str | None
    tokens: int
    calls_in: int
    price_in: int
    content_type: ContentType
    removed_seq: int = IN_WINDOW
    turn_removed: int | None = None
    removed_by: str | None = None
    reason: str | None = None
    score: float | None = None
    replaced_by: str | None = None
    calls_out: int | None = None
    price_out: int | None = None
    last_referenced: int | None = None
    references: int = 0
    regretted_turn: int | None = None


class Removal(NamedTuple):
    """The columns that a removal sets, in the order of the statements."""

    removed_seq: int
    turn_removed: int
    removed_by: str
    reason: str
    score: float | None
    replaced_by: str | None
    calls_out: int
    price_out: int


_COLUMNS: Final = BlockDraft.__struct_fields__
_IN_SQL: Final = {"removed_seq": "left_seq", "references": '"references"'}
"""Columns that have another name in statements."""
_AT_ADDITION: Final = _COLUMNS[: _COLUMNS.index("removed_seq") + 1]
"""The columns that differ between blocks which were only added: most of them."""


def _insert(columns: Sequence[str]) -> str:
    names = ", ".join(_IN_SQL.get(name, name) for name in columns)
    return f"INSERT INTO blocks ({names}) VALUES ({placeholders(columns)}) ON CONFLICT DO NOTHING"  # noqa: S608


_INSERT: Final = _insert(_COLUMNS)
_INSERT_ADDED: Final = _insert(_AT_ADDITION)
_POSITION: Final = "SELECT position FROM blocks WHERE session = ? AND block_id = ? AND left_seq = ?"
_FIRST_POSITION: Final = "SELECT min(position) FROM blocks WHERE session = ? AND left_seq = ? AND block_id IN "
_SET: Final = ", ".join(f"{_IN_SQL.get(name, name)} = ?" for name in Removal._fields)
_REMOVE: Final = f"UPDATE blocks SET {_SET} WHERE session = ? AND block_id = ? AND left_seq = ?"  # noqa: S608
_REMOVE_ALL: Final = f"UPDATE blocks SET {_SET} WHERE session = ? AND left_seq = ?"  # noqa: S608  # our columns
_MOVE_BACK: Final = "UPDATE blocks SET position = position + ? WHERE session = ? AND position > ?"
_REFER: Final = (
    'UPDATE blocks SET last_referenced = ?, "references" = "references" + 1 '
    "WHERE session = ? AND block_id = ? AND event_seq < ?"
)
_REGRET: Final = (
    "UPDATE blocks SET regretted_turn = coalesce(regretted_turn, ?) "
    "WHERE session = ? AND block_id = ? AND event_seq < ?"
)
"""These two run at the end of a batch, and skip a block that was added after the event."""
_row: Final = attrgetter(*_COLUMNS)
_added_row: Final = attrgetter(*_AT_ADDITION)


class SessionBlocks(Protocol):
    """The blocks of one session; an id that has no row is skipped."""

    def add(self, block: BlockDraft) -> None:
        """Add a block, unless its id has a row."""
        ...

    def position(self, block_id: str) -> int | None:
        """Return the position of a block; None where it is not in the window."""
        ...

    def first_position(self, block_ids: Sequence[str]) -> int | None:
        """Return the first position of those blocks that are in the window; None without any."""
        ...

    def remove(self, block_id: str, removal: Removal) -> None:
        """Remove a block from the window."""
        ...

    def remove_all(self, removal: Removal) -> None:
        """Remove every block from the window."""
        ...

    def move_back(self, position: int, by: int) -> None:
        """Increase the positions behind *position*.

        Removed blocks move as well, so that the order at any earlier turn stays the same.
        """
        ...

    def refer(self, block_id: str, turn: int, seq: int) -> None:
        """Count a reference to a block."""
        ...

    def regret(self, block_id: str, turn: int, seq: int) -> None:
        """Record the first turn in which a removed block was needed again."""
        ...


class NewBlocks:
    """The blocks of a session that has no rows yet, by id."""

    def __init__(self, statements: StatementBatch) -> None:
        self._statements = statements
        self._blocks: dict[str, BlockDraft] = {}

    def add(self, block: BlockDraft) -> None:
        """Add a block, unless its id has a row."""
        self._blocks.setdefault(block.block_id, block)

    def position(self, block_id: str) -> int | None:
        """Return the position of a block; None where it is not in the window."""
        block = self._blocks.get(block_id)
        return None if block is None or block.removed_seq != IN_WINDOW else block.position

    def first_position(self, block_ids: Sequence[str]) -> int | None:
        """Return the first position of those blocks that are in the window; None without any."""
        positions = (self.position(block_id) for block_id in block_ids)
        return min((position for position in positions if position is not None), default=None)

    def remove(self, block_id: str, removal: Removal) -> None:
        """Remove a block from the window."""
        block = self._blocks.get(block_id)
        if block is not None and block.removed_seq == IN_WINDOW:
            _remove(block, removal)

    def remove_all(self, removal: Removal) -> None:
        """Remove every block from the window."""
        for block in self._blocks.values():
            if block.removed_seq == IN_WINDOW:
                _remove(block, removal)

    def move_back(self, position: int, by: int) -> None:
        """Increase the positions behind *position*."""
        for block in self._blocks.values():
            if block.position > position:
                block.position += by

    def refer(self, block_id: str, turn: int, seq: int) -> None:  # noqa: ARG002  # run in order
        """Count a reference to a block."""
        block = self._blocks.get(block_id)
        if block is not None:
            block.last_referenced = turn
            block.references += 1

    def regret(self, block_id: str, turn: int, seq: int) -> None:  # noqa: ARG002  # run in order
        """Record the first turn in which a removed block was needed again."""
        block = self._blocks.get(block_id)
        if block is not None and block.regretted_turn is None:
            block.regretted_turn = turn

    def save(self) -> None:
        """Store the rows."""
        changed = []
        for block in self._blocks.values():
            if block.removed_seq == IN_WINDOW and not block.references and block.regretted_turn is None:
                self._statements.add(_INSERT_ADDED, _added_row(block))
            else:
                changed.append(_row(block))
        for row in changed:
            self._statements.add(_INSERT, row)


def _remove(block: BlockDraft, removal: Removal) -> None:
    (
        block.removed_seq, block.turn_removed, block.removed_by, block.reason, block.score, block.replaced_by,
        block.calls_out, block.price_out,
    ) = removal  # fmt: skip


class StoredBlocks:
    """The rows of a stored session, changed by statements in the order of its events."""

    def __init__(self, statements: StatementBatch, session: int) -> None:
        self._statements = statements
        self._session = session
        self._added: list[tuple[Value, ...]] = []
        """Rows of the blocks that were added since the last other change."""

    def add(self, block: BlockDraft) -> None:
        """Add a block, unless its id has a row."""
        self._added.append(_added_row(block))

    def save(self) -> None:
        """Store the added blocks."""
        if self._added:
            rows, self._added = self._added, []
            self._statements.add_all(_INSERT_ADDED, rows)

    def position(self, block_id: str) -> int | None:
        """Return the position of a block; None where it is not in the window."""
        self.save()
        row = self._statements.first(_POSITION, (self._session, block_id, IN_WINDOW))
        return None if row is None else int(row[0] or 0)

    def first_position(self, block_ids: Sequence[str]) -> int | None:
        """Return the first position of those blocks that are in the window; None without any."""
        self.save()
        positions: list[int] = []
        for ids in in_lists(block_ids, IDS_PER_STATEMENT):
            row = self._statements.first(
                f"{_FIRST_POSITION}({placeholders(ids)})", (self._session, IN_WINDOW, *ids)
            )
            if row is not None and row[0] is not None:
                positions.append(int(row[0]))
        return min(positions, default=None)

    def remove(self, block_id: str, removal: Removal) -> None:
        """Remove a block from the window."""
        self.save()
        self._statements.add(_REMOVE, (*removal, self._session, block_id, IN_WINDOW))

    def remove_all(self, removal: Removal) -> None:
        """Remove every block from the window."""
        self.save()
        self._statements.add(_REMOVE_ALL, (*removal, self._session, IN_WINDOW))

    def move_back(self, position: int, by: int) -> None:
        """Increase the positions behind *position*."""
        self.save()
        self._statements.add(_MOVE_BACK, (by, self._session, position))

    def refer(self, block_id: str, turn: int, seq: int) -> None:
        """Count a reference to a block."""
        self._statements.defer(_REFER, (turn, self._session, block_id, seq))

    def regret(self, block_id: str, turn: int, seq: int) -> None:
        """Record the first turn in which a removed block was needed again."""
        self._statements.defer(_REGRET, (turn, self._session, block_id, seq))


class BlockDrafts:
    """The blocks that a batch touches, by session."""

    def __init__(self, statements: StatementBatch) -> None:
        self._statements = statements
        self._new: dict[int, NewBlocks] = {}
        self._stored: dict[int, StoredBlocks] = {}

    def of(self, session: SessionDraft) -> SessionBlocks:
        """Return the blocks of a session."""
        key = session.key
        if session.is_new:
            return self._new.get(key) or self._new.setdefault(key, NewBlocks(self._statements))
        return self._stored.get(key) or self._stored.setdefault(key, StoredBlocks(self._statements, key))

    def save(self) -> None:
        """Store the blocks."""
        for new in self._new.values():
            new.save()
        for stored in self._stored.values():
            stored.save()
        self._new.clear()


# -- changes by events ----------------------------------------------------------------------------------------


def is_appended(session: SessionDraft, block: Block) -> bool:
    """Return whether a block is added at the end of the window, not in the position of others."""
    return (
        block.replaces is None and block.content_type != "unattributed" and block.id not in session.memory.pending
    )


def append(blocks: SessionBlocks, session: SessionDraft, block: Block, seq: int) -> None:
    """Add a block at the end of the window."""
    memory = session.memory
    position = memory.next_position
    memory.next_position = position + 1
    blocks.add(_draft(session, block, seq, seq, position))


def _draft(session: SessionDraft, block: Block, seq: int, entered: int, position: int) -> BlockDraft:
    """Return the row of a block, with its names, and the calls so far with their price per token."""
    is_named = block.content_type in NAMED_TYPES
    return BlockDraft(
        session.key, block.id, seq, entered, position, block.tool_name if is_named else None,
        block.target if is_named else None, block.tokens, session.turns, session.carried_price,
        block.content_type,
    )  # fmt: skip


def _removal(
    session: SessionDraft,
    moment: int,
    turn: int,
    by: str,
    reason: str,
    *,
    score: float | None = None,
    replacement: str | None = None,
) -> Removal:
    return Removal(moment, turn, by, reason, score, replacement, session.turns, session.carried_price)


def replace_others(
    blocks: SessionBlocks, session: SessionDraft, block: Block, turn: int, seq: int, *, call_seq: int | None
) -> None:
    """Add a block in the position of others. *call_seq* is the moment of the turn's call, once it was made.

    The unattributed block is known when the call returns but was part of it, so it counts from the call on.
    """
    memory = session.memory
    unattributed = block.content_type == "unattributed"
    entered = call_seq if unattributed and call_seq is not None else seq
    position = memory.pending.pop(block.id, None)
    if position is None and block.replaces is not None:
        position = blocks.position(block.replaces)
        if position is not None:
            removal = _removal(session, entered, turn, "replaced", "", replacement=block.id)
            blocks.remove(block.replaces, removal)
    if unattributed and not block.tokens:
        return  # the provider's total no longer exceeds the visible content
    if position is None or position == AT_THE_END:
        position, memory.next_position = memory.next_position, memory.next_position + 1
    blocks.add(_draft(session, block, seq, entered, position))


def evict(blocks: SessionBlocks, session: SessionDraft, data: BlocksEvicted, turn: int, seq: int) -> None:
    """Remove the blocks that a policy evicted; those that were never added have no row to change."""
    memory = session.memory
    memory.pending = {}
    for block in data.blocks:
        if block.replacement is not None:
            position = blocks.position(block.block_id)
            memory.pending[block.replacement] = AT_THE_END if position is None else position
    for block in data.blocks:
        removal = _removal(
            session, seq, turn, "eviction", block.reason, score=block.score, replacement=block.replacement
        )
        blocks.remove(block.block_id, removal)


def discard(
    blocks: SessionBlocks, session: SessionDraft, block_ids: Sequence[str], turn: int, seq: int, *, reason: str
) -> None:
    """Remove content that was not evicted, which the agent does not send any more."""
    removal = _removal(session, seq, turn, "discarded", reason)
    for block_id in block_ids:
        blocks.remove(block_id, removal)


def compress(blocks: SessionBlocks, session: SessionDraft, data: ContentCompressed, turn: int, seq: int) -> None:
    """Remove the blocks of an accepted compression and reserve the positions of its results."""
    session.memory.pending = {}
    if data.results:
        session.memory.pending = _make_room(blocks, session, data.results, blocks.first_position(data.removed))
    replacement = data.results[0] if data.results else None
    removal = _removal(session, seq, turn, "compression", data.strategy, replacement=replacement)
    for block_id in data.removed:
        blocks.remove(block_id, removal)


def _make_room(
    blocks: SessionBlocks, session: SessionDraft, results: tuple[str, ...], position: int | None
) -> dict[str, int]:
    """Return the position of each result, consecutive from *position* on; the blocks behind are moved."""
    if position is None:
        return dict.fromkeys(results, AT_THE_END)
    more = len(results) - 1
    if more:
        blocks.move_back(position, more)
        session.memory.next_position += more
    return {block_id: position + offset for offset, block_id in enumerate(results)}


def roll(blocks: SessionBlocks, session: SessionDraft, turn: int, seq: int, reason: str) -> None:
    """Remove every block: the session continued in a new window."""
    session.memory.pending = {}
    blocks.remove_all(_removal(session, seq, turn, "roll", reason))


def refer(blocks: SessionBlocks, data: BlocksReferenced, turn: int, seq: int) -> None:
    """Count a reference to each of the blocks."""
    for block_id in data.block_ids:
        blocks.refer(block_id, turn, seq)
