"""Captured content, and the registries shared by processes."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from windowpane.core.events import BlockAdded, FidelityEvaluated
from windowpane.core.events.compression import FactOutcome
from windowpane.core.redaction import redact
from windowpane.exceptions import ConfigurationError
from windowpane.outputs.http.service_discovery import running_targets, this_machine
from windowpane.store.embedded import SqliteStore


def test_captured_content_is_redacted_and_can_be_deleted(stores, make_session):
    store = stores.open(capture=True, redact=lambda text: text.replace("please", "[redacted:word]"))
    events = make_session(turns=4)
    fact = FidelityEvaluated("probe", 1.0, 1.0, facts=(FactOutcome("path", "kept", "f1", "a fact, please"),))
    store.append([*events, events[-1]._replace(n=len(events), data=fact)])
    block = next(
        e.data.block for e in events if isinstance(e.data, BlockAdded) and e.data.block.text == "please 1"
    )

    assert store.content(block.digest) == "[redacted:word] 1"
    assert store.content("f1") == "a fact, [redacted:word]"
    row = next(row for row in store.blocks_at("s1", 99) if row.block_id == block.id)
    assert row.preview == "[redacted:word] 1"
    assert store.prune(max_bytes=1) == 1
    assert store.content(block.digest) is None
    assert store.size().contents == 0
    assert store.verify().intact
    store.close()


def test_a_secret_over_two_blocks_is_not_stored(stores, make_session):
    events = make_session(turns=4)
    number, event = next((n, e) for n, e in enumerate(events) if isinstance(e.data, BlockAdded))
    halves = ("the token is ghp_aB3dE6gH9jK2", "mN5pQ8sT1vW4yZ7bC0fG6hJ6kL9x and more")
    parts = [
        BlockAdded(replace(event.data.block, id=f"b{n}", text=half, digest=f"half {n}"))
        for n, half in enumerate(halves)
    ]
    store = stores.open(capture=True, redact=lambda text: redact(text).text)
    store.append([*events[:number], *(event._replace(n=number + n, data=part) for n, part in enumerate(parts))])
    store.flush()

    assert store.content("half 0") == "the token is [redacted:github_token]"
    assert store.content("half 1") == " and more"
    store.close()


def test_content_is_captured_when_a_recording_is_imported_again(stores, make_session):
    events = make_session(turns=3)
    for capture in (False, True):
        store = stores.open(capture=capture, redact=str)
        assert store.import_session(lambda: events).revision == 1
        assert bool(store.size().contents) == capture
        store.close()


def test_capture_needs_a_redactor(stores):
    with pytest.raises(ConfigurationError, match="redact"):
        stores.open(capture=True)


# -- registries -----------------------------------------------------------------------------------------------


def test_the_first_fifty_agents_have_their_own_labels(stores, store):
    labels = [store.admit_agent(f"agent {number}") for number in range(60)]
    other = stores.open()

    assert labels[:50] == [f"agent_{number}" for number in range(50)]
    assert set(labels[50:]) == {"other"}
    assert other.admit_agent("agent 7") == "agent_7"
    assert other.admit_agent("agent 55") == "other"
    assert store.admit_agent("x" * 100) == "other"
    other.close()


def test_a_label_has_at_most_64_characters(store):
    assert store.admit_agent("a" * 100) == "a" * 64


def test_digests_are_keyed_by_store(stores, store, tmp_path):
    again, other = stores.read(), SqliteStore(tmp_path / "other.db")

    assert store.digester()("text") == again.digester()("text")
    assert store.digester()("text") != other.digester()("text")
    assert len(store.digester()("text")) == 32
    other.close()
    again.close()


def test_endpoints_are_registered_and_unregistered(store):
    store.register_endpoint("127.0.0.1", 9464, pid=1, started_at=1.0)
    store.register_endpoint("127.0.0.1", 9465, pid=2, started_at=2.0)
    store.register_endpoint("127.0.0.1", 9464, pid=3, started_at=3.0)

    assert [(item.port, item.pid) for item in store.endpoints()] == [(9465, 2), (9464, 3)]
    store.unregister_endpoint("127.0.0.1", 9465)
    assert [item.port for item in store.endpoints()] == [9464]


def test_two_machines_of_a_store_use_the_same_port(store):
    for machine in ("one", this_machine()):
        store.register_endpoint("127.0.0.1", 9464, pid=os.getpid(), started_at=1.0, machine=machine)
    assert len(store.endpoints()) == 2
    assert len(running_targets(store.endpoints())) == 1

    store.unregister_endpoint("127.0.0.1", 9464, machine="one")
    assert [item.machine for item in store.endpoints()] == [this_machine()]
