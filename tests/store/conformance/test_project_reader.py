"""A reader of some projects returns nothing of the others, whichever method is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest
from tests.store.conformance.conftest import Stores

from windowpane.core.events import AlertFired, Event, SessionDescribed
from windowpane.store.filters import AlertFilter, EventFilter, SessionFilter
from windowpane.store.reads.project_reader import ProjectReader
from windowpane.store.reads.reader import Reader
from windowpane.store.replays import ReplayRow, ReplayRunRow, StoredReplay
from windowpane.store.search.content import ContentFilter
from windowpane.store.store import Store

Session = Callable[..., list[Event]]

WITHOUT_RESTRICTION = {"path", "name", "address", "identity", "close", "digester", "digest_key"}
NOT_FOR_PAGES = {
    "stored_project", "last_compaction_tokens", "earlier_sessions", "load_metric_base", "endpoints",
    "event_records", "newest_seq", "session_days", "session_sums", "pruned_days",
    "export", "unidentified_record", "engine", "copy_identity",
}  # fmt: skip
"""Reads of agents, exporters and copies, which a restricted reader does not have."""


@pytest.fixture
def store(stores: Stores, make_session: Session) -> Store:
    """Sessions s1 of `shop`, s2 of `bank`, s3 without a project; with texts, notes and replays."""
    opened = stores.open(capture=True, redact=lambda text: text)
    for number, project in enumerate(("shop", "bank", ""), 1):
        events = make_session(f"s{number}")
        last = events[-1]
        events += [
            last._replace(
                n=last.n + 1, data=AlertFired("utilization", "critical", 3, 0.95, 0.9, f"full {number}")
            ),
            last._replace(n=last.n + 2, data=SessionDescribed(title=f"secret{number}", project=project)),
        ]
        opened.append(events)
        opened.add_note(f"s{number}", 2, f"a remark about secret{number}")
        run = ReplayRunRow(f"s{number}", "setup", "managed", "hybrid", "", 1_000)
        opened.save_replay(StoredReplay(ReplayRow(f"r{number}", f"replay {number}", float(number), 1, 1), (run,)))
    both = tuple(ReplayRunRow(name, "setup", "managed", "hybrid", "", 1_000) for name in ("s1", "s2"))
    opened.save_replay(StoredReplay(ReplayRow("both", "replay of both", 9.0, 2, 2, ("s2 failed",)), both))
    return opened


@pytest.fixture(params=["indexed", "unindexed"])
def shop(store: Store, request: pytest.FixtureRequest) -> ProjectReader:
    """A reader of one project, with and without an index for search."""
    while request.param == "indexed" and store.index_text():
        pass
    return ProjectReader(store, ["shop"])


def test_every_read_is_restricted_or_missing() -> None:
    reads = {name for name, _ in inspect.getmembers(Reader) if not name.startswith("_")}
    restricted = {name for name, _ in inspect.getmembers(ProjectReader) if not name.startswith("_")}
    assert reads - restricted - WITHOUT_RESTRICTION == NOT_FOR_PAGES


def test_lists_hold_only_sessions_of_the_project(shop: ProjectReader, store: Store) -> None:
    assert [row.session_id for row in shop.sessions()] == ["s1"]
    assert shop.sessions(SessionFilter(project="bank")) == []
    assert [row.session_id for row in shop.find_sessions("s")] == ["s1"]
    assert shop.fleet_totals(SessionFilter(), live_since=0.0).sessions == 1
    assert (shop.project_names(), store.project_names()) == (["shop"], ["bank", "shop"])
    assert shop.facets()["agents"] == ("reviewer",)
    assert {alert.session_id for alert in shop.alerts()} == {"s1"}
    assert shop.alerts(AlertFilter(session_id="s2")) == []
    assert {use.sessions for use in shop.tool_leaderboard()} == {1}
    assert shop.composition().sessions == 1
    assert sum(row.sessions for row in shop.trends(days=10)) == 1
    assert shop.size().sessions == 1


@pytest.mark.parametrize("session_id", ["s2", "s3", "unknown"])
def test_another_session_does_not_exist(shop: ProjectReader, store: Store, session_id: str) -> None:
    block = store.blocks_at("s2", 3)[0]

    assert shop.session(session_id) is None
    assert not shop.turns(session_id)
    assert not shop.blocks_at(session_id, 3)
    assert not shop.removed_blocks(session_id, 8)
    assert shop.block_life(session_id, block.block_id) is None
    assert not shop.tool_use(session_id)
    assert not shop.composition(session_id).content
    assert not shop.notes(session_id)
    assert not shop.events(EventFilter(session_id=session_id))
    assert not shop.events_or_damage(EventFilter(session_id=session_id))
    assert shop.count_events(EventFilter(session_id=session_id)) == 0
    assert not list(shop.export_batches(EventFilter(session_id=session_id)))
    assert not shop.find_notes("secret2", session_id=session_id)
    assert not shop.find_content(ContentFilter("certainly", session_id=session_id)).hits


def test_events_and_searches_find_only_the_project(shop: ProjectReader, store: Store) -> None:
    own = store.count_events(EventFilter(session_id="s1"))

    assert {one.event.context.session_id for one in shop.events(EventFilter(limit=10_000))} == {"s1"}
    assert shop.count_events(EventFilter()) == own
    assert sum(map(len, shop.export_batches(EventFilter()))) == own
    for text in ("secret2", "secret3", "replay"):
        assert not shop.events_or_damage(EventFilter(text=text))
        assert shop.count_events(EventFilter(text=text)) == 0
        assert not shop.find_notes(text)
    assert {one.event.context.session_id for one in shop.events(EventFilter(text="secret"))} == {"s1"}
    assert {one.event.context.session_id for batch in shop.scan() for one in batch} == {"s1"}
    assert not shop.events(EventFilter(projects=("bank",)))
    assert shop.trends(days=10, projects=("bank",)) == []
    assert shop.alerts(AlertFilter(projects=("bank", ""))) == []
    assert {note.session_id for note in shop.find_notes("secret")} == {"s1"}
    assert shop.count_events(EventFilter(types=("alert.fired",))) == 1
    hits = shop.find_content(ContentFilter("certainly")).hits
    assert {one.session_id for hit in hits for one in hit.occurrences} == {"s1"}


def test_a_text_is_readable_where_a_session_of_the_project_holds_it(store: Store, make_session: Session) -> None:
    more = make_session("s4", turns=12)
    store.append(more)
    digest = next(row.digest for row in store.blocks_at("s4", 12) if "11" in (store.content(row.digest) or ""))
    shared = store.blocks_at("s1", 2)[-1].digest

    assert store.content(digest) is not None
    assert ProjectReader(store, ["shop"]).content(digest) is None
    assert ProjectReader(store, [""]).content(digest) is not None
    assert ProjectReader(store, ["shop"]).content(shared) is not None
    assert ProjectReader(store, []).content(shared) is None
    assert ProjectReader(store, ["shop"]).content("secret2") is None


def test_a_replay_is_visible_with_all_of_its_sessions(shop: ProjectReader, store: Store) -> None:
    assert [row.id for row in shop.replays()] == ["r1"]
    assert shop.replay("r2") is None
    assert shop.replay("both") is None
    assert ProjectReader(store, ["shop", "bank"]).replay("both") is not None


def test_no_project_means_nothing(store: Store) -> None:
    nobody = ProjectReader(store, [])
    assert not nobody.sessions()
    assert not nobody.events(EventFilter())
    assert nobody.count_events(EventFilter()) == 0
    assert nobody.trends(days=10) == []
    assert nobody.tool_leaderboard() == []


def test_the_trends_of_a_project_survive_retention(store: Store) -> None:
    shop, bank = ProjectReader(store, ["shop"]), ProjectReader(store, ["bank"])
    before = shop.trends(days=10)
    whole = store.trends(days=10)
    while store.sessions():
        store.prune(before=10**10)

    assert shop.trends(days=10) == before
    assert sum(row.calls for row in bank.trends(days=10)) == sum(row.calls for row in before)
    assert store.trends(days=10) == whole
