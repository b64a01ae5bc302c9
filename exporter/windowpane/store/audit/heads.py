"""Verification of the store-wide chain, alone and against entries exported before.

Its entries record how far each session's chain had come, so a session's chain is verified against them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from hmac import compare_digest
from pathlib import Path
from typing import Final

import msgspec

from windowpane.core.decoders import json_decoder
from windowpane.core.files import A_DEVICE, irregular_kind
from windowpane.exceptions import StoreError
from windowpane.store.keys import UNKEYED, AuditKeys
from windowpane.store.records import Accepted, BrokenLink
from windowpane.store.writes.chain import ORIGIN, Head

SessionRevision = tuple[str, int]
"""A session's id and revision."""

_decoder: Final = json_decoder(Head)
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "str": (str,), "HeadKind": (str,), "int": (int,), "float": (int, float)
}  # fmt: skip


@dataclass(slots=True)
class RecordedChain:
    """The entries of the store-wide chain about the chain of one session."""

    entries: dict[int, Head] = field(default_factory=dict)
    """By the number of events, the last entry of each."""
    rekeyed: list[Head] = field(default_factory=list)
    """The entries of each time another key took over."""
    revised: Head | None = None
    pruned: Head | None = None
    accepted_events: int = 0
    """Events that were in the chain when the store accepted what it held without a key."""

    @property
    def events(self) -> int:
        """The most events that the chain is known to have had."""
        return max(self.entries, default=0)


@dataclass(slots=True)
class HeadsResult:
    """The result of verifying the store-wide chain."""

    broken: list[BrokenLink]
    chains: dict[SessionRevision, RecordedChain]
    signed: bool
    """True when any entry of the store or of the export is signed."""
    accepted: tuple[Accepted, ...]
    """The times at which the owner accepted what was recorded without a key."""
    has_accepted: bool
    """True where an entry accepts what came before it without a signature, as the first one of a key does."""
    unsigned: int
    """Entries without a signature."""


def verify(entries: Sequence[Head], *, keys: AuditKeys, exported: Sequence[Head]) -> HeadsResult:
    """Verify every entry, and compare them with the exported ones.

    Behind an entry that accepts what came before, an unsigned one is broken; without one, they are counted.
    """
    signed = any(entry.signed_by != UNKEYED for entry in (*entries, *exported))
    accepting = [entry for entry in entries if _accepts(entry, keys)]
    accepted = max((entry.id for entry in accepting), default=0)
    broken = _verify_links(entries, keys, keyed=bool(accepting), accepted=accepted)
    broken += _compare_export(entries, exported)
    lost = [entry for entry in exported if not _is_at(entry, entries)]
    chains, contradictions = _recorded_chains(entries, lost, accepted)
    return HeadsResult(
        broken + contradictions,
        chains,
        signed,
        accepted=tuple(Accepted(entry.at, entry.signed_by, entry.events) for entry in accepting if entry.events),
        has_accepted=bool(accepting),
        unsigned=sum(entry.signed_by == UNKEYED for entry in entries),
    )


def write_file(entries: list[Head], file: Path) -> int:
    """Write the store-wide chain as JSON Lines and return the number of entries. Raises `StoreError`."""
    lines = b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries)
    try:
        file.write_bytes(lines)
    except OSError as error:
        raise StoreError(f"{file}: cannot be written ({error.strerror})") from error
    return len(entries)


def read_file(file: Path) -> list[Head]:
    """Return entries that were exported before, at least one.

    Raises `StoreError` with file and line if they cannot be read.
    """
    try:
        if irregular_kind(file.stat().st_mode) == A_DEVICE:
            raise StoreError(f"{file}: is a device, expected a file that `windowpane audit heads` wrote")
        lines = file.read_bytes().split(b"\n")
    except OSError as error:
        raise StoreError(f"{file}: cannot be read ({error.strerror})") from error
    entries = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entries.append(_decoder.decode(line))
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise StoreError(f"{file}:{number}: not an exported head ({error})") from error
    if not entries:
        raise StoreError(f"{file}: holds no exported head, expected a file that `windowpane audit heads` wrote")
    return entries


# -- the chain ------------------------------------------------------------------------------------------------


def _accepts(entry: Head, keys: AuditKeys) -> bool:
    """Return whether the entry, signed with an available key if there is one, accepts what came without one."""
    return entry.kind == "keyed" and entry.signed_by != UNKEYED and (
        not keys.available or entry.signed_by in keys.links()
    )  # fmt: skip


