"""What a store keeps beside events: its text index, captured content and the small registries."""

from __future__ import annotations

import pytest

from windowpane.core.events import BlockAdded, FidelityEvaluated
from windowpane.core.events.content import FactOutcome
from windowpane.exceptions import ConfigurationError
from windowpane.store import search
from windowpane.store.interface import EventFilter
from windowpane.store.sqlite import SqliteReader, SqliteStore


def test_search_finds_the_same_with_and_without_the_index(store, make_session):
    """Words of names and payloads are found, all of them, the last perhaps only begun."""
    store.append(make_session("s1", turns=9))
    store.append(make_session("s2", turns=9))
    queries = [
        EventFilter(text="compaction extractive"),
        EventFilter(text="hybr"),
        EventFilter(text="tool_result", session_id="s2", limit=3, newest_first=True),
        EventFilter(text="block.added", turn_from=2, turn_to=3, session_id="s1"),
        EventFilter(text="nowhere"),
        EventFilter(text="placeholder", types=("blocks.evicted",)),
    ]
    plain = [(store.events(query), store.count_events(query)) for query in queries]
    assert store.index_text(limit=40) == 40
    half = [(store.events(query), store.count_events(query)) for query in queries]
    while store.index_text():
        pass
    whole = [(store.events(query), store.count_events(query)) for query in queries]

    assert plain == half == whole
    assert [bool(found) for found, _ in whole] == [True, True, True, True, False, False]
    assert len(whole[2][0]) == 3


@pytest.mark.parametrize("setting", ["PREFIX_WORDS", "READ_THROUGH"])
@pytest.mark.parametrize("newest_first", [False, True])
def test_every_way_of_searching_finds_the_same(store, make_session, monkeypatch, setting, newest_first):
    """Begun words looked up or left to the index, a session read through or looked up: the same events."""
    for name in ("s1", "s2", "s3"):
        store.append(make_session(name, turns=9))
    while store.index_text():
        pass
    asked = [
        {"text": "t"},
        {"text": "tool"},
        {"text": "read tool", "session_id": "s2"},
        {"text": "tool_result", "session_id": "s3", "turn_from": 3, "turn_to": 6},
        {"text": "tool", "types": ("block.added", "turn.ended"), "session_id": "s1"},
        {"text": "tool", "types": ("turn.ended", "session.started")},
        {"text": "tool", "after_seq": 30},
        {"text": "to\u0308ol"},
    ]
    queries = [EventFilter(**each, limit=7, newest_first=newest_first) for each in asked]

    usual = [(store.events(query), store.count_events(query)) for query in queries]
    monkeypatch.setattr(search, setting, 0)
    other = [(store.events(query), store.count_events(query)) for query in queries]

    assert usual == other
    assert [len(found) for found, _ in usual[:5]] == [7] * 5
    assert {item.event.context.session_id for item in usual[2][0]} == {"s2"}


def test_only_wanted_types_are_searched(store, make_session):
    """Another event whose payload names the wanted type is no match."""
    store.append(make_session("s1", turns=9))
    while store.index_text():
        pass

    found = store.events(EventFilter(text="tool", types=("block.added",)))

    assert found
    assert {type(item.event.data) for item in found} == {BlockAdded}


# -- content --------------------------------------------------------------------------------------------------


def test_no_content_is_stored_unless_asked(store, make_session):
    """Without capture the file holds no text of any block."""
    store.append(make_session(turns=4))
    store.flush()

    assert store.size().contents == 0
    assert all(b"please 1" not in file.read_bytes() for file in store.path.parent.iterdir())


def test_captured_content_is_redacted_and_can_be_forgotten(tmp_path, make_session):
    """Texts of blocks and facts are kept once a digest, redacted; forgetting them leaves the chain intact."""
    store = SqliteStore(
        tmp_path / "w.db", capture=True, redact=lambda text: text.replace("please", "[redacted:word]")
    )
    events = make_session(turns=4)
    fact = FidelityEvaluated("probe", 1.0, 1.0, facts=(FactOutcome("path", "kept", "f1", "a fact, please"),))
    store.append([*events, events[-1]._replace(n=len(events), data=fact)])
    asked = next(
        e.data.block for e in events if isinstance(e.data, BlockAdded) and e.data.block.text == "please 1"
    )

    assert store.content(asked.digest) == "[redacted:word] 1"
    assert store.content("f1") == "a fact, [redacted:word]"
    row = next(row for row in store.blocks_at("s1", 99) if row.block_id == asked.id)
    assert row.preview == "[redacted:word] 1"
    assert store.delete_content(asked.digest) == 1
    assert store.content(asked.digest) is None
    assert store.delete_content() > 0
    assert store.size().contents == 0
    assert store.verify().intact
    store.close()


def test_content_is_captured_when_a_recording_is_imported_again(tmp_path, make_session):
    """Switching capture on later fills in the texts of what is stored already."""
    events = make_session(turns=3)
    for capture in (False, True):
        store = SqliteStore(tmp_path / "w.db", capture=capture, redact=str)
        assert store.import_session(lambda: events).revision == 1
        assert bool(store.size().contents) == capture
        store.close()


def test_capture_needs_a_redactor(tmp_path):
    """Nothing is ever captured unredacted by oversight."""
    with pytest.raises(ConfigurationError, match="redact"):
        SqliteStore(tmp_path / "w.db", capture=True)


# -- registries -----------------------------------------------------------------------------------------------


def test_the_first_fifty_agents_have_names_of_their_own(store):
    """Labels are bounded and alike in every process; what a label cannot carry is replaced."""
    labels = [store.admit_agent(f"agent {number}") for number in range(60)]
    other = SqliteStore(store.path)

    assert labels[:50] == [f"agent_{number}" for number in range(50)]
    assert set(labels[50:]) == {"other"}
    assert other.admit_agent("agent 7") == "agent_7"
    assert other.admit_agent("agent 55") == "other"
    assert store.admit_agent("x" * 100) == "other"
    other.close()


def test_digests_are_keyed_by_store(store, tmp_path):
    """One store gives one digest, in every process; another store gives another."""
    again, other = SqliteReader(store.path), SqliteStore(tmp_path / "other.db")

    assert store.digester()("text") == again.digester()("text")
    assert store.digester()("text") != other.digester()("text")
    assert len(store.digester()("text")) == 32
    other.close()
    again.close()


def test_endpoints_come_and_go(store):
    """Running endpoints are listed until they are taken away; a restart at the same address replaces."""
    store.register_endpoint("127.0.0.1", 9464, pid=1, started_at=1.0)
    store.register_endpoint("127.0.0.1", 9465, pid=2, started_at=2.0)
    store.register_endpoint("127.0.0.1", 9464, pid=3, started_at=3.0)

    assert [(item.port, item.pid) for item in store.endpoints()] == [(9465, 2), (9464, 3)]
    store.unregister_endpoint("127.0.0.1", 9465)
    assert [item.port for item in store.endpoints()] == [9464]
