"""The rows of `blocks` that a batch changes: in memory for a new session, by statements for a stored one.

A session whose first event is in the batch has no rows yet, so its blocks are changed in memory and stored once.
Of a stored session the rows may be many and are changed where they are. Both give the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Final, NamedTuple, Protocol

import msgspec

from windowpane.store.projections.session_drafts import SessionDraft
from windowpane.store.statements import END, StatementBatch, in_lists, placeholders

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

    def add(self, block: BlockDraft) -> None:
        """Add a block, unless its id has a row."""
        self._statements.add(_INSERT_ADDED, _added_row(block))

    def position(self, block_id: str) -> int | None:
        """Return the position of a block; None where it is not in the window."""
        row = self._statements.first(_POSITION, (self._session, block_id, IN_WINDOW))
        return None if row is None else int(row[0] or 0)

    def first_position(self, block_ids: Sequence[str]) -> int | None:
        """Return the first position of those blocks that are in the window; None without any."""
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
        self._statements.add(_REMOVE, (*removal, self._session, block_id, IN_WINDOW))

    def remove_all(self, removal: Removal) -> None:
        """Remove every block from the window."""
        self._statements.add(_REMOVE_ALL, (*removal, self._session, IN_WINDOW))

    def move_back(self, position: int, by: int) -> None:
        """Increase the positions behind *position*."""
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
        """Store the blocks of the new sessions."""
        for blocks in self._new.values():
            blocks.save()
        self._new.clear()
