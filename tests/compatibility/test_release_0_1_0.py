"""From release 0.1.0 on, what a release wrote is read by every later one; the files' README has the rules."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.compatibility.made_store import KEY, rows_of, session
from tests.compatibility.made_task import TASK_ID, open_task
from tests.compatibility.make_release import RELEASE

from windowpane.config.loading import load_config
from windowpane.config.section import Section
from windowpane.core.codec import decode, encode
from windowpane.core.events import PAYLOADS
from windowpane.core.version import package_version
from windowpane.store.embedded import SqliteStore

THIS_RELEASE = pytest.mark.skipif(
    package_version() not in ("0.1.0", "0+source"), reason="a later release has files of its own"
)
EVENTS = (RELEASE / "events.jsonl").read_bytes().splitlines()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    """The store of the release, opened for writing."""
    path = tmp_path / "windowpane.db"
    path.write_bytes(gzip.decompress((RELEASE / "store.db.gz").read_bytes()))
    with closing(SqliteStore(path, audit_key=KEY)) as opened:
        yield opened


def assert_contains(new: Any, old: Any) -> None:
    """Assert that *new* is *old*, apart from further keys of objects."""
    if isinstance(old, dict):
        for name, value in old.items():
            assert_contains(new[name], value)
    elif isinstance(old, list):
        assert len(new) == len(old)
        for one, other in zip(new, old, strict=True):
            assert_contains(one, other)
    else:
        assert new == old


# -- the store ------------------------------------------------------------------------------------------------


def test_the_store_gives_the_rows_that_it_gave(store: SqliteStore) -> None:
    expected = json.loads((RELEASE / "rows.json").read_text())

    assert_contains(rows_of(store), expected)


def test_the_store_verifies_against_the_exported_heads(store: SqliteStore) -> None:
    verification = store.verify(heads_file=RELEASE / "heads.jsonl")

    assert verification.intact, verification.broken
    assert verification.keyed
    assert verification.projections


def test_its_events_are_folded_to_the_same_rows(store: SqliteStore) -> None:
    before = rows_of(store)

    store.rebuild_projections()

    assert rows_of(store) == before


def test_the_store_is_continued(store: SqliteStore) -> None:
    recorded = store.import_session(lambda: session("recorded", 7))
    store.append(session("later", 3))
    store.prune(max_bytes=1)

    assert not recorded.is_shorter
    assert store.session("later") is None
    store.append(session("last", 3))
    assert store.session("last") is not None
    assert store.verify(heads_file=RELEASE / "heads.jsonl").intact


def test_a_new_store_has_the_tables_of_a_migrated_one(store: SqliteStore, tmp_path: Path) -> None:
    """A change of the catalogue without a migration would leave older stores behind."""
    with closing(SqliteStore(tmp_path / "new.db", capture=True, redact=str)) as new:
        new.append(session("live", 3))
        new.index_text()

        assert schema_of(store.path) == schema_of(new.path)


def schema_of(path: Path) -> dict[str, Any]:
    """The columns of each table, whatever their order, and the statements of the indexes and triggers."""
    with closing(sqlite3.connect(path)) as connection:
        objects = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
        return {
            name: sql
            if kind != "table"
            else {row[1:] for row in connection.execute(f"PRAGMA table_info({name})")}
            for kind, name, sql in objects
        }


# -- events ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("raw", EVENTS, ids=[json.loads(raw)["type"] for raw in EVENTS])
def test_an_event_keeps_its_type_and_fields(raw: bytes) -> None:
    event = decode(raw)

    assert type(event.data) is PAYLOADS[event.type]
    assert_contains(json.loads(encode(event)), json.loads(raw))


# -- checkpoints ----------------------------------------------------------------------------------------------


def test_a_task_is_resumed_from_its_checkpoint(tmp_path: Path) -> None:
    (tmp_path / f"{TASK_ID}.json").write_bytes((RELEASE / "checkpoint.json").read_bytes())

    with open_task(tmp_path) as window:
        assert window.task.resumed is not None
        assert "read the old client" in str(window.messages())


# -- configuration --------------------------------------------------------------------------------------------


def test_every_key_of_the_configuration_is_accepted() -> None:
    load_config(RELEASE / "config.yml", environ={})


# -- until the release is out, the files have everything of it -------------------------------------------------


@THIS_RELEASE
def test_every_type_of_event_is_frozen() -> None:
    assert {json.loads(raw)["type"] for raw in EVENTS} == set(PAYLOADS)


@THIS_RELEASE
def test_every_key_of_the_configuration_is_frozen() -> None:
    config = load_config(RELEASE / "config.yml", environ={})

    assert unset_keys([config]) == set()


def unset_keys(sections: Sequence[Section]) -> set[str]:
    """Return the keys that none of the sections of one kind sets."""
    unset = set()
    for name in type(sections[0]).model_fields:
        values = [getattr(section, name) for section in sections if name in section.model_fields_set]
        if not values:
            unset.add(name)
        inner = [model for value in values for model in models_in(value)]
        if inner:
            unset |= {f"{name}.{key}" for key in unset_keys(inner)}
    return unset


def models_in(value: object) -> Iterator[Section]:
    """Yield the sections in a value of a key."""
    if isinstance(value, Section):
        yield value
    elif isinstance(value, dict | tuple):
        yield from (
            model for one in (value.values() if isinstance(value, dict) else value) for model in models_in(one)
        )
