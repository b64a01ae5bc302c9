"""The two hash chains: each session's events, and the store-wide chain of how far each session had come.

An event's hash is HMAC-SHA-256(key, previous hash || body), or plain SHA-256 without a key, over the exact stored
bytes. The first event of a session follows a digest of the session's id and revision, so one session's chain
cannot be presented as another's. Without a key the chain detects accidents only: anyone who can write the file
can also compute it again.

The store-wide chain gets an entry when a session ends, when a new revision replaces it, when retention deletes
it, when another key takes it over, and for every session that has grown when the heads are exported. Only an
export kept outside the store detects a cut tail or a restored older copy: anyone who can write the file can cut
this chain as well.

The first entry of a store that is recorded with a key from the start is `keyed`. A store that already holds
something gets one only where its owner accepts what was recorded without a key: the heads of these chains are
signed as they are then. After it, a link without a key is a broken one. Nothing is accepted by itself: the next
write would sign a history that was rewritten and lost its signatures.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Final, Literal, NamedTuple

import msgspec

from windowpane.exceptions import StoreError
from windowpane.store.database import Database
from windowpane.store.keys import UNKEYED, key_id, link_with
from windowpane.store.records import Accepted
from windowpane.store.statements import in_lists, placeholders

ORIGIN: Final = b"\0" * 32
"""The previous hash of the first entry of the store-wide chain."""
IDS_PER_STATEMENT: Final = 200

HeadKind = Literal["head", "revised", "pruned", "keyed", "rekeyed"]
"""`head`: how far a session had come; `revised`: its last state before another revision replaced it; `pruned`:
its last state before retention deleted it; `rekeyed`: its state when another key took over; `keyed`: the store
has a key from here on, and accepts what it holds without one as it is now."""

_COLUMNS: Final = "id, kind, session_id, revision, events, head, keyed_by, at, signed_by, hash"
_LAST: Final = "SELECT id, hash FROM heads ORDER BY id DESC LIMIT 1"
_INSERT: Final = f"INSERT INTO heads ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608  # our columns
_ALL: Final = f"SELECT {_COLUMNS} FROM heads ORDER BY id"  # noqa: S608  # our columns
_SIGNED: Final = "SELECT 1 FROM heads WHERE signed_by <> '' ORDER BY id DESC LIMIT 1"
_KEYED: Final = "SELECT 1 FROM sessions WHERE keyed_by <> '' LIMIT 1"
_UNKEYED: Final = """SELECT CAST(coalesce(sum(events), 0) AS BIGINT) FROM (
    SELECT events FROM sessions WHERE keyed_by = ''
    UNION ALL SELECT h.events FROM heads AS h JOIN sessions AS s ON s.session_id = h.session_id
        AND s.revision = h.revision WHERE h.kind = 'rekeyed' AND h.keyed_by = ''
) AS unkeyed"""
"""Events without a signature, those before a key took a chain over included."""
_ACCEPTED: Final = "SELECT 1 FROM heads WHERE kind = 'keyed' ORDER BY id LIMIT 1"
_UNSIGNED: Final = """SELECT EXISTS (SELECT 1 FROM sessions WHERE keyed_by = '')
    OR EXISTS (SELECT 1 FROM heads WHERE signed_by = '')"""
_FILLED: Final = "SELECT EXISTS (SELECT 1 FROM events) OR EXISTS (SELECT 1 FROM heads)"
ACCEPT: Final = "if they are yours, accept them with `windowpane audit accept`"
"""Advice about what was recorded without a key."""
_GROWN: Final = """
    SELECT s.session_id, s.revision, s.events, s.head_hash, s.keyed_by FROM sessions AS s
    WHERE NOT EXISTS (
        SELECT 1 FROM heads AS h
        WHERE h.session_id = s.session_id AND h.revision = s.revision AND h.events = s.events
    ) ORDER BY s.key"""


def genesis(session_id: str, revision: int) -> bytes:
    """Return the previous hash of the first event of a session's revision."""
    return sha256(f"windowpane session\0{session_id}\0{revision}".encode()).digest()


@dataclass(frozen=True, slots=True)
class Head:
    """One entry of the store-wide chain."""

    id: int
    kind: HeadKind
    session_id: str
    revision: int
    events: int
    """Length of the session's chain."""
    head: str
    """Hexadecimal hash of its last event."""
    keyed_by: str
    """Key id of the session's chain; empty for none."""
    at: float
    signed_by: str
    """Key id of this entry; empty for none."""
    hash: str
    """Hexadecimal hash of this entry, chained to the one before it."""

    def body(self) -> bytes:
        """Return the bytes that are hashed."""
        return msgspec.json.encode([value for name, value in self.document().items() if name != "hash"])

    def document(self) -> dict[str, object]:
        """Return the entry as plain JSON types."""
        return asdict(self)


