"""Verifying the audit chain: every stored byte against its hash, every head against the events behind it.

What is detected, and by what: a changed byte, row or order, a removed, added or moved event by the session's
chain; a cut tail or a deleted session by the store-wide chain, and where that was cut as well, by exported heads.
With a key none of this can be forged by whoever lacks it; without one it shows accident, not intent.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from windowpane.exceptions import StoreError
from windowpane.store import heads
from windowpane.store.chain import ORIGIN, UNKEYED, genesis, key_id, link_with
from windowpane.store.heads import Head
from windowpane.store.records import BrokenLink, Verification

_SESSIONS: Final = (
    "SELECT key, session_id, revision, keyed_by, head_seq, head_hash, events FROM sessions ORDER BY key"
)
_EVENTS: Final = "SELECT seq, session, turn, type, at, body, hash FROM events WHERE session = ? ORDER BY seq"
_STRAY: Final = "SELECT seq FROM events WHERE session NOT IN (SELECT key FROM sessions) ORDER BY seq LIMIT 1"


class _Dropped(msgspec.Struct):
    first_n: int = 0
    last_n: int = -1


class _Envelope(msgspec.Struct):
    """What of an event's body its row repeats, and what numbers it in its stream."""

    session_id: str
    turn: int
    stream_id: str
    n: int
    type: str
    data: _Dropped
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
class _Streams:
    """Which numbers of each stream were seen, and which were reported as dropped."""

    last: dict[str, int] = field(default_factory=dict)
    gaps: list[tuple[str, int, int, int]] = field(default_factory=list)
    """Stream, first and last number missing, and the `seq` after them."""
    dropped: list[tuple[str, int, int]] = field(default_factory=list)

    def see(self, event: _Envelope, seq: int) -> None:
        last = self.last.get(event.stream_id)
        if last is not None and event.n > last + 1:
            self.gaps.append((event.stream_id, last + 1, event.n - 1, seq))
        self.last[event.stream_id] = event.n if last is None else max(last, event.n)
        if event.type == "telemetry.dropped":
            self.dropped.append((event.stream_id, event.data.first_n, event.data.last_n))

    def explained(self, stream: str, first: int, last: int) -> bool:
        """Whether reports of this stream cover every number from *first* to *last*."""
        for _, begin, end in sorted(item for item in self.dropped if item[0] == stream):
            if begin <= first <= end:
                first = end + 1
        return first > last


@dataclass(slots=True)
class _Known:
    """Hashes that a session's chain must have had after so many events."""

    heads: dict[int, str] = field(default_factory=dict)
    keyed_by: str | None = None


Marks = dict[tuple[str, int], _Known]


def verify(
    connection: sqlite3.Connection,
    *,
    key: bytes | None,
    session_id: str | None = None,
    exported: list[Head] | None = None,
) -> Verification:
    """Verify one session or all; events are read one by one, whatever their number."""
    types: dict[int, str] = dict(connection.execute("SELECT id, name FROM event_types").fetchall())
    sessions = [_Session(*row) for row in connection.execute(_SESSIONS)]
    if session_id is not None:
        sessions = [session for session in sessions if session.session_id == session_id]
    chained = heads.read(connection)
    broken = _verify_heads(chained, key, exported)
    marks, gone = _marks([*chained, *(exported or ())])
    explained = 0
    for session in sessions:
        link, gaps = _verify_session(connection, session, key, types, marks)
        explained += gaps
        if link is not None:
            broken.append(link)
    present = {(session.session_id, session.revision) for session in sessions}
    for (missing_id, revision), known in marks.items():
        if session_id in (None, missing_id) and (missing_id, revision) not in present | gone:
            problem = f"the whole session is missing; it had {max(known.heads)} events"
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


def write_heads(entries: list[Head], file: Path) -> int:
    """Write the store-wide chain as JSON Lines; returns how many entries."""
    lines = b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries)
    try:
        file.write_bytes(lines)
    except OSError as error:
        raise StoreError(f"{file}: cannot be written ({error.strerror})") from error
    return len(entries)


