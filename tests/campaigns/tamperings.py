"""Every tampering with a store, what each way of verifying it reports, and the table of the documentation."""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from tests.campaigns.tampered_store import (
    ENDED,
    FOREIGN_KEY,
    KEY,
    LIVE,
    OTHER,
    PRUNED,
    YOUNG,
    StoreFile,
    make_session,
)

from windowpane.store.embedded import SqliteStore
from windowpane.store.keys import key_id

WAYS: Final = ("no key", "no key + heads", "key", "key + heads")
"""The store was recorded and is verified without a key, or with one; alone, or against exported heads."""

Report = str | None
"""A part of the problem that is reported; None where the tampering is not visible."""


@dataclass(frozen=True)
class Tampering:
    """One way to tamper with a store, and what is reported of it in each of `WAYS`."""

    part: str
    name: str
    apply: Callable[[StoreFile], None]
    reports: tuple[Report, Report, Report, Report]
    why: str = ""
    """Reason why it is not visible where it is not."""


TAMPERINGS: Final[list[Tampering]] = []

CHANGED = "was changed, moved or removed"
ENDS = "ends after"
NEEDS_KEY = "needs the audit key"
NO_LONGER = "is no longer in the store"
MISSING = "the whole session is missing"
NOT_SIGNED = "is not signed, in a store that has a key"
WITHOUT_KEY = "recorded without a key, in a store that has one"
ANOTHER_HEAD = "differs from a head that was recorded"
KEY_CHANGED = "the chain's key was changed after its head was recorded"
HEAD_BROKEN = "of the heads is broken"
NO_HEAD = "the session ended and no head was recorded of it"
EVENTS_GIVE = "the events give"
NEVER_ACCEPTED = "without a signature were never accepted"
NOT_OF_A_STORE = "does not belong to a store"
NO_STORE = "is not a Windowpane store"

COMPUTED_AGAIN = "without a key anyone can compute every hash again"
AFTER_EXPORT = "it happened after the export"
NOTHING_NAMES_IT = "only an exported head names what is missing"
OUTSIDE = "not part of the record"


def tampering(
    part: str, name: str, *reports: Report, why: str = ""
) -> Callable[[Callable[[StoreFile], None]], Callable[[StoreFile], None]]:
    """Add a tampering; one report is that of all ways, two those of the ways without and with a key."""
    if len(reports) == 1:
        reports *= 4
    elif len(reports) == 2:
        reports = (reports[0], reports[0], reports[1], reports[1])

    def add(apply: Callable[[StoreFile], None]) -> Callable[[StoreFile], None]:
        TAMPERINGS.append(Tampering(part, name, apply, reports, why))  # type: ignore[arg-type]  # four by now
        return apply

    return add


def statement(part: str, name: str, sql: str, *reports: Report, why: str = "") -> None:
    """Add a tampering that is one statement; `{seq}` is an event in the middle of the session that ended."""

    def apply(file: StoreFile) -> None:
        file.run(sql.format(seq=file.sequence(ENDED)[7], key=file.key_of(ENDED), other=file.key_of(OTHER)))

    tampering(part, name, *reports, why=why)(apply)


# -- rows of events -------------------------------------------------------------------------------------------

ROWS = "events"


@tampering(ROWS, "a byte of an event changed", CHANGED)
def _edit_body(file: StoreFile) -> None:
    file.edit_body(ENDED)


