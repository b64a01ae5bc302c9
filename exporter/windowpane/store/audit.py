"""Verification of the audit chain: every stored byte against its hash, every head against the events behind it.

What detects what: a session's chain detects a changed byte, row or order, and a removed, added or moved event;
the store-wide chain detects a cut tail or a deleted session; exported heads detect that the store-wide chain was
cut as well. With a key none of this can be forged without the key; without one it detects accidents, not intent.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from windowpane.exceptions import StoreError
from windowpane.store.chain import ORIGIN, UNKEYED, Head, genesis, key_id, link_with, read_heads
from windowpane.store.records import BrokenLink, Verification

_SESSIONS: Final = (
    "SELECT key, session_id, revision, keyed_by, head_seq, head_hash, events FROM sessions ORDER BY key"
)
_EVENTS: Final = "SELECT seq, turn, type, at, body, hash FROM events WHERE session = ? ORDER BY seq"
_STRAY: Final = "SELECT seq FROM events WHERE session NOT IN (SELECT key FROM sessions) ORDER BY seq LIMIT 1"

SessionRevision = tuple[str, int]
"""A session's id and revision."""


class _DroppedRange(msgspec.Struct):
    first_n: int = 0
    last_n: int = -1


class _Envelope(msgspec.Struct):
    """The part of an event's body that its row repeats, and its number in its stream."""

    session_id: str
    turn: int
    stream_id: str
    n: int
    type: str
    data: _DroppedRange
    at: float | None = None


_decoder: Final = msgspec.json.Decoder(_Envelope)
_head_decoder: Final = msgspec.json.Decoder(Head)


@dataclass(slots=True)
class _Session:
    key: int
    session_id: str
    revision: int
    keyed_by: str
    head_seq: int
    head_hash: bytes
    events: int

    def broken(self, seq: int | None, problem: str) -> BrokenLink:
        return BrokenLink(self.session_id, self.revision, seq, problem)


@dataclass(slots=True)
class _RecordedHeads:
    """Hashes that a session's chain must have had after so many events."""

    by_events: dict[int, str] = field(default_factory=dict)
    keyed_by: str | None = None


@dataclass(slots=True)
class _StreamNumbers:
    """The numbers missing from each stream, and those reported as dropped."""

    last: dict[str, int] = field(default_factory=dict)
    gaps: list[tuple[str, int, int, int]] = field(default_factory=list)
    """Stream, first and last number missing, and the `seq` after them."""
    dropped: list[tuple[str, int, int]] = field(default_factory=list)

    def record(self, event: _Envelope, seq: int) -> None:
        last = self.last.get(event.stream_id)
        if last is not None and event.n > last + 1:
            self.gaps.append((event.stream_id, last + 1, event.n - 1, seq))
        self.last[event.stream_id] = event.n if last is None else max(last, event.n)
        if event.type == "telemetry.dropped":
            self.dropped.append((event.stream_id, event.data.first_n, event.data.last_n))

    def is_explained(self, stream: str, first: int, last: int) -> bool:
        """Return whether reports of this stream cover every number from *first* to *last*."""
        for _, start, end in sorted(item for item in self.dropped if item[0] == stream):
            if start <= first <= end:
                first = end + 1
        return first > last


def verify(
    connection: sqlite3.Connection,
    *,
    key: bytes | None,
    session_id: str | None = None,
    exported: list[Head] | None = None,
) -> Verification:
    """Verify one session or all, reading one event at a time."""
    types: dict[int, str] = dict(connection.execute("SELECT id, name FROM event_types").fetchall())
    sessions = [_Session(*row) for row in connection.execute(_SESSIONS)]
    if session_id is not None:
        sessions = [session for session in sessions if session.session_id == session_id]
    chained = read_heads(connection)
    broken = _verify_heads(chained, key, exported)
    recorded, pruned = _index_heads([*chained, *(exported or ())])
    explained = 0
    for session in sessions:
        heads = recorded.get((session.session_id, session.revision), _RecordedHeads())
        link, gaps = _verify_session(connection, session, key, types, heads)
        explained += gaps
        if link is not None:
            broken.append(link)
    present = {(session.session_id, session.revision) for session in sessions}
    for (missing_id, revision), heads in recorded.items():
        if session_id in (None, missing_id) and (missing_id, revision) not in present | pruned:
            problem = f"the whole session is missing; it had {max(heads.by_events)} events"
            broken.append(BrokenLink(missing_id, revision, None, problem))
    stray = connection.execute(_STRAY).fetchone() if session_id is None else None
    if stray is not None:
        broken.append(BrokenLink("", 0, stray[0], "the event belongs to no session"))
    return Verification(
        keyed=bool(sessions) and all(session.keyed_by != UNKEYED for session in sessions),
        sessions=len(sessions),
        events=sum(session.events for session in sessions),
        broken=tuple(broken),
        explained_gaps=explained,
    )


