"""Every change of the file is detected and located as documented."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import msgspec
import pytest
from tests.store.conformance.direct_access import edit, fetch
from tests.store.conftest import make_tracker

from windowpane.alerts.delivery.outbox import Outbox
from windowpane.core.events import TelemetryDropped
from windowpane.exceptions import ConfigurationError, StoreError
from windowpane.store.audit.verification import verify
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import EventFilter
from windowpane.store.keys import AuditKeys, link_with, load_key
from windowpane.store.store import Store
from windowpane.store.writes.chain import genesis

KEY = b"an audit key of the tests"
OTHER_KEY = b"another key of the tests"
THIRD_KEY = b"a third key of the tests"


@pytest.fixture(params=[None, KEY], ids=["without key", "with key"])
def filled(stores, request, make_session):
    """A store with two sessions, with and without an audit key."""
    store = stores.open(audit_key=request.param)
    store.append(make_session("s1", turns=4))
    store.append(make_session("s2", turns=4))
    yield store
    store.close()


def change_body(store: Store, seq: int, change: Callable[[bytes], bytes]) -> None:
    ((body,),) = fetch(store, "SELECT body FROM events WHERE seq = ?", seq)
    edit(store, "UPDATE events SET body = ? WHERE seq = ?", change(body), seq)


def test_an_untouched_store_is_intact(filled):
    result = filled.verify()

    assert result.intact
    assert result.sessions == 2
    assert result.events == filled.size().events
    assert result.keyed == (filled._audit_key is not None)
    assert filled.verify("s1").sessions == 1


def test_any_changed_byte_is_detected_at_its_event(filled):
    body = filled.events(EventFilter(session_id="s1"))[6]
    ((raw,),) = fetch(filled, "SELECT body FROM events WHERE seq = ?", body.seq)
    for position in range(0, len(raw), 23):
        change_body(filled, body.seq, lambda old, at=position: old[:at] + bytes([old[at] ^ 1]) + old[at + 1 :])
        (link,) = filled.verify().broken
        assert (link.session_id, link.seq) == ("s1", body.seq)
        edit(filled, "UPDATE events SET body = ? WHERE seq = ?", raw, body.seq)
    assert filled.verify().intact


@pytest.mark.parametrize(
    ("statement", "seq"),
    [
        ("UPDATE events SET hash = ? WHERE seq = 5", 5),
        ("UPDATE events SET turn = turn + 1 WHERE seq = 5", 5),
        ("UPDATE events SET type = type + 1 WHERE seq = 5", 5),
        ("UPDATE events SET at = at + 1 WHERE seq = 5", 5),
        ("DELETE FROM events WHERE seq = 5", 6),
        ("DELETE FROM events WHERE seq = 1", 2),
        ("UPDATE events SET seq = seq + 1000000 WHERE seq = 5", 6),
    ],
)
def test_changed_moved_and_deleted_rows_are_detected(filled, statement, seq):
    edit(filled, statement, *[bytes(32)] * statement.count("?"))

    (link,) = filled.verify().broken
    assert (link.session_id, link.seq) == ("s1", seq)


def test_a_changed_head_of_a_session_is_detected(filled):
    edit(filled, "UPDATE sessions SET head_hash = ? WHERE key = 1", bytes(32))

    (link,) = filled.verify().broken
    assert link.session_id == "s1"


def test_swapped_events_are_detected(filled):
    edit(filled, "UPDATE events SET seq = 1000000 WHERE seq = 5")
    edit(filled, "UPDATE events SET seq = 5 WHERE seq = 6")
    edit(filled, "UPDATE events SET seq = 6 WHERE seq = 1000000")

    (link,) = filled.verify().broken
    assert link.seq == 5


def test_an_event_moved_to_another_session_breaks_both(filled):
    edit(filled, "UPDATE events SET session = 2 WHERE seq = 5")

    assert {link.session_id for link in filled.verify().broken} == {"s1", "s2"}


def test_a_cut_tail_is_detected_by_the_recorded_head(filled):
    last = filled.events(EventFilter(session_id="s1", limit=10_000))[-1].seq
    edit(filled, "DELETE FROM events WHERE seq = ?", last)

    (link,) = filled.verify().broken
    assert link.session_id == "s1"
    assert "ends after" in link.problem


def test_a_deleted_session_is_detected_by_the_store_wide_chain(filled):
    edit(filled, "DELETE FROM events WHERE session = 2")
    edit(filled, "DELETE FROM sessions WHERE key = 2")

    (link,) = filled.verify().broken
    assert link.session_id == "s2"
    assert "the whole session is missing" in link.problem


def test_events_without_a_session_are_detected(filled):
    edit(filled, "UPDATE events SET session = 99 WHERE seq = 5")

    assert any("belongs to no session" in link.problem for link in filled.verify().broken)


def test_a_cut_that_repairs_the_heads_is_detected_by_exported_heads(filled, tmp_path):
    exported = tmp_path / "heads.jsonl"
    entries = filled.export_heads(exported)
    assert entries == (2 if filled._audit_key is None else 3)
    assert filled.verify(heads_file=exported).intact
    last = "SELECT seq, hash FROM events WHERE session = 2 ORDER BY seq DESC LIMIT 1 OFFSET 1"
    ((seq, retained),) = fetch(filled, last)
    edit(filled, "DELETE FROM events WHERE session = 2 AND seq > ?", seq)
    edit(
        filled,
        "UPDATE sessions SET events = events - 1, head_seq = ?, head_hash = ? WHERE key = 2",
        seq,
        retained,
    )
    edit(
        filled,
        "UPDATE event_types SET events = (SELECT count(*) FROM events WHERE events.type = event_types.id)",
    )
    edit(filled, "DELETE FROM heads WHERE id = ?", entries)

    filled.rebuild_projections()

    assert filled.verify().intact, "inside the store nothing is left to find it by"
    result = filled.verify(heads_file=exported)
    assert {link.session_id for link in result.broken} == {"s2"}


def test_a_changed_head_entry_is_detected(filled):
    edit(filled, "UPDATE heads SET events = events + 1 WHERE id = 1")

    assert any("entry 1 of the heads is broken" in link.problem for link in filled.verify().broken)


def test_a_recomputed_chain_passes_without_a_key_and_fails_with_one(tmp_path, make_session):
    for key in (None, KEY):
        store = SqliteStore(tmp_path / f"{key is None}.db", audit_key=key)
        store.append(make_session("s1", turns=2, end=False))
        change_body(store, 3, lambda body: body.replace(b"reviewer", b"revi3wer"))
        recompute_without_key(store)
        assert store.verify().intact == (key is None)
        store.close()


def test_a_recomputed_chain_is_detected_by_the_recorded_head(stores, make_session):
    store = stores.open()
    store.append(make_session("s1", turns=2))
    change_body(store, 3, lambda body: body.replace(b"reviewer", b"revi3wer"))
    recompute_without_key(store)

    (link,) = store.verify().broken
    assert "differs from a head that was recorded" in link.problem
    store.close()


def test_a_chain_cannot_lose_its_key(stores, make_session):
    store = stores.open(audit_key=KEY)
    store.append(make_session("s1", turns=2))
    recompute_without_key(store)
    edit(store, "UPDATE sessions SET keyed_by = ''")

    (link,) = store.verify().broken
    assert "key was changed after its head was recorded" in link.problem
    store.close()


def recompute_without_key(store: Store) -> None:
    """Recompute the chain as someone can who may write the file but has no key."""
    link, previous = link_with(None), genesis("s1", 1)
    for seq, body in fetch(store, "SELECT seq, body FROM events ORDER BY seq"):
        previous = link(previous, body)
        edit(store, "UPDATE events SET hash = ? WHERE seq = ?", previous, seq)
    edit(store, "UPDATE sessions SET head_hash = ?", previous)


def test_a_keyed_chain_needs_its_key(stores, make_session):
    events = make_session("s1", turns=3)
    store = stores.open(audit_key=KEY)
    store.append(events[:20])
    store.close()
    for key in (None, OTHER_KEY):
        store = stores.open(audit_key=key)
        assert "needs the audit key" in store.verify().broken[0].problem
        store.close()
    store = stores.open()
    with pytest.raises(StoreError, match="its audit chain uses the key"):
        store.append(events[20:])
    assert store.size().events == 20
    store.close()


def test_a_new_key_takes_over_and_the_old_one_still_verifies(stores, make_session):
    events = make_session("s1", turns=3)
    for key, batch in ((KEY, events[:10]), (OTHER_KEY, events[10:20]), (THIRD_KEY, events[20:])):
        store = stores.open(audit_key=key)
        store.append(batch)
        store.close()

    with closing(stores.open(audit_key=THIRD_KEY, old_audit_keys=[KEY, OTHER_KEY])) as store:
        assert store.verify().intact
        assert store.verify().keyed
        assert [head.kind for head in store.heads()] == ["keyed", "rekeyed", "rekeyed", "head"]
    with closing(stores.open(audit_key=THIRD_KEY, old_audit_keys=[KEY])) as store:
        assert "needs the audit key" in store.verify().broken[0].problem


def test_what_a_store_holds_before_its_key_is_reported_until_it_is_accepted(stores, make_session, caplog):
    events, unkeyed = make_session("s1", turns=3), 20 + len(make_session("s2", turns=2))
    for key, batch in ((None, events[:20]), (None, make_session("s2", turns=2)), (KEY, events[20:])):
        store = stores.open(audit_key=key)
        store.append(batch)
        store.close()
    assert caplog.text.count("the store holds events that were recorded without an audit key") == 1

    with closing(stores.open(audit_key=KEY)) as store:
        (link,) = store.verify().broken
        assert (link.session_id, link.problem.startswith(f"{unkeyed} events and 1 heads without a")) == ("", True)
        assert store.verify(expect_key=False).broken == (link,), "some of it is signed"

        accepted = store.accept_unkeyed()
        result = store.verify()
        assert (result.intact, result.keyed) == (True, True)
        assert (result.unkeyed_events, accepted.events) == (unkeyed, unkeyed)
        assert result.accepted == (accepted,)
    with closing(stores.open()) as store:
        store.append(make_session("s3", turns=1))
    with closing(stores.open(audit_key=KEY)) as store:
        assert [(link.session_id, link.problem) for link in store.verify().broken] == [
            ("s3", "entry 5 of the heads (head) is not signed, in a store that has a key"),
            ("s3", "recorded without a key, in a store that has one"),
        ]
        store.accept_unkeyed()
        assert store.verify().intact
        assert len(store.verify().accepted) == 2


SCHEMA_CHANGES = {
    "sqlite": {
        "CREATE TRIGGER t BEFORE INSERT ON heads BEGIN SELECT raise(ignore); END": "trigger t does not belong",
        "DROP INDEX events_at": "index events_at is missing",
        "DROP TABLE quotas": "table quotas is missing",
    },
    "postgresql": {
        "CREATE RULE r AS ON INSERT TO heads DO INSTEAD NOTHING": "rule r does not belong",
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; "
        "CREATE TRIGGER t BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION f()": "trigger t does not belong",
        "CREATE OR REPLACE FUNCTION session_days_insert() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN RETURN NULL; END'": "trigger session_days_insert is not defined",
        "ALTER TABLE session_days DISABLE TRIGGER ALL": "trigger session_days_insert is not defined",
        "ALTER TABLE alerts ENABLE ROW LEVEL SECURITY": "row security of alerts does not belong",
        "ALTER TABLE alerts ADD CONSTRAINT c CHECK (severity <> 'x')": "constraint c does not belong",
        "ALTER TABLE quotas ADD COLUMN used bigint GENERATED ALWAYS AS (1) STORED": "table quotas is not defined",
        "ALTER TABLE alerts RENAME TO others; CREATE VIEW alerts AS SELECT * FROM others": "table alerts is not",
        "DROP INDEX events_at": "index events_at is missing",
        "DROP TABLE quotas": "table quotas is missing",
    },
}  # fmt: skip


def test_changes_of_the_schema_are_reported(stores, make_session):
    store = stores.open()
    store.append(make_session("s1", turns=1))
    database = store.engine.open_writer()
    with closing(database):
        for statement, problem in SCHEMA_CHANGES["sqlite" if stores.is_sqlite else "postgresql"].items():
            database.execute("BEGIN")
            database.execute(statement)
            broken = verify(database, keys=AuditKeys()).broken
            database.execute("ROLLBACK")
            assert any(link.problem.startswith(problem) for link in broken), (statement, broken)


def test_the_outbox_of_alerts_in_the_file_of_a_store_is_no_change_and_a_trigger_on_it_is(stores, make_session):
    if not stores.is_sqlite:
        pytest.skip("the outbox is a file of its own")
    store = stores.open()
    store.append(make_session("s1", turns=1))
    with closing(Outbox(store.path)) as outbox:
        assert outbox.lease("log", now=1.0, due_by=1.0, until=2.0) == []
    assert store.verify().intact

    edit(store, "CREATE TRIGGER t BEFORE INSERT ON notification_outbox BEGIN SELECT raise(ignore); END")
    (link,) = store.verify().broken
    assert link.problem == "trigger t does not belong to a store"


def test_a_store_without_its_row_is_broken(stores, make_session):
    store = stores.open()
    store.append(make_session("s1", turns=1))
    edit(store, "DELETE FROM store")

    assert "the row of table store is missing" in [link.problem for link in store.verify().broken]


def test_a_captured_text_that_is_not_that_of_its_digest_is_reported(stores, make_session):
    store = stores.open(capture=True, redact=str)
    edit(store, "UPDATE store SET digest_key = ?", b"")  # the digests of the session have no key
    store.append(make_session("s1", turns=3))
    assert store.verify().intact

    edit(
        store,
        "UPDATE contents SET (chars, preview, body) = (SELECT chars, preview, body FROM contents "
        "WHERE preview = 'please 1') WHERE preview = 'please 2'",
    )
    (link,) = store.verify().broken
    assert "is not that of its digest" in link.problem


def test_a_text_that_continues_a_secret_of_the_one_before_is_not_reported(stores, make_session):
    store = stores.open(capture=True, redact=str)
    edit(store, "UPDATE store SET digest_key = ?", b"")
    tracker = make_tracker("s1", store.append)
    tracker.start(1.0)
    for text in ("hello", "the key is sk-ant-api03-AbCdEfGhIj", "KlMnOpQrStUvWxYz0123456789-AbCdEfGh and more"):
        tracker.add("user_message", text, 9, at=1.0)
    tracker.end_turn(at=2.0)

    texts = [text for (text,) in fetch(store, "SELECT preview FROM contents ORDER BY preview")]
    assert texts == ["and more", "hello", "the key is [redacted:anthropic_key]"]
    assert store.verify().intact


def test_a_store_without_signatures_is_expected_to_have_a_key_where_one_is_set(stores, make_session):
    with closing(stores.open()) as store:
        store.append(make_session("s1", turns=1))
        assert store.verify().intact
        assert not store.verify(expect_key=True).intact
    with closing(stores.open(audit_key=KEY)) as store:
        assert not store.verify().intact
        assert store.verify(expect_key=False).intact


def test_a_rewritten_history_is_not_signed_by_the_next_write_with_the_key(stores, make_session):
    with closing(stores.open(audit_key=KEY)) as store:
        store.append(make_session("s1", turns=1, end=False))
        change_body(store, 3, lambda body: body.replace(b"reviewer", b"revi3wer"))
        recompute_without_key(store)
        edit(store, "UPDATE sessions SET keyed_by = ''")
        edit(store, "DELETE FROM heads")
    with closing(stores.open(audit_key=KEY)) as store:
        store.rebuild_projections()
        store.append(make_session("s2", turns=1))
        store.export_heads("/dev/null")
        assert "never accepted" in store.verify().broken[-1].problem


def test_without_the_key_nothing_unsigned_enters_a_keyed_stores_heads(stores, make_session, caplog):
    """Retention and the export of heads refuse to add an entry that verification would report as broken."""
    with closing(stores.open(audit_key=KEY)) as store:
        store.append(make_session("s1", turns=1, start=1e9))
        store.append(make_session("s2", turns=1, end=False))
    with closing(stores.open()) as store:
        assert "this process has none" in caplog.text
        with pytest.raises(StoreError, match="deleting a session would break the chain"):
            store.prune(before=1.1e9)
        with pytest.raises(StoreError, match="adding heads to it would break the chain"):
            store.heads()
    with closing(stores.open(audit_key=KEY)) as store:
        assert store.verify().intact
        assert store.prune(before=1.1e9) == 1
        assert store.heads()[-1].signed_by
        assert store.verify().intact


def test_signatures_that_disappeared_are_not_accepted_as_an_older_store(stores, make_session):
    with closing(stores.open(audit_key=KEY)) as store:
        store.append(make_session("s1", turns=1))
    with closing(stores.open(audit_key=KEY)) as store:
        recompute_without_key(store)
        edit(store, "UPDATE sessions SET keyed_by = ''")
        edit(store, "DELETE FROM heads")
        assert not store.verify().intact

        store.append(make_session("s2", turns=1))
        assert not store.verify().intact


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE sessions SET head_hash = 'text', events = 'many'",
        "UPDATE heads SET head = 'text'",
        "UPDATE heads SET hash = 5, events = 'all'",
        "UPDATE sessions SET memory = 'text'",
        "UPDATE events SET body = 'text', hash = 3 WHERE seq = 4",
        "UPDATE event_types SET events = 'text'",
    ],
)
def test_values_of_other_types_are_reported(stores, filled, statement):
    if not stores.is_sqlite:
        pytest.skip("the database refuses a value of another type")
    edit(filled, statement)

    assert not filled.verify().intact


def test_a_body_that_is_not_an_event_is_reported(stores, make_session):
    store = stores.open()
    store.append(make_session("s1", turns=1, end=False))
    change_body(store, 3, lambda _: b"[1, 2]")
    recompute_without_key(store)

    (link,) = store.verify().broken
    assert link.seq == 3
    assert "are not an event" in link.problem
    store.close()


def test_reported_gaps_are_explained_and_others_are_cuts(stores, make_session):
    events = make_session("s1", turns=3, end=False)
    report = events[-1]._replace(n=len(events), data=TelemetryDropped(10, 14, "queue full"))
    store = stores.open()
    store.append([*events[:10], *events[15:]])

    (link,) = store.verify().broken
    assert (link.seq, "events 10 to 14" in link.problem) == (11, True)

    store.append([report])
    assert store.verify().intact
    assert store.verify().explained_gaps == 1
    store.close()


def test_each_gap_is_explained_by_its_own_report(stores, make_session):
    events = make_session("s1", turns=3, end=False)
    reports = [
        events[-1]._replace(n=len(events) + at, data=TelemetryDropped(first, last, "queue full"))
        for at, (first, last) in enumerate([(3, 4), (10, 14)])
    ]
    store = stores.open()
    store.append([*events[:3], *events[5:10], *events[15:], reports[0]])
    assert "events 10 to 14" in store.verify().broken[0].problem

    store.append(reports[1:])
    assert store.verify().intact
    assert store.verify().explained_gaps == 2
    store.close()


def test_unreadable_exported_heads_are_reported_with_file_and_line(filled, tmp_path):
    file = tmp_path / "heads.jsonl"
    file.write_bytes(msgspec.json.encode(filled.heads()[0]) + b"\nnonsense\n")

    with pytest.raises(StoreError, match=r"heads\.jsonl:2: not an exported head"):
        filled.verify(heads_file=file)
    file.write_bytes(b'{"id":1,"kind":"head","session\xa8id":"a","signed_by":"\x96"}\n')
    with pytest.raises(StoreError, match=r"heads\.jsonl:1: not an exported head"):
        filled.verify(heads_file=file)


@pytest.mark.parametrize("file", ["/dev/null", "/dev/zero", "empty.jsonl"])
def test_exported_heads_without_an_entry_are_an_error(filled, tmp_path, file):
    (tmp_path / "empty.jsonl").write_bytes(b"\n")

    with pytest.raises(StoreError, match="expected a file that `windowpane audit heads` wrote"):
        filled.verify(heads_file=tmp_path / file)


def test_the_key_comes_from_the_environment_or_a_file(tmp_path):
    file = tmp_path / "key"
    file.write_bytes(KEY + b"\n")

    assert load_key({}) is None
    assert load_key({"WINDOWPANE_AUDIT_KEY": KEY.decode()}) == KEY
    assert load_key({"WINDOWPANE_AUDIT_KEY_FILE": str(file)}) == KEY
    with pytest.raises(ConfigurationError, match="WINDOWPANE_AUDIT_KEY: has 5 bytes"):
        load_key({"WINDOWPANE_AUDIT_KEY": "short"})
    with pytest.raises(ConfigurationError, match="cannot read"):
        load_key({"WINDOWPANE_AUDIT_KEY_FILE": str(tmp_path / "none")})