statement(ROWS, "an event's hash changed", "UPDATE events SET hash = zeroblob(32) WHERE seq = {seq}", CHANGED)
statement(
    ROWS, "an event's turn changed", "UPDATE events SET turn = turn + 1 WHERE seq = {seq}",
    "the row's turn, type or time is not that of its event",
)  # fmt: skip
statement(
    ROWS, "an event's type changed", "UPDATE events SET type = type % 5 + 1 WHERE seq = {seq}",
    "the row's turn, type or time is not that of its event",
)  # fmt: skip
statement(
    ROWS, "an event's time changed", "UPDATE events SET at = at - 3600 WHERE seq = {seq}",
    "the row's turn, type or time is not that of its event",
)  # fmt: skip
statement(
    ROWS, "a session's first event deleted",
    "DELETE FROM events WHERE seq = (SELECT min(seq) FROM events WHERE session = {key})", CHANGED,
)  # fmt: skip
statement(ROWS, "an event in the middle deleted", "DELETE FROM events WHERE seq = {seq}", CHANGED)
statement(
    ROWS, "a session's last event deleted",
    "DELETE FROM events WHERE seq = (SELECT max(seq) FROM events WHERE session = {key})", ENDS,
)  # fmt: skip
statement(
    ROWS, "an event inserted",
    "INSERT INTO events SELECT (SELECT max(seq) + 1 FROM events), session, turn, type, at, body, zeroblob(32) "
    "FROM events WHERE seq = {seq}", CHANGED,
)  # fmt: skip
statement(
    ROWS, "an event duplicated with its hash",
    "INSERT INTO events SELECT (SELECT max(seq) + 1 FROM events), session, turn, type, at, body, hash "
    "FROM events WHERE seq = {seq}", CHANGED,
)  # fmt: skip
statement(
    ROWS, "an event replaced by a copy of another",
    "UPDATE events SET (body, hash) = (SELECT body, hash FROM events WHERE seq = {seq} - 1) WHERE seq = {seq}",
    CHANGED,
)  # fmt: skip
statement(
    ROWS, "an event moved to another session", "UPDATE events SET session = {other} WHERE seq = {seq}", CHANGED
)
statement(
    ROWS, "an event moved to a session that does not exist", "UPDATE events SET session = 99 WHERE seq = {seq}",
    "the event belongs to no session",
)  # fmt: skip
statement(
    ROWS, "an event's bytes replaced by a text", "UPDATE events SET body = 'text' WHERE seq = {seq}",
    "the event's bytes were replaced by something else",
)  # fmt: skip


@tampering(ROWS, "two events swapped", CHANGED)
def _swap(file: StoreFile) -> None:
    first, second = file.sequence(ENDED)[5:7]
    for old, new in ((first, -1), (second, first), (-1, second)):
        file.run("UPDATE events SET seq = ? WHERE seq = ?", new, old)


@tampering(ROWS, "two sessions' events spliced", CHANGED)
def _splice(file: StoreFile) -> None:
    for one, other in zip(file.sequence(ENDED)[5:9], file.sequence(OTHER)[5:9], strict=True):
        file.run("UPDATE events SET session = ? WHERE seq = ?", file.key_of(OTHER), one)
        file.run("UPDATE events SET session = ? WHERE seq = ?", file.key_of(ENDED), other)


# -- hashes computed again ------------------------------------------------------------------------------------

HASHES = "hashes"


@tampering(HASHES, "an event changed and its session hashed again without a key", ANOTHER_HEAD, KEY_CHANGED)
def _rehash(file: StoreFile) -> None:
    file.edit_body(ENDED)
    file.rehash(ENDED)


@tampering(HASHES, "the same, and the session's row names the key", KEY_CHANGED, CHANGED)
def _rehash_under_the_keys_name(file: StoreFile) -> None:
    file.edit_body(ENDED)
    file.rehash(ENDED)
    file.run("UPDATE sessions SET keyed_by = ? WHERE session_id = ?", key_id(KEY), ENDED)


@tampering(HASHES, "the same, and a new head added without a key", "recorded after", "recorded after")
def _rehash_with_head(file: StoreFile) -> None:
    file.edit_body(ENDED)
    file.rehash(ENDED)
    file.add_head("head", ENDED)


@tampering(
    HASHES, "an event of a running session changed, hashed again without a key", None, None, WITHOUT_KEY,
    WITHOUT_KEY, why=f"{COMPUTED_AGAIN}, and no head of the session was exported",
)  # fmt: skip
def _rehash_running(file: StoreFile) -> None:
    file.edit_body(YOUNG)
    file.rehash(YOUNG)
    file.rebuild()


