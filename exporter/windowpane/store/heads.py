"""The store-wide chain: how far each session's chain had come, and which sessions are gone.

An entry is added when a session ends, when a revision takes its place, when retention deletes it, and for every
session that moved since when the heads are exported. Kept outside the store, an export is what shows a cut tail
or a deleted session: inside, whoever can write the file can cut this chain as well.
"""

from __future__ import annotations

import sqlite3
from dataclasses import asdict, dataclass
from typing import Final, Literal

import msgspec

from windowpane.store.chain import ORIGIN, key_id, link_with

HeadKind = Literal["head", "revised", "pruned"]

_LAST: Final = "SELECT id, hash FROM heads ORDER BY id DESC LIMIT 1"
_INSERT: Final = "INSERT INTO heads VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ALL: Final = (
    "SELECT id, kind, session_id, revision, events, head, keyed_by, at, signed_by, hash FROM heads ORDER BY id"
)
_MOVED: Final = """
    SELECT s.session_id, s.revision, s.events, s.head_hash, s.keyed_by FROM sessions AS s
    WHERE NOT EXISTS (
        SELECT 1 FROM heads AS h
        WHERE h.session_id = s.session_id AND h.revision = s.revision AND h.events = s.events
    ) ORDER BY s.key"""


@dataclass(frozen=True, slots=True)
class Head:
    """One entry of the store-wide chain."""

    id: int
    kind: HeadKind
    session_id: str
    revision: int
    events: int
    """How many events the session's chain had."""
    head: str
    """Hexadecimal hash of the last of them."""
    keyed_by: str
    """Key id of the session's chain; empty for none."""
    at: float
    signed_by: str
    """Key id of this entry; empty for none."""
    hash: str
    """Hexadecimal hash of this entry, chained to the one before it."""

    def body(self) -> bytes:
        """What is hashed."""
        return _body(
            self.id, self.kind, self.session_id, self.revision, self.events, self.head, self.keyed_by, self.at,
            self.signed_by,
        )  # fmt: skip

    def document(self) -> dict[str, object]:
        """The entry as plain JSON types."""
        return asdict(self)


def _body(*values: object) -> bytes:
    return msgspec.json.encode(values)


def add(
    connection: sqlite3.Connection,
    kind: HeadKind,
    *,
    session_id: str,
    revision: int,
    events: int,
    head: bytes,
    keyed_by: str,
    key: bytes | None,
    at: float,
) -> None:
    """Chain one more entry, inside the caller's transaction."""
    last = connection.execute(_LAST).fetchone()
    entry_id, previous = (1, ORIGIN) if last is None else (last[0] + 1, last[1])
    signed_by = key_id(key)
    body = _body(entry_id, kind, session_id, revision, events, head.hex(), keyed_by, at, signed_by)
    connection.execute(
        _INSERT,
        (
            entry_id, kind, session_id, revision, events, head, keyed_by, at, signed_by,
            link_with(key)(previous, body),
        ),
    )  # fmt: skip


def add_moved(connection: sqlite3.Connection, *, key: bytes | None, at: float) -> None:
    """Chain an entry for every session that has moved since its last one."""
    for session_id, revision, events, head, keyed_by in connection.execute(_MOVED).fetchall():
        add(
            connection, "head", session_id=session_id, revision=revision, events=events, head=head,
            keyed_by=keyed_by, key=key, at=at,
        )  # fmt: skip


def read(connection: sqlite3.Connection) -> list[Head]:
    """Every entry, in order."""
    return [
        Head(
            entry_id, kind, session_id, revision, events, head.hex(), keyed_by, at, signed_by, entry_hash.hex()
        )
        for entry_id, kind, session_id, revision, events, head, keyed_by, at, signed_by, entry_hash
        in connection.execute(_ALL)
    ]  # fmt: skip


def last_revision(connection: sqlite3.Connection, session_id: str) -> int:
    """The highest revision of a session that this chain mentions; 0 when it mentions none."""
    found = connection.execute("SELECT max(revision) FROM heads WHERE session_id = ?", (session_id,)).fetchone()
    return int(found[0] or 0)


def pruned_events(connection: sqlite3.Connection, session_id: str) -> int:
    """How many events a session had when retention deleted it last; 0 when it never did."""
    found = connection.execute(
        "SELECT events FROM heads WHERE session_id = ? AND kind = 'pruned' ORDER BY id DESC LIMIT 1",
        (session_id,),
    ).fetchone()
    return 0 if found is None else int(found[0])
