"""The life of one block: its addition, its uses, its removal and replacement, and what fetched it again.

Everything is read from the events; the rows of `blocks` hold their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from windowpane.core.codec import decode
from windowpane.core.events import (
    BlocksEvicted,
    BlocksReferenced,
    Candidate,
    ContentCompressed,
    ContentRegretted,
    EvictedBlock,
)
from windowpane.exceptions import EventFormatError
from windowpane.store.database import Database
from windowpane.store.reads import blocks
from windowpane.store.records import BlockRow

MAXIMUM_USES: Final = 200
"""Uses listed for one block, the first ones."""

_REMOVED_BY: Final = "SELECT left_seq FROM blocks WHERE session = ? AND block_id = ?"
_EVENT: Final = "SELECT turn, at, body FROM events WHERE session = ? AND seq = ?"
_ADDED_AT: Final = (
    "SELECT at FROM events WHERE seq = (SELECT event_seq FROM blocks WHERE session = ? AND block_id = ?)"
)
_MENTIONS: Final = """
    SELECT turn, at, body FROM events{by_type}
    WHERE session = ? AND type = (SELECT id FROM event_types WHERE name = ?) AND {mentions}
    ORDER BY seq LIMIT ?"""


@dataclass(frozen=True, slots=True)
class BlockUse:
    """Later content that used something only this block holds, or fetched it again."""

    turn: int
    at: float | None
    by: str
    """Id of the block with that content."""
    block: BlockRow | None
    """That block; None where it is not recorded."""


@dataclass(frozen=True, slots=True)
class BlockRemoval:
    """The removal of a block: by what, why, and against which candidates."""

    turn: int
    at: float | None
    kind: str
    """`eviction`, `compression`, `roll`, `replaced` or `discarded`."""
    policy: str
    """Policy of an eviction, strategy of a compression; else empty."""
    reason: str
    evicted: EvictedBlock | None = None
    """The policy's entry with the terms of the score, for an eviction."""
    removed_blocks: int = 1
    """Blocks removed together."""
    others: tuple[EvictedBlock, ...] = ()
    """Blocks of the same eviction, the lowest score first."""
    candidates: tuple[Candidate, ...] = ()
    """Blocks that could have been evicted instead, the lowest score first."""
    compression: ContentCompressed | None = None


@dataclass(frozen=True, slots=True)
class BlockLife:
    """One block from its addition to its removal and what followed."""

    block: BlockRow
    added_at: float | None
    called_by: BlockRow | None
    """The tool call that a tool result answers."""
    uses: tuple[BlockUse, ...]
    removal: BlockRemoval | None
    """None while the block is in the window."""
    replacement: BlockRow | None
    """The placeholder, summary or newer version in its place."""
    fetched_again: tuple[BlockUse, ...]
    """Regret: later content that fetched the same again."""


def read(connection: Database, session: int, block_id: str) -> BlockLife | None:
    """Return the life of a block; *session* is a row number. None for an unknown block."""
    rows = _Rows(connection, session)
    block = rows.block(block_id)
    if block is None:
        return None
    return BlockLife(
        block=block,
        added_at=_added_at(connection, session, block_id),
        called_by=rows.call_of(block),
        uses=tuple(rows.mentions("blocks.referenced", block_id, _uses)),
        removal=_removal(connection, session, block),
        replacement=None if block.replaced_by is None else rows.block(block.replaced_by),
        fetched_again=tuple(rows.mentions("content.regretted", block_id, _fetches_again)),
    )


def _uses(data: Any, block_id: str) -> str | None:
    return data.by if isinstance(data, BlocksReferenced) and block_id in data.block_ids else None


def _fetches_again(data: Any, block_id: str) -> str | None:
    return data.by if isinstance(data, ContentRegretted) and data.block_id == block_id else None


class _Rows:
    """Blocks of one session by id, each read once."""

    def __init__(self, connection: Database, session: int) -> None:
        self._connection = connection
        self._session = session
        self._blocks: dict[str, BlockRow | None] = {}

    def block(self, block_id: str) -> BlockRow | None:
        if block_id not in self._blocks:
            self._blocks[block_id] = blocks.one(self._connection, self._session, block_id)
        return self._blocks[block_id]

    def call_of(self, block: BlockRow) -> BlockRow | None:
        """Return the tool call of a tool result, which was added shortly before it."""
        if block.content_type != "tool_result" or block.tool_call_id is None:
            return None
        return blocks.tool_call(self._connection, self._session, block.block_id, block.tool_call_id)

    def mentions(self, kind: str, block_id: str, by: Callable[[Any, str], str | None]) -> Iterator[BlockUse]:
        """Yield the events of type *kind* about the block, each with the block that *by* returns."""
        needle = f'"{block_id}"'.encode()
        dialect = self._connection.dialect
        statement = _MENTIONS.format(by_type=dialect.by_index("events_type"), mentions=dialect.contains("body"))
        rows = self._connection.execute(statement, (self._session, kind, needle, MAXIMUM_USES)).fetchall()
        for turn, at, body in rows:
            try:
                source = by(decode(body).data, block_id)
            except EventFormatError:
                continue
            if source is not None:
                yield BlockUse(turn, at, source, self.block(source))


def _added_at(connection: Database, session: int, block_id: str) -> float | None:
    row = connection.execute(_ADDED_AT, (session, block_id)).fetchone()
    at: float | None = None if row is None else row[0]
    return at


def _removal(connection: Database, session: int, block: BlockRow) -> BlockRemoval | None:
    if block.turn_removed is None or block.removed_by is None:
        return None
    (seq,) = connection.execute(_REMOVED_BY, (session, block.block_id)).fetchone()
    row = connection.execute(_EVENT, (session, seq)).fetchone()
    plain = BlockRemoval(block.turn_removed, None if row is None else row[1], block.removed_by, "", block.reason)
    try:
        data = None if row is None else decode(row[2]).data
    except EventFormatError:
        return plain
    if isinstance(data, BlocksEvicted):
        return _eviction(plain, data, block.block_id)
    if isinstance(data, ContentCompressed):
        return BlockRemoval(
            plain.turn, plain.at, plain.kind, data.strategy, data.reason, removed_blocks=len(data.removed),
            compression=data,
        )  # fmt: skip
    return plain


def _eviction(plain: BlockRemoval, data: BlocksEvicted, block_id: str) -> BlockRemoval:
    evicted = next((one for one in data.blocks if one.block_id == block_id), None)
    others = sorted(
        (one for one in data.blocks if one.block_id != block_id),
        key=lambda one: 2.0 if one.score is None else one.score,
    )
    return BlockRemoval(
        plain.turn, plain.at, plain.kind, data.policy, plain.reason, evicted, len(data.blocks), tuple(others),
        data.candidates,
    )  # fmt: skip