@tampering(
    HASHES, "everything hashed again without a key, heads as well", None, NO_LONGER, NEVER_ACCEPTED, NO_LONGER,
    why=COMPUTED_AGAIN,
)  # fmt: skip
def _rehash_everything(file: StoreFile) -> None:
    file.edit_body(ENDED)
    _strip(file)
    file.rebuild()


@tampering(
    HASHES, "the same, and a process with the key writes to the store", None, NO_LONGER, NEVER_ACCEPTED,
    NO_LONGER, why=COMPUTED_AGAIN,
)  # fmt: skip
def _launder(file: StoreFile) -> None:
    _rehash_everything(file)
    file.append(make_session("after", 2), key=KEY if file.keyed else None)


@tampering(
    HASHES, "the same, without the store-wide chain", NO_HEAD, NO_LONGER, NEVER_ACCEPTED, NO_LONGER,
    why=COMPUTED_AGAIN,
)  # fmt: skip
def _launder_without_heads(file: StoreFile) -> None:
    _strip_without_heads(file)
    file.append(make_session("after", 2), key=KEY if file.keyed else None)


@tampering(
    HASHES, "every signature removed, nothing else changed", None, None, NEVER_ACCEPTED, NO_LONGER,
    why="there was no signature to remove",
)  # fmt: skip
def _strip_signatures(file: StoreFile) -> None:
    if file.keyed:
        _strip(file)


@tampering(
    HASHES,
    "every signature removed, and the store-wide chain deleted",
    NO_HEAD,
    NO_LONGER,
    NEVER_ACCEPTED,
    NO_LONGER,
)
def _strip_without_heads(file: StoreFile) -> None:
    _strip(file)
    file.run("DELETE FROM heads")


def _strip(file: StoreFile) -> None:
    for session_id in (ENDED, OTHER, LIVE, YOUNG):
        file.rehash(session_id)
    file.rewrite_heads()


@tampering(HASHES, "a session hashed again with another key", NEEDS_KEY)
def _foreign_key(file: StoreFile) -> None:
    file.rehash(YOUNG, FOREIGN_KEY)


@tampering(HASHES, "everything hashed again with another key, heads as well", NEEDS_KEY)
def _foreign_everything(file: StoreFile) -> None:
    for session_id in (ENDED, OTHER, LIVE, YOUNG):
        file.rehash(session_id, FOREIGN_KEY)
    file.rewrite_heads(FOREIGN_KEY)


@tampering(HASHES, "a session's key replaced by an unknown one", NEEDS_KEY)
def _unknown_signer(file: StoreFile) -> None:
    file.run("UPDATE sessions SET keyed_by = '0123456789abcdef' WHERE session_id = ?", YOUNG)


@tampering(HASHES, "the key removed from a session's row", None, CHANGED, why="there was no key to remove")
def _no_signer(file: StoreFile) -> None:
    file.run("UPDATE sessions SET keyed_by = '' WHERE session_id = ?", YOUNG)


@tampering(HASHES, "events added to a running session without the key", None, WITHOUT_KEY, why=COMPUTED_AGAIN)
def _append_unkeyed(file: StoreFile) -> None:
    file.append(make_session("forged", 2, end=False))


@tampering(
    HASHES, "the end of a running session replaced by events without the key", None, None, CHANGED, CHANGED,
    why=f"{COMPUTED_AGAIN}, and {AFTER_EXPORT}",
)  # fmt: skip
def _replace_end(file: StoreFile) -> None:
    file.edit_body(LIVE, -1)
    if not file.keyed:
        file.rehash(LIVE)
    file.rebuild()


# -- the store-wide chain -------------------------------------------------------------------------------------

HEADS = "heads"