def write_heads_file(entries: list[Head], file: Path) -> int:
    """Write the store-wide chain as JSON Lines and return the number of entries. Raises `StoreError`."""
    lines = b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries)
    try:
        file.write_bytes(lines)
    except OSError as error:
        raise StoreError(f"{file}: cannot be written ({error.strerror})") from error
    return len(entries)


def read_heads_file(file: Path) -> list[Head]:
    """Return heads that were exported before. Raises `StoreError` with file and line if they cannot be read."""
    try:
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise StoreError(f"{file}: cannot be read ({error.strerror})") from error
    entries = []
    for number, line in enumerate(lines, 1):
        try:
            entries.append(_head_decoder.decode(line))
        except msgspec.MsgspecError as error:
            raise StoreError(f"{file}:{number}: not an exported head ({error})") from error
    return entries


def _verify_session(  # noqa: PLR0911  # each return names another way to be broken
    connection: sqlite3.Connection,
    session: _Session,
    key: bytes | None,
    types: dict[int, str],
    recorded: _RecordedHeads,
) -> tuple[BrokenLink | None, int]:
    """Return the first bad event of a session, if any, and the number of explained gaps."""
    if recorded.keyed_by is not None and recorded.keyed_by != session.keyed_by:
        return session.broken(None, "the chain's key was changed after its head was recorded"), 0
    if session.keyed_by not in (UNKEYED, key_id(key)):
        return session.broken(None, f"needs the audit key {session.keyed_by} to be verified"), 0
    link = link_with(None if session.keyed_by == UNKEYED else key)
    previous = genesis(session.session_id, session.revision)
    numbers, count, last_seq = _StreamNumbers(), 0, 0
    for seq, turn, kind, at, body, stored in connection.execute(_EVENTS, (session.key,)):
        if not isinstance(body, bytes) or not isinstance(stored, bytes):
            return session.broken(seq, "the event's bytes were replaced by something else"), 0
        previous, count, last_seq = link(previous, body), count + 1, seq
        if previous != stored:
            return session.broken(seq, "the event or one before it was changed, moved or removed"), 0
        if recorded.by_events.get(count, stored.hex()) != stored.hex():
            return session.broken(seq, "the chain differs from a head that was recorded"), 0
        event = _decoder.decode(body)
        row = (session.session_id, turn, types.get(kind), at)
        if (event.session_id, event.turn, event.type, event.at) != row:
            return session.broken(seq, "the row's turn, type or time is not that of its event"), 0
        numbers.record(event, seq)
    expected = max(session.events, *recorded.by_events, 0)
    if (count, last_seq, previous) != (expected, session.head_seq, session.head_hash):
        return session.broken(last_seq or None, f"ends after {count} of {expected} events"), 0
    return _verify_numbers(session, numbers)


def _verify_numbers(session: _Session, numbers: _StreamNumbers) -> tuple[BrokenLink | None, int]:
    for stream, first, last, seq in numbers.gaps:
        if not numbers.is_explained(stream, first, last):
            problem = f"events {first} to {last} of stream {stream} are missing and were not reported as dropped"
            return session.broken(seq, problem), 0
    return None, len(numbers.gaps)


def _verify_heads(chained: list[Head], key: bytes | None, exported: list[Head] | None) -> list[BrokenLink]:
    """Check the store-wide chain itself, and its entries against those exported."""
    previous = ORIGIN
    for number, entry in enumerate(chained, 1):
        holds = entry.id == number
        if entry.signed_by in (UNKEYED, key_id(key)):  # else signed with a key that is not available
            link = link_with(None if entry.signed_by == UNKEYED else key)
            holds = holds and link(previous, entry.body()).hex() == entry.hash
        if not holds:
            return [BrokenLink(entry.session_id, entry.revision, None, f"entry {number} of the heads is broken")]
        previous = bytes.fromhex(entry.hash)
    for entry in exported or ():
        if entry.id > len(chained) or chained[entry.id - 1].hash != entry.hash:
            problem = f"entry {entry.id} of the exported heads is no longer in the store"
            return [BrokenLink(entry.session_id, entry.revision, None, problem)]
    return []


def _index_heads(entries: list[Head]) -> tuple[dict[SessionRevision, _RecordedHeads], set[SessionRevision]]:
    """Return the recorded heads of each session's chain, and the sessions that retention has deleted."""
    recorded: dict[SessionRevision, _RecordedHeads] = {}
    pruned = set()
    for entry in entries:
        identity = (entry.session_id, entry.revision)
        heads = recorded.setdefault(identity, _RecordedHeads())
        heads.by_events[entry.events] = entry.head
        heads.keyed_by = entry.keyed_by
        if entry.kind == "pruned":
            pruned.add(identity)
    return recorded, pruned