class NewHead(NamedTuple):
    """The part of an entry of the store-wide chain that is about its session."""

    session_id: str
    revision: int
    events: int
    head: bytes
    keyed_by: str


def add_heads(
    connection: Database, kind: HeadKind, heads: Iterable[NewHead], *, key: bytes | None, at: float
) -> None:
    """Chain further entries, inside the caller's transaction."""
    last = connection.execute(_LAST).fetchone()
    entry_id, previous = (0, ORIGIN) if last is None else last
    signed_by, link = key_id(key), link_with(key)
    rows = []
    for new in heads:
        entry_id += 1
        session_id, revision, events, head, keyed_by = new
        entry = Head(entry_id, kind, session_id, revision, events, head.hex(), keyed_by, at, signed_by, "")
        previous = link(previous, entry.body())
        rows.append((entry_id, kind, *new, at, signed_by, previous))
    connection.executemany(_INSERT, rows)


def add_grown_heads(connection: Database, *, key: bytes | None, at: float) -> None:
    """Chain an entry for every session that has grown since its last one. Raises `StoreError` without the key."""
    grown = connection.execute(_GROWN).fetchall()
    if grown:
        check_signer(connection, key=key, purpose="adding heads to it")
    add_heads(connection, "head", [NewHead(*row) for row in grown], key=key, at=at)


def has_signatures(connection: Database) -> bool:
    """Return whether any link of the store was ever made with a key."""
    return any(connection.execute(query).fetchone() for query in (_SIGNED, _KEYED))


def check_signer(connection: Database, *, key: bytes | None, purpose: str) -> None:
    """Raise `StoreError` where an entry would be unsigned in a store that has a key, and so a broken link."""
    if key is None and has_signatures(connection):
        raise StoreError(
            f"the store's audit chain uses a key and this process has none, so {purpose} would break the chain; "
            "set WINDOWPANE_AUDIT_KEY_FILE to the file of the key"
        )


def is_empty(connection: Database) -> bool:
    """Return whether nothing was recorded yet."""
    return not connection.execute(_FILLED).fetchone()[0]


def is_unaccepted(connection: Database) -> bool:
    """Return whether the store holds anything without a signature, and nothing was ever accepted."""
    if connection.execute(_ACCEPTED).fetchone() is not None:
        return False
    return bool(connection.execute(_UNSIGNED).fetchone()[0])


def accept_unkeyed(connection: Database, *, key: bytes, at: float) -> Accepted:
    """Sign for everything that is recorded without a key, as it is now; inside the caller's transaction."""
    add_grown_heads(connection, key=key, at=at)
    (events,) = connection.execute(_UNKEYED).fetchone()
    add_heads(connection, "keyed", [NewHead("", 0, events, b"", UNKEYED)], key=key, at=at)
    return Accepted(at, key_id(key), events)


def read_heads(connection: Database) -> list[Head]:
    """Return every entry, in order."""
    return [
        Head(
            entry_id, kind, session_id, revision, events, _hex(head), keyed_by, at, signed_by, _hex(entry_hash)
        )
        for entry_id, kind, session_id, revision, events, head, keyed_by, at, signed_by, entry_hash
        in connection.execute(_ALL)
    ]  # fmt: skip


def _hex(value: object) -> str:
    """Return a hash as digits; any other value, which SQLite stores as well, as a text that no hash has."""
    return value.hex() if isinstance(value, bytes) else f"not a hash: {value!r}"


def last_revisions(connection: Database, session_ids: Sequence[str]) -> dict[str, int]:
    """Return the highest revision of those sessions that are in the store-wide chain."""
    revisions: dict[str, int] = {}
    for ids in in_lists(session_ids, IDS_PER_STATEMENT):
        sql = f"SELECT session_id, max(revision) FROM heads WHERE session_id IN ({placeholders(ids)}) "  # noqa: S608
        revisions.update(connection.execute(sql + "GROUP BY session_id", ids).fetchall())
    return revisions


def pruned_events(connection: Database, session_id: str) -> int:
    """Return how many events a session had when retention last deleted it; 0 if it never did."""
    row = connection.execute(
        "SELECT events FROM heads WHERE session_id = ? AND kind = 'pruned' ORDER BY id DESC LIMIT 1",
        (session_id,),
    ).fetchone()
    return 0 if row is None else int(row[0])