statement(
    HEADS, "an entry changed", "UPDATE heads SET events = events + 1 WHERE session_id = 'ended'", HEAD_BROKEN
)
statement(
    HEADS, "an entry's hash changed", "UPDATE heads SET hash = zeroblob(32) WHERE session_id = 'ended'",
    HEAD_BROKEN,
)  # fmt: skip
statement(HEADS, "an entry in the middle deleted", "DELETE FROM heads WHERE session_id = 'ended'", HEAD_BROKEN)
statement(
    HEADS, "an entry's value replaced by a text", "UPDATE heads SET head = 'text' WHERE id = 2", HEAD_BROKEN
)
statement(
    HEADS, "the last entry deleted, about a running session",
    "DELETE FROM heads WHERE id = (SELECT max(id) FROM heads)",
    None, NO_LONGER, None, NO_LONGER, why=f"{NOTHING_NAMES_IT}; all events are still there",
)  # fmt: skip
statement(HEADS, "every entry deleted", "DELETE FROM heads", NO_HEAD, NO_LONGER, NO_HEAD, NO_LONGER)
statement(HEADS, "an entry's signer replaced", "UPDATE heads SET signed_by = '0123456789abcdef'", NEEDS_KEY)


@tampering(HEADS, "an entry swapped with the next", HEAD_BROKEN)
def _swap_heads(file: StoreFile) -> None:
    for old, new in ((1, -1), (2, 1), (-1, 2)):
        file.run("UPDATE heads SET id = ? WHERE id = ?", new, old)


@tampering(
    HEADS, "a session deleted, with a tombstone without a signature", None, None, NOT_SIGNED, NOT_SIGNED,
    why="without a key anyone can write what retention writes",
)  # fmt: skip
def _forged_tombstone(file: StoreFile) -> None:
    file.add_head("pruned", ENDED)
    file.delete_session(ENDED)


@tampering(HEADS, "a session deleted, with a tombstone signed with another key", NEEDS_KEY)
def _foreign_tombstone(file: StoreFile) -> None:
    file.add_head("pruned", ENDED, key=FOREIGN_KEY)
    file.delete_session(ENDED)


@tampering(HEADS, "a session deleted, with a tombstone under the key's name", NEEDS_KEY, HEAD_BROKEN)
def _misnamed_tombstone(file: StoreFile) -> None:
    file.add_head("pruned", ENDED)
    file.run("UPDATE heads SET signed_by = ? WHERE id = (SELECT max(id) FROM heads)", key_id(KEY))
    file.delete_session(ENDED)


@tampering(HEADS, "a session deleted, with a tombstone of a shorter one", "behind one after", NOT_SIGNED)
def _short_tombstone(file: StoreFile) -> None:
    file.add_head("pruned", ENDED, fewer=3)
    file.delete_session(ENDED)


@tampering(
    HEADS, "a tombstone added, the session still there", "in the store although retention deleted it", NOT_SIGNED
)
def _tombstone_beside_session(file: StoreFile) -> None:
    file.add_head("pruned", ENDED)


@tampering(HEADS, "a head without a signature added", None, NOT_SIGNED, why="it repeats what the chain holds")
def _unsigned_head(file: StoreFile) -> None:
    file.add_head("head", YOUNG)


@tampering(
    HEADS, "the entries about a session deleted with it, from the end of the chain", None, NO_LONGER, None,
    NO_LONGER, why=NOTHING_NAMES_IT,
)  # fmt: skip
def _roll_back_heads(file: StoreFile) -> None:
    file.run("DELETE FROM heads WHERE id >= (SELECT min(id) FROM heads WHERE session_id = ?)", OTHER)
    file.delete_session(OTHER)


# -- sessions -------------------------------------------------------------------------------------------------

SESSIONS = "sessions"


@tampering(SESSIONS, "a session deleted", MISSING)
def _delete_session(file: StoreFile) -> None:
    file.delete_session(ENDED)


@tampering(SESSIONS, "a running session deleted that has a head", MISSING)
def _delete_running(file: StoreFile) -> None:
    file.delete_session(LIVE)


@tampering(
    SESSIONS, "a session deleted that no head names", None,
    why=f"{AFTER_EXPORT}, and the session had not ended; export heads often",
)  # fmt: skip
def _delete_young(file: StoreFile) -> None:
    file.delete_session(YOUNG)