def read_heads(file: Path) -> list[Head]:
    """Heads that were exported before. Raises `StoreError` with file and line where they cannot be read."""
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
    connection: sqlite3.Connection, session: _Session, key: bytes | None, types: dict[int, str], marks: Marks
) -> tuple[BrokenLink | None, int]:
    """The first bad event of a session, if any, and how many gaps are explained."""
    known = marks.get((session.session_id, session.revision), _Known())
    if known.keyed_by is not None and known.keyed_by != session.keyed_by:
        return session.broken(None, "the chain's key was changed after its head was recorded"), 0
    if session.keyed_by not in (UNKEYED, key_id(key)):
        return session.broken(None, f"needs the audit key {session.keyed_by} to be verified"), 0
    link = link_with(None if session.keyed_by == UNKEYED else key)
    previous = genesis(session.session_id, session.revision)
    streams, count, last_seq = _Streams(), 0, 0
    for seq, _key, turn, kind, at, body, stored in connection.execute(_EVENTS, (session.key,)):
        if not isinstance(body, bytes) or not isinstance(stored, bytes):
            return session.broken(seq, "the event's bytes were replaced by something else"), 0
        previous, count, last_seq = link(previous, body), count + 1, seq
        if previous != stored:
            return session.broken(seq, "the event or one before it was changed, moved or removed"), 0
        if known.heads.get(count, stored.hex()) != stored.hex():
            return session.broken(seq, "the chain differs from a head that was recorded"), 0
        event = _decoder.decode(body)
        row = (session.session_id, turn, types.get(kind), at)
        if (event.session_id, event.turn, event.type, event.at) != row:
            return session.broken(seq, "the row's turn, type or time is not that of its event"), 0
        streams.see(event, seq)
    expected = max(session.events, *known.heads, 0)
    if (count, last_seq, previous) != (expected, session.head_seq, session.head_hash):
        return session.broken(last_seq or None, f"ends after {count} of {expected} events"), 0
    return _judge_gaps(session, streams)


def _judge_gaps(session: _Session, streams: _Streams) -> tuple[BrokenLink | None, int]:
    for stream, first, last, seq in streams.gaps:
        if not streams.explained(stream, first, last):
            problem = f"events {first} to {last} of stream {stream} are missing and were not reported as dropped"
            return session.broken(seq, problem), 0
    return None, len(streams.gaps)


def _verify_heads(chained: list[Head], key: bytes | None, exported: list[Head] | None) -> list[BrokenLink]:
    """The store-wide chain itself, and against what was exported of it."""
    previous = ORIGIN
    for number, entry in enumerate(chained, 1):
        if entry.signed_by in (UNKEYED, key_id(key)):
            link = link_with(None if entry.signed_by == UNKEYED else key)
            holds = entry.id == number and link(previous, entry.body()).hex() == entry.hash
        else:
            holds = entry.id == number  # signed with a key that is not at hand
        if not holds:
            return [BrokenLink(entry.session_id, entry.revision, None, f"entry {number} of the heads is broken")]
        previous = bytes.fromhex(entry.hash)
    for entry in exported or ():
        if entry.id > len(chained) or chained[entry.id - 1].hash != entry.hash:
            problem = f"entry {entry.id} of the exported heads is no longer in the store"
            return [BrokenLink(entry.session_id, entry.revision, None, problem)]
    return []


def _marks(entries: list[Head]) -> tuple[Marks, set[tuple[str, int]]]:
    """What heads say about each session's chain, and which sessions retention has deleted."""
    marks: Marks = {}
    gone = set()
    for entry in entries:
        identity = (entry.session_id, entry.revision)
        known = marks.setdefault(identity, _Known())
        known.heads[entry.events] = entry.head
        known.keyed_by = entry.keyed_by
        if entry.kind == "pruned":
            gone.add(identity)
    return marks, gone
