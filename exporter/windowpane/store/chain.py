"""The two hash chains: each session's events, and the store-wide chain of how far each session had come.

An event's hash is HMAC-SHA-256(key, previous hash || body), or plain SHA-256 without a key, over the exact stored
bytes. The first event of a session follows a digest of the session's id and revision, so one session's chain
cannot be presented as another's. Without a key the chain detects accidents only: anyone who can write the file
can also compute it again.

The store-wide chain gets an entry when a session ends, when a new revision replaces it, when retention deletes
it, and for every session that has grown when the heads are exported. Only an export kept outside the store
detects a cut tail or a deleted session: anyone who can write the file can cut this chain as well.
"""

from __future__ import annotations

import hmac
import os
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal

import msgspec

from windowpane.exceptions import ConfigurationError

KEY_VARIABLE: Final = "WINDOWPANE_AUDIT_KEY"
KEY_FILE_VARIABLE: Final = "WINDOWPANE_AUDIT_KEY_FILE"
MINIMUM_KEY_BYTES: Final = 16
UNKEYED: Final = ""
"""The key id of a chain without a key."""
ORIGIN: Final = b"\0" * 32
"""The previous hash of the first entry of the store-wide chain."""

Link = Callable[[bytes, bytes], bytes]
"""Previous hash and body to the next hash."""
HeadKind = Literal["head", "revised", "pruned"]

_COLUMNS: Final = "id, kind, session_id, revision, events, head, keyed_by, at, signed_by, hash"
_LAST: Final = "SELECT id, hash FROM heads ORDER BY id DESC LIMIT 1"
_INSERT: Final = "INSERT INTO heads VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ALL: Final = f"SELECT {_COLUMNS} FROM heads ORDER BY id"  # noqa: S608  # our columns
_GROWN: Final = """
    SELECT s.session_id, s.revision, s.events, s.head_hash, s.keyed_by FROM sessions AS s
    WHERE NOT EXISTS (
        SELECT 1 FROM heads AS h
        WHERE h.session_id = s.session_id AND h.revision = s.revision AND h.events = s.events
    ) ORDER BY s.key"""


# -- keys and hashes ------------------------------------------------------------------------------------------


def load_key(environment: Mapping[str, str] = os.environ) -> bytes | None:
    """Return the key the environment names, or None. Raises `ConfigurationError` when it cannot be used."""
    given = environment.get(KEY_VARIABLE)
    if given:
        return checked_key(given.encode(), KEY_VARIABLE)
    file = environment.get(KEY_FILE_VARIABLE)
    return key_in(Path(file) if file else None, KEY_FILE_VARIABLE)


def key_in(file: Path | None, where: str) -> bytes | None:
    """Return the key that *file* holds, None without a file. Raises `ConfigurationError` naming *where*."""
    if file is None:
        return None
    try:
        return checked_key(file.read_bytes().strip(), where)
    except OSError as error:
        problem = f"cannot read {file} ({error.strerror})"
        raise ConfigurationError(where, problem, expected="a readable file") from error


def checked_key(key: bytes, where: str = "audit_key") -> bytes:
    """Return *key* if it is long enough. Raises `ConfigurationError` naming *where*."""
    if len(key) < MINIMUM_KEY_BYTES:
        raise ConfigurationError(where, f"has {len(key)} bytes", expected=f"at least {MINIMUM_KEY_BYTES}")
    return key


def key_id(key: bytes | None) -> str:
    """Return a short name of a key that does not reveal it; empty for None."""
    return UNKEYED if key is None else hmac.digest(key, b"windowpane audit key", "sha256")[:8].hex()


def link_with(key: bytes | None) -> Link:
    """Return the function that chains one more body."""
    if key is None:
        return _plain
    return lambda previous, body: hmac.digest(key, previous + body, "sha256")


def _plain(previous: bytes, body: bytes) -> bytes:
    return sha256(previous + body).digest()


def genesis(session_id: str, revision: int) -> bytes:
    """Return the previous hash of the first event of a session's revision."""
    return sha256(f"windowpane session\0{session_id}\0{revision}".encode()).digest()


# -- the store-wide chain -------------------------------------------------------------------------------------


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


def add_head(
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
    entry = Head(entry_id, kind, session_id, revision, events, head.hex(), keyed_by, at, key_id(key), "")
    entry_hash = link_with(key)(previous, entry.body())
    connection.execute(
        _INSERT,
        (entry_id, kind, session_id, revision, events, head, keyed_by, at, entry.signed_by, entry_hash),
    )


def add_grown_heads(connection: sqlite3.Connection, *, key: bytes | None, at: float) -> None:
    """Chain an entry for every session that has grown since its last one."""
    for session_id, revision, events, head, keyed_by in connection.execute(_GROWN).fetchall():
        add_head(
            connection, "head", session_id=session_id, revision=revision, events=events, head=head,
            keyed_by=keyed_by, key=key, at=at,
        )  # fmt: skip


def read_heads(connection: sqlite3.Connection) -> list[Head]:
    """Return every entry, in order."""
    return [
        Head(
            entry_id, kind, session_id, revision, events, head.hex(), keyed_by, at, signed_by, entry_hash.hex()
        )
        for entry_id, kind, session_id, revision, events, head, keyed_by, at, signed_by, entry_hash
        in connection.execute(_ALL)
    ]  # fmt: skip


def last_revision(connection: sqlite3.Connection, session_id: str) -> int:
    """Return the highest revision of a session in the store-wide chain; 0 for an unknown session."""
    row = connection.execute("SELECT max(revision) FROM heads WHERE session_id = ?", (session_id,)).fetchone()
    return int(row[0] or 0)


def pruned_events(connection: sqlite3.Connection, session_id: str) -> int:
    """Return how many events a session had when retention last deleted it; 0 if it never did."""
    row = connection.execute(
        "SELECT events FROM heads WHERE session_id = ? AND kind = 'pruned' ORDER BY id DESC LIMIT 1",
        (session_id,),
    ).fetchone()
    return 0 if row is None else int(row[0])