statement(SESSIONS, "a session's row deleted, its events left", "DELETE FROM sessions WHERE key = {key}", MISSING)
statement(SESSIONS, "a session renamed", "UPDATE sessions SET session_id = 'renamed' WHERE key = {key}", CHANGED)
statement(SESSIONS, "a session's revision changed", "UPDATE sessions SET revision = 2 WHERE key = {key}", CHANGED)
statement(
    SESSIONS, "a session hidden as an earlier revision", "UPDATE sessions SET current = 0 WHERE key = {key}",
    "not the latest revision of the session is the current one",
)  # fmt: skip
statement(
    SESSIONS, "a session's last hash changed", "UPDATE sessions SET head_hash = zeroblob(32) WHERE key = {key}",
    ENDS,
)  # fmt: skip
statement(
    SESSIONS, "a session's number of events changed", "UPDATE sessions SET events = events + 1 WHERE key = {key}",
    ENDS,
)  # fmt: skip
statement(
    SESSIONS, "a value of a session's chain replaced by a text",
    "UPDATE sessions SET events = 'many' WHERE key = {key}", "the row of the session is damaged",
)  # fmt: skip


@tampering(SESSIONS, "the end of a session cut, its row and projections made to match", ENDS)
def _cut_ended(file: StoreFile) -> None:
    file.cut(ENDED, 30)


