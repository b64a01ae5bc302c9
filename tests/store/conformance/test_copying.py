"""A store copied into another one, of the same kind or another, is the same store."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.sampling import EVERYTHING
from tests.store.conformance.conftest import Stores
from tests.store.conformance.direct_access import PROJECTIONS, contents_of, edit, fetch

from windowpane.core.events import Event
from windowpane.exceptions import StoreError
from windowpane.store import copying, tables
from windowpane.store.copying import COPIED_TABLES, OWN_TABLES, copy_store
from windowpane.store.filters import EventFilter
from windowpane.store.open import open_store
from windowpane.store.replays import ReplayRow, StoredReplay
from windowpane.store.search.content import ContentFilter
from windowpane.store.store import Store

Session = Callable[..., list[Event]]
KEY = b"a key for the copies of a test"
TABLES = {
    **PROJECTIONS,
    "events": "seq",
    "event_types": "id",
    "heads": "id",
    "session_days": "session, day, agent, model, release",
    "agents": "name",
    "endpoints": "machine, host, port",
    "replays": "id",
    "contents": "digest",
}
COPIER = """
import sys
from windowpane.store import copying
from windowpane.store.open import open_reader, open_store
copying.BATCH, copying.CONTENT_BATCH = 7, 3
copying.copy_store(
    open_reader(sys.argv[1]), open_store(sys.argv[2], audit_key=sys.argv[3].encode()),
    on_progress=lambda progress: print(progress.part, flush=True),
)
"""


@pytest.fixture
def source(tmp_path: Path, make_session: Session) -> Store:
    """A keyed SQLite store with texts, a revision, a pruned session, a note, a replay and registries."""
    store = open_store(str(tmp_path / "source.db"), capture=True, redact=str, audit_key=KEY)
    store.append(make_session("old", turns=2, start=1e9))
    store.append(make_session("s1", turns=5))
    store.import_session(lambda: make_session("s2", turns=4))
    store.import_session(lambda: [event._replace(at=5.0) for event in make_session("s2", turns=5)])
    store.prune(before=1.1e9, fold=lambda base, deleted: b"base")
    store.add_note("s1", 2, "look here")
    store.save_replay(StoredReplay(ReplayRow("r1", "a replay", 1.0, 1, 1), ()))
    store.admit_agent("reviewer")
    store.register_endpoint("127.0.0.1", 9464, pid=1, started_at=1.0)
    store.index_text()
    return store


def assert_same(source: Store, target: Store) -> None:
    """Every row, the chain and what is derived."""
    assert contents_of(source, TABLES) == contents_of(target, TABLES)
    daily = "SELECT * FROM daily WHERE sessions > 0 ORDER BY day, agent, model, release, project, pruned"
    assert fetch(source, daily) == fetch(target, daily)
    assert target.digester()("text") == source.digester()("text")
    assert target.load_metric_base() == source.load_metric_base() == b"base"
    assert target.verify().intact
    assert target.verify().keyed
    query = EventFilter(text="tool", types=("block.added",))
    assert target.events(query) == source.events(query)
    assert target.content("x") is None
    assert {hit.digest for hit in target.find_content(ContentFilter("certainly")).hits} == {
        hit.digest for hit in source.find_content(ContentFilter("certainly")).hits
    }


def test_a_copy_is_the_same_store_and_continues_as_one(
    stores: Stores, source: Store, make_session: Session
) -> None:
    """Numbers, hashes and rows are those of the source; agents append to it as they would have to the source."""
    target = stores.open(audit_key=KEY)
    outcome = copy_store(source, target)

    assert outcome.events == source.size().events
    assert (outcome.later_events, outcome.broken) == (0, ())
    assert_same(source, target)
    for store in (source, target):
        store.append(make_session("s3", turns=3))
        assert store.verify().intact
    assert contents_of(source, {"events": "seq"}) == contents_of(target, {"events": "seq"})


def test_what_came_to_the_source_meanwhile_is_copied_by_a_further_run(
    stores: Stores, source: Store, make_session: Session
) -> None:
    target = stores.open(audit_key=KEY)
    waiting = {"events": make_session("s4", turns=2), "turns": make_session("late", turns=1)}

    def write(progress: copying.Progress) -> None:
        source.append(waiting.pop(progress.part, ()))

    outcome = copy_store(source, target, on_progress=write)
    assert outcome.later_events == len(make_session("late", turns=1))
    source.prune(before=1e3)  # the revision with a time of five seconds
    again = copy_store(source, target)

    assert (again.events, again.later_events) == (outcome.later_events, 0)
    assert_same(source, target)


def test_a_copy_that_was_killed_continues(stores: Stores, source: Store) -> None:
    target = stores.open(audit_key=KEY)
    parts = ["events", "heads", "texts", "sessions", "agents", "indexing", "search index"]
    for part in parts if EVERYTHING else parts[:2]:
        command = [sys.executable, "-c", COPIER, str(source.address), stores.name, KEY.decode()]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if line == f"{part}\n":
                    process.kill()
    outcome = copy_store(source, target)

    assert outcome.events < source.size().events
    assert_same(source, target)


def test_a_target_with_other_events_is_refused(stores: Stores, source: Store, make_session: Session) -> None:
    target = stores.open(audit_key=KEY)
    target.append(make_session("own", turns=1))
    with pytest.raises(StoreError, match="holds other events"):
        copy_store(source, target)
    assert [row.session_id for row in target.sessions()] == ["own"]


def test_a_copy_that_is_in_use_is_not_replaced(
    stores: Stores, source: Store, make_session: Session, tmp_path: Path
) -> None:
    target = stores.open(audit_key=KEY)
    copy_store(source, target)
    other = open_store(str(tmp_path / "other.db"), audit_key=KEY)
    with pytest.raises(StoreError, match="is a copy of another store"):
        copy_store(other, target)
    other.close()
    target.append(make_session("own", turns=1))
    with pytest.raises(StoreError, match="events were written to it since the last copy"):
        copy_store(source, target)
    assert target.session("own") is not None


def test_a_broken_chain_is_copied_and_reported(stores: Stores, source: Store) -> None:
    edit(source, "UPDATE events SET body = ? WHERE seq = ?", b"{}", source.events(EventFilter("s1"))[5].seq)

    outcome = copy_store(source, stores.open(audit_key=KEY))

    assert [link.session_id for link in outcome.broken] == ["s1"]


def test_numbers_of_later_months_have_a_partition(stores: Stores, source: Store) -> None:
    edit(source, "UPDATE store SET next_seq = ?", 2**36 + 5)
    source.give_title("s1", "A later month")
    target = stores.open(audit_key=KEY)

    copy_store(source, target)

    assert_same(source, target)


def test_every_table_is_copied_or_each_stores_own() -> None:
    assert set(tables.TABLES) == {*COPIED_TABLES, *OWN_TABLES}