def _verify_links(entries: Sequence[Head], keys: AuditKeys, *, keyed: bool, accepted: int) -> list[BrokenLink]:
    """Return the first entry whose hash or signature is not right, and the first that needs another key."""
    links, previous = keys.links(), ORIGIN
    missing_key: list[BrokenLink] = []
    for number, entry in enumerate(entries, 1):
        link = links.get(entry.signed_by)
        if not _is_well_formed(entry) or entry.id != number:
            problem = f"entry {number} of the heads is broken"
        elif link is None:
            missing_key = missing_key or [_link(entry, missing_key_problem(entry.signed_by))]
            problem = ""
        elif not compare_digest(link(previous, entry.body()).hex(), entry.hash):
            problem = f"entry {number} of the heads is broken"
        elif keyed and entry.signed_by == UNKEYED and number > accepted:
            problem = f"entry {number} of the heads ({entry.kind}) is not signed, in a store that has a key"
        else:
            problem = ""
        if problem:
            return [*missing_key, _link(entry, problem)]
        previous = bytes.fromhex(entry.hash)
    return missing_key


def missing_key_problem(signer: str) -> str:
    """Return the problem of a link that was signed with a key that is not given."""
    return f"needs the audit key {signer} to be verified; an older key is listed in store.audit_old_key_files"


def _is_well_formed(entry: Head) -> bool:
    """Return whether the values are of their types, for SQLite stores any value in any column."""
    if not all(isinstance(getattr(entry, item.name), _TYPES[str(item.type)]) for item in fields(entry)):
        return False
    return len(entry.hash) == 2 * len(ORIGIN) and all(char in "0123456789abcdef" for char in entry.hash)


def _compare_export(entries: Sequence[Head], exported: Sequence[Head]) -> list[BrokenLink]:
    """Return the first exported entry that the store does not hold as it was exported."""
    for entry in exported:
        if _is_at(entry, entries):
            continue
        problem = f"entry {entry.id} of the exported heads is no longer in the store"
        if 0 < entry.id <= len(entries) and entries[entry.id - 1].hash == entry.hash:
            problem = f"entry {entry.id} of the exported heads differs from the store's, under the same hash"
        return [_link(entry, problem)]
    return []


def _is_at(entry: Head, entries: Sequence[Head]) -> bool:
    """Return whether the store-wide chain holds the entry at its position."""
    return 0 < entry.id <= len(entries) and entries[entry.id - 1] == entry


def _link(entry: Head, problem: str) -> BrokenLink:
    return BrokenLink(str(entry.session_id), 0 if entry.kind == "keyed" else entry.revision, None, problem)


# -- by session -----------------------------------------------------------------------------------------------


def _recorded_chains(
    entries: Sequence[Head], lost: Iterable[Head], accepted: int
) -> tuple[dict[SessionRevision, RecordedChain], list[BrokenLink]]:
    """Return the entries by session, those that were exported and are lost included, and any contradictions."""
    chains: dict[SessionRevision, RecordedChain] = {}
    broken: list[BrokenLink] = []
    for entry in entries:
        if entry.kind == "keyed" or not _is_well_formed(entry):
            continue
        chain = chains.setdefault((entry.session_id, entry.revision), RecordedChain())
        problem = _contradiction(chain, entry)
        if problem:
            broken.append(_link(entry, problem))
            continue
        _record(chain, entry)
        if entry.id < accepted:
            chain.accepted_events = entry.events
    for entry in lost:
        if entry.kind != "keyed":
            chains.setdefault((entry.session_id, entry.revision), RecordedChain()).entries.setdefault(
                entry.events, entry
            )
    return chains, broken


def _contradiction(chain: RecordedChain, entry: Head) -> str:
    """Return in what an entry contradicts those before it about the same chain; empty if in nothing."""
    earlier = chain.entries.get(entry.events)
    if earlier is not None and earlier.head != entry.head:
        return f"two heads were recorded after {entry.events} events, and they differ"
    if entry.events < chain.events:
        return f"a head was recorded after {entry.events} events, behind one after {chain.events}"
    if chain.pruned is not None:
        return "a head was recorded after retention deleted the session"
    return ""


def _record(chain: RecordedChain, entry: Head) -> None:
    chain.entries[entry.events] = entry
    if entry.kind == "rekeyed":
        chain.rekeyed.append(entry)
    elif entry.kind == "revised":
        chain.revised = entry
    elif entry.kind == "pruned":
        chain.pruned = entry