@tampering(
    SESSIONS, "the end of a running session cut, back to its head", None,
    why=f"{AFTER_EXPORT}: no head was recorded of what was cut; export heads often",
)  # fmt: skip
def _cut_running(file: StoreFile) -> None:
    file.cut(LIVE, len(make_session(LIVE, 8, end=False)) // 2)


@tampering(
    SESSIONS, "the end of a running session cut, and the heads of it", None, NO_LONGER, None, NO_LONGER,
    why=NOTHING_NAMES_IT,
)  # fmt: skip
def _cut_further(file: StoreFile) -> None:
    file.run("DELETE FROM heads WHERE session_id = ?", LIVE)
    file.cut(LIVE, 10)


@tampering(
    SESSIONS, "a forged session added", None, NOT_SIGNED,
    why=f"{COMPUTED_AGAIN}; heads show what is missing, not what was added",
)  # fmt: skip
def _forged_session(file: StoreFile) -> None:
    file.append(make_session("forged", 2))


@tampering(SESSIONS, "a forged session added, signed with another key", NEEDS_KEY)
def _foreign_session(file: StoreFile) -> None:
    file.append(make_session("forged", 2), key=FOREIGN_KEY)


@tampering(SESSIONS, "a session that retention deleted recorded anew", None, NOT_SIGNED, why=COMPUTED_AGAIN)
def _revived_session(file: StoreFile) -> None:
    file.append(make_session(PRUNED, 2))


# -- rows that pages and reports read -------------------------------------------------------------------------

PROJECTIONS = "projections"

for _name, _assignment in {
    "a session's cost lowered": "cost_dollars = 0.01",
    "a session's zone changed": "zone = 'green', worst_zone = NULL",
    "a session's peak lowered": "peak_used_tokens = 1, peak_utilization = 0.0",
    "a session's size changed": "used_tokens = 1",
    "a session's limit raised": "limit_tokens = 1000000",
    "a session's count of turns changed": "turns = turns - 1",
    "a session's evictions and compressions hidden": "evicted_blocks = 0, compressions = 0",
    "a session's worst alert removed": "worst_severity = NULL",
    "a session's agent and model renamed": "agent = 'another', model = 'another'",
    "a session's times moved": "started_at = started_at + 86400",
    "a session's order in the fleet changed": "pressure = pressure + 9",
}.items():
    statement(PROJECTIONS, _name, f"UPDATE sessions SET {_assignment} WHERE key = {{key}}", EVENTS_GIVE)

statement(
    PROJECTIONS, "events excluded from the counters",
    "UPDATE sessions SET counted_from = counted_from + 40 WHERE key = {key}", EVENTS_GIVE,
)  # fmt: skip
statement(
    PROJECTIONS, "the memory of a session's row damaged", "UPDATE sessions SET memory = 'text' WHERE key = {key}",
    "sessions.memory cannot be read",
)  # fmt: skip
statement(PROJECTIONS, "an alert deleted", "DELETE FROM alerts", "is missing")
statement(
    PROJECTIONS, "an alert marked as resolved and harmless",
    "UPDATE alerts SET severity = 'info', resolved_turn = 5",
    EVENTS_GIVE,
)  # fmt: skip
statement(
    PROJECTIONS, "an alert added",
    "INSERT INTO alerts SELECT session, 'thrashing', crossing_turn, fired_seq, severity, fired_turn, fired_at, "
    "resolved_turn, resolved_at, value, threshold, summary, delivered, failed FROM alerts",
    "not what the events give",
)  # fmt: skip
statement(
    PROJECTIONS, "an alert moved to a session that does not exist", "UPDATE alerts SET session = 99",
    "is missing",
)  # fmt: skip
statement(
    PROJECTIONS, "a turn's size lowered", "UPDATE turns SET used_final = 1 WHERE session = {key} AND turn = 3",
    EVENTS_GIVE,
)  # fmt: skip
statement(
    PROJECTIONS, "a turn's cost changed",
    "UPDATE turns SET cost_dollars = 9.0 WHERE session = {key} AND turn = 3",
    EVENTS_GIVE,
)  # fmt: skip
statement(PROJECTIONS, "a turn deleted", "DELETE FROM turns WHERE session = {key} AND turn = 3", "events give")
statement(
    PROJECTIONS, "the reason of an eviction changed",
    "UPDATE blocks SET reason = 'too old' WHERE session = {key} AND removed_by = 'eviction'", EVENTS_GIVE,
)  # fmt: skip
statement(
    PROJECTIONS, "a removed block shown as still in the window",
    "UPDATE blocks SET left_seq = 1 << 62, turn_removed = NULL, removed_by = NULL WHERE session = {key}",
    EVENTS_GIVE,
)  # fmt: skip
statement(
    PROJECTIONS, "the blocks of a session deleted", "DELETE FROM blocks WHERE session = {key}", "is missing"
)
statement(
    PROJECTIONS, "a late event's row added", "INSERT INTO late_events VALUES ({key}, 1, {seq})",
    "not what the events give",
)  # fmt: skip
statement(
    PROJECTIONS, "the count of a type of events changed",
    "UPDATE event_types SET events = events - 1 WHERE name = 'blocks.evicted'", "the store holds",
)  # fmt: skip
statement(
    PROJECTIONS, "the number of the next event set back", "UPDATE store SET next_seq = 1", "store.next_seq is 1"
)


# -- the schema -----------------------------------------------------------------------------------------------

SCHEMA = "schema"

statement(
    SCHEMA, "a trigger that deletes alerts planted",
    "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM alerts; END", f"trigger t {NOT_OF_A_STORE}",
)  # fmt: skip
statement(
    SCHEMA, "a trigger that swallows heads planted",
    "CREATE TRIGGER t BEFORE INSERT ON heads BEGIN SELECT raise(ignore); END", f"trigger t {NOT_OF_A_STORE}",
)  # fmt: skip
statement(
    SCHEMA, "a trigger of the store removed", "DROP TRIGGER session_days_added", "session_days_added is missing"
)
statement(SCHEMA, "a view added", "CREATE VIEW v AS SELECT * FROM alerts", f"view v {NOT_OF_A_STORE}")
statement(SCHEMA, "a table added", "CREATE TABLE v (a)", f"table v {NOT_OF_A_STORE}")
statement(SCHEMA, "an index dropped", "DROP INDEX events_session", "index events_session is missing")
statement(SCHEMA, "an index added", "CREATE UNIQUE INDEX i ON turns (session, turn)", f"index i {NOT_OF_A_STORE}")
statement(SCHEMA, "a table dropped", "DROP TABLE quotas", "table quotas is missing")
statement(
    SCHEMA, "a generated column added", "ALTER TABLE quotas ADD COLUMN used AS (percent / 100.0)",
    "table quotas is not defined as in a new store",
)  # fmt: skip
statement(SCHEMA, "the file's user_version changed", "PRAGMA user_version = 99", "pragma user_version is not")
statement(SCHEMA, "the file's application_id changed", "PRAGMA application_id = 99", "pragma application_id is")


@tampering(SCHEMA, "a table replaced by a view of a part of it", "table alerts is missing")
def _view_of_alerts(file: StoreFile) -> None:
    file.run("ALTER TABLE alerts RENAME TO others")
    file.run("CREATE VIEW alerts AS SELECT * FROM others WHERE severity <> 'critical'")


@tampering(SCHEMA, "an index without the rows of its table", "missing from index alerts_at")
def _stale_index(file: StoreFile) -> None:
    find = "SELECT sql FROM sqlite_master WHERE name = 'alerts_at'"
    with file.connect() as connection:
        (sql,) = connection.execute(find).fetchone()
        connection.execute("DROP INDEX alerts_at")
        connection.execute(f"{sql} WHERE severity <> 'critical'")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'alerts_at'", (sql,))


# -- whole files ----------------------------------------------------------------------------------------------

FILES = "files"


@tampering(FILES, "an older copy of the file restored", None, NO_LONGER, None, NO_LONGER, why=NOTHING_NAMES_IT)
def _roll_back(file: StoreFile) -> None:
    shutil.copy(file.older_copy, file.path)


@tampering(FILES, "the file replaced by a new store", None, NO_LONGER, None, NO_LONGER, why=NOTHING_NAMES_IT)
def _new_file(file: StoreFile) -> None:
    file.path.unlink()
    with closing(SqliteStore(file.path)):
        pass


@tampering(FILES, "the file emptied", NO_STORE)
def _empty_file(file: StoreFile) -> None:
    file.path.write_bytes(b"")


@tampering(FILES, "the file replaced by another database", NO_STORE)
def _other_database(file: StoreFile) -> None:
    file.path.unlink()
    file.run("CREATE TABLE notes (a)")


@tampering(
    FILES, "the exported heads emptied", None, "holds no exported head", None, "holds no exported head",
    why="the export is not looked at",
)  # fmt: skip
def _empty_export(file: StoreFile) -> None:
    file.heads.write_text("\n")


@tampering(
    FILES, "bytes of the exported heads damaged", None, "heads.jsonl:1: not an exported head", None,
    "heads.jsonl:1: not an exported head", why="the export is not looked at",
)  # fmt: skip
def _damaged_export(file: StoreFile) -> None:
    file.heads.write_bytes(file.heads.read_bytes().replace(b"session", b"session\xa8", 1))


@tampering(FILES, "the file cut to half its size", "not a readable database")
def _truncated(file: StoreFile) -> None:
    with file.path.open("r+b") as opened:
        opened.truncate(file.path.stat().st_size // 2)


@tampering(FILES, "a bit of an event flipped on the disk", CHANGED)
def _bit_flip(file: StoreFile) -> None:
    content = bytearray(file.path.read_bytes())
    position = content.rindex(b'"session_id":"ended"') + 16
    content[position] ^= 1
    file.path.write_bytes(content)


@tampering(
    FILES, "an entry of the exported heads changed", None, "of the exported heads differs from the store's", None,
    "of the exported heads differs from the store's", why="the export is not looked at",
)  # fmt: skip
def _edited_export(file: StoreFile) -> None:
    text = file.heads.read_text()
    file.heads.write_text(text.replace(f'"{ENDED}"', '"another"'))


@tampering(
    FILES, "the exported heads cut", None,
    why="it is an earlier export; `audit verify` reports the number of heads it compared",
)  # fmt: skip
def _cut_export(file: StoreFile) -> None:
    file.heads.write_text("".join(file.heads.read_text().splitlines(keepends=True)[:-1]))


# -- beside the record ----------------------------------------------------------------------------------------

BESIDE = "beside the record"

TEXTS = "captured texts"

statement(
    TEXTS, "a captured text replaced by bytes that are not one", "UPDATE contents SET body = zeroblob(9)",
    "is damaged",
)  # fmt: skip
statement(TEXTS, "the preview of a captured text changed", "UPDATE contents SET preview = 'other'", "is damaged")


@tampering(TEXTS, "a captured text replaced by that of another digest", "is not that of its digest")
def _exchange_texts(file: StoreFile) -> None:
    with file.connect() as connection:
        (first, *_), (second, *_) = connection.execute(
            "SELECT digest FROM contents WHERE preview LIKE 'please %' ORDER BY preview LIMIT 2"
        ).fetchall()
        connection.execute(
            "UPDATE contents SET (chars, preview, body) = (SELECT chars, preview, body FROM contents "
            "WHERE digest = ?) WHERE digest = ?",
            (first, second),
        )


@tampering(
    TEXTS, "a captured text replaced by one with a replaced secret", None,
    why="a digest is that of the text before its secrets are replaced",
)  # fmt: skip
def _redacted_text(file: StoreFile) -> None:
    text = "please use [redacted:api_key] now"
    file.run(
        "UPDATE contents SET chars = ?, preview = ?, body = ? WHERE preview = 'please 3'",
        len(text), text, zlib.compress(text.encode()),
    )  # fmt: skip


statement(
    TEXTS, "the key of the digests replaced", "UPDATE store SET digest_key = zeroblob(32)", None,
    why="no text has the digest of its key then, as in a store that only receives texts of other hosts",
)  # fmt: skip
statement(
    TEXTS, "the captured texts deleted", "DELETE FROM contents", None,
    why=f"{OUTSIDE}: texts may be deleted at any time; their digests are in the events",
)  # fmt: skip
statement(
    BESIDE, "the days of a deleted session added or changed",
    "INSERT INTO pruned_days VALUES (99, 20000, 'a', 'm', 'r', '', 990)", None,
    why=f"{OUTSIDE}: the events they were counted from are deleted",
)  # fmt: skip
statement(
    BESIDE, "the used quota of a plan changed", "INSERT INTO quotas VALUES ('codex', 300, 1999999999, 99, 1)",
    None, why=f"{OUTSIDE}: a status line reports it, and no event does",
)  # fmt: skip
statement(
    BESIDE, "a stream said to be received from another host",
    "INSERT INTO received_streams VALUES ('other', 'young', '[]')", None,
    why=f"{OUTSIDE}: it explains numbers that never arrived, not missing links",
)  # fmt: skip
statement(
    BESIDE, "the number of the next event raised", "UPDATE store SET next_seq = next_seq + 1000", None,
    why=f"{OUTSIDE}: numbers may be skipped",
)  # fmt: skip
statement(
    BESIDE, "a stored replay changed", "UPDATE replays SET name = 'other'", None,
    why=f"{OUTSIDE}: a replay is computed from the record and can be computed again",
)  # fmt: skip
statement(
    BESIDE, "the counters of deleted sessions changed", "UPDATE store SET metric_base = x'00'", None,
    why=f"{OUTSIDE}: the events they were counted from are deleted",
)  # fmt: skip
statement(
    BESIDE, "the search index emptied",
    "INSERT INTO events_text (events_text) VALUES ('delete-all')", None, why=f"{OUTSIDE}: it only finds events",
)  # fmt: skip
statement(
    BESIDE, "an agent's metric label deleted", "DELETE FROM agents", None,
    why=f"{OUTSIDE}: labels are given again when they are needed",
)  # fmt: skip


# -- the table of the documentation ---------------------------------------------------------------------------


def table() -> str:
    """Return the tamperings as Markdown: what each way reports, and why it does not where it does not."""
    lines = [
        f"| part | tampering | {' | '.join(WAYS)} | reported as, or why not |",
        "|" + " --- |" * (len(WAYS) + 3),
    ]
    for one in TAMPERINGS:
        cells = ["not visible" if report is None else "found" for report in one.reports]
        texts = dict.fromkeys(f"“{report}”" for report in one.reports if report is not None)
        notes = [", ".join(texts)] * bool(texts) + [one.why] * bool(one.why)
        lines.append(f"| {one.part} | {one.name} | {' | '.join(cells)} | {'; '.join(notes)} |")
    return "\n".join(lines)
