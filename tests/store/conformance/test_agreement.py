"""SQLite and PostgreSQL give the same rows for every read of the same recorded sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.servers.postgres import PostgresServer

from windowpane.core.digests import keyed_digester
from windowpane.core.events import AlertFired, AlertResolved, Event, SessionDescribed
from windowpane.models.tokens import counter_for
from windowpane.sources.imports.importer import import_paths
from windowpane.sources.transcripts.discovery import all_readers
from windowpane.sources.transcripts.playback_settings import PlaybackSettings
from windowpane.store.filters import AlertFilter, EventFilter, SessionFilter
from windowpane.store.open import open_store
from windowpane.store.records import ImportOutcome
from windowpane.store.search.content import ContentFilter
from windowpane.store.store import Store

pytestmark = pytest.mark.server
RECORDINGS = (
    "claude_code/compact_micro_76", "claude_code/small_progress_96", "codex/rollout_small_a3",
    "swe_agent/marshmallow_fc_replace", "openhands/v1_pr_events_small", "aider/example_complex-change",
)  # fmt: skip


class Both:
    """One store over two: both import the same, and what they read is compared."""

    def __init__(self, stores: tuple[Store, Store]) -> None:
        self.stores = stores

    def import_session(self, events: Callable[[], Iterable[Event]]) -> ImportOutcome:
        made = list(events())
        first, second = [store.import_session(lambda: made) for store in self.stores]
        assert first == second
        return first

    def write(self, change: Callable[[Store], object]) -> None:
        for store in self.stores:
            change(store)

    def agree(self, read: Callable[[Store], Any]) -> Any:
        """Return what both give."""
        first, second = [plain(read(store)) for store in self.stores]
        assert next(differences(first, second), None) is None
        return first


def differences(first: Any, second: Any, path: str = "") -> Iterator[str]:
    """Yield where two results differ."""
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for number, (one, other) in enumerate(zip(first, second, strict=True)):
            yield from differences(one, other, f"{path}[{number}]")
    elif first != second:
        yield f"{path}: {first!r:.500} and {second!r:.500}"


def plain(value: Any) -> Any:
    """Return rows as tuples; sums of prices may differ in the last digits, as they are added in another order."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if is_dataclass(value) and not isinstance(value, type):
        return [type(value).__name__, *(plain(getattr(value, field.name)) for field in fields(value))]
    if isinstance(value, dict):
        return {plain(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value


def with_alerts(events: list[Event]) -> list[Event]:
    last = events[-1]
    return [
        *events,
        last._replace(n=last.n + 1, data=AlertFired("utilization", "critical", 1, 0.95, 0.9, "95% used")),
        last._replace(n=last.n + 2, data=AlertFired("compaction_soon", "warning", 1, 2.0, 3.0, "red soon")),
        last._replace(n=last.n + 3, data=AlertResolved("utilization", "critical", 1, 0.4, 0.9, 2)),
    ]


@pytest.fixture(scope="module")
def both(
    sessions_dir: Path, tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer
) -> Iterator[Both]:
    """Both stores with the recordings, a session with alerts, notes, a revision and the texts, indexed."""
    names = (str(tmp_path_factory.mktemp("agreement") / "w.db"), postgres_server.create_database())
    opened = [open_store(name, capture=True, redact=str) for name in names]
    both = Both((opened[0], opened[1]))
    playback = PlaybackSettings(digest=keyed_digester(b"k" * 32), counter_for=counter_for, limit_tokens=60_000)
    paths = [
        path for name in RECORDINGS for path in sorted((sessions_dir / name).parent.glob(f"{Path(name).name}*"))
    ]
    import_paths(paths, both, playback=playback, readers=all_readers(complete=True))
    recorded = [stored.event for stored in both.stores[0].events(EventFilter(limit=200))]
    first = [event for event in recorded if event.context.session_id == recorded[0].context.session_id]
    both.import_session(lambda: [event._replace(at=None) for event in first[:30]])  # a shorter one is not stored
    renamed = type(first[0].context)(*[
        {"session_id": "with alerts %_!", "stream_id": "alerting"}.get(name, getattr(first[0].context, name))
        for name in first[0].context.__dataclass_fields__
    ])  # fmt: skip
    events = with_alerts([one._replace(context=renamed) for one in first])
    title = SessionDescribed("Überraschung: 100%_done!", "agent", folder="/srv/Ünder_score", label="É!")
    events.append(events[-1]._replace(n=events[-1].n + 1, data=title))
    both.write(lambda store: store.append(events))
    while opened[0].index_text():
        pass
    while opened[1].index_text(limit=700):
        pass
    yield both
    for store in opened:
        store.close()
    postgres_server.drop_database(names[1])


def some(*values: Any) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), st.sampled_from(values))


TIMES = (0.0, 1.4e9, 1.70e9, 1.72e9, 1.74e9, 1.76e9, 1.8e9)
TEXTS = ("", "a", "É", "üb", "100%", "_done", "!", "claude", "GPT", "tool_result", "'", "\\", "x" * 60_000)
session_filters = st.builds(
    SessionFilter,
    agent=some("claude-code", "codex", "aider", "none"),
    model=some("gpt-4", "none"),
    source=some("claude_code", "codex", "swe_agent"),
    zone=some("green", "yellow", "orange", "red", "overflow"),
    severity=some("critical", "warning"),
    attention=some("critical", "warning", "red", "red soon"),
    live_since=some(*TIMES),
    live_first_since=some(*TIMES),
    at_from=some(*TIMES),
    at_to=some(*TIMES),
    text=some(*TEXTS),
    folder=some(*TEXTS),
    repository=some(*TEXTS),
    branch=some(*TEXTS),
    label=some(*TEXTS),
    parent_session_id=some("none"),
    projects=some((), ("",), ("", "shop")),
    order=st.sampled_from(("pressure", "recent", "cost", "regret")),
    limit=st.sampled_from((1, 3, 100)),
    offset=st.sampled_from((0, 1, 5)),
)
TYPES = ("block.added", "turn.ended", "session.started", "pressure.measured", "alert.fired", "no.such")
SEARCHES = ("tool", "to", "session.started", "claude", "read file", "e", "'", "no\0such", "block.added tool", "ü")
event_filters = st.builds(
    EventFilter,
    session_id=some(0, 1, 2, 3, 4, 5, 6, "none"),
    types=st.lists(st.sampled_from(TYPES), max_size=3, unique=True).map(tuple),
    turn_from=some(0, 1, 3, 7),
    turn_to=some(0, 1, 3, 7),
    after_seq=st.sampled_from((0, 10, 500, 10**9)),
    text=some(*SEARCHES),
    limit=st.sampled_from((1, 7, 400)),
    newest_first=st.booleans(),
    before_seq=some(1, 400, 900),
    projects=some((), ("",), ("shop",)),
)


@given(query=session_filters, live_since=st.sampled_from(TIMES))
def test_lists_and_totals_of_sessions(both: Both, query: SessionFilter, live_since: float) -> None:
    both.agree(lambda store: store.sessions(query))
    both.agree(lambda store: store.fleet_totals(query, live_since=live_since))


@given(query=event_filters)
def test_events_and_their_number(both: Both, query: EventFilter) -> None:
    from dataclasses import replace

    if isinstance(query.session_id, int):
        sessions = both.stores[0].sessions(SessionFilter(order="recent"))
        query = replace(query, session_id=sessions[query.session_id % len(sessions)].session_id)
    both.agree(lambda store: store.events_or_damage(query))
    both.agree(lambda store: store.count_events(query))


def test_each_session(both: Both) -> None:
    rows = both.stores[0].sessions()
    assert len(rows) > len(RECORDINGS)
    for row in rows:
        name = row.session_id
        both.agree(lambda store, name=name: (store.session(name), store.find_sessions(name[:5])))
        turns = both.agree(lambda store, name=name: store.turns(name))
        both.agree(lambda store, name=name: store.turns(name, first=2, last=3))
        for turn in {0, 1, len(turns) // 2, len(turns), 99_999}:
            both.agree(lambda store, name=name, turn=turn: store.removed_blocks(name, turn))
            both.agree(lambda store, name=name, turn=turn: store.removed_blocks(name, turn, regretted=True))
            both.agree(lambda store, name=name, turn=turn: store.blocks_at(name, turn))
        for block in both.stores[0].blocks_at(name, 99_999)[::9]:
            both.agree(lambda store, name=name, block=block: store.block_life(name, block.block_id))
        both.agree(lambda store, name=name: (store.tool_use(name), store.notes(name)))
        both.agree(lambda store, name=name: store.alerts(AlertFilter(session_id=name)))


@pytest.mark.parametrize(
    "options",
    [
        {}, {"firing": True}, {"firing": False}, {"severity": "critical"},
        {"alert": "compaction_soon", "limit": 1},
        {"live_since": 1.0}, {"silent_since": 1.0}, {"at_from": 1.7e9, "at_to": 1.8e9}, {"projects": ("",)},
    ],
)  # fmt: skip
def test_alerts(both: Both, options: dict[str, Any]) -> None:
    both.agree(lambda store: store.alerts(AlertFilter(**options)))


@pytest.mark.parametrize(
    "text", ["file", "FILE", "il", '"the file"', "the file", "é", "zzz no such", "100%", "_", "\\n", "'", ""]
)
def test_captured_texts(both: Both, text: str) -> None:
    session = both.stores[0].sessions()[0].session_id
    for filters in ({}, {"session_id": session}):
        query = ContentFilter(text, limit=1_000, **filters)
        both.agree(lambda store, query=query: sorted(store.find_content(query).hits, key=lambda hit: hit.digest))


def test_everything_else(both: Both) -> None:
    both.agree(lambda store: store.facets())
    assert both.agree(lambda store: store.trends(days=100_000))
    assert both.agree(lambda store: store.tool_leaderboard())
    both.agree(lambda store: store.tool_leaderboard(projects=("",), limit=3))
    both.agree(lambda store: (store.size().events, store.size().contents))
    both.agree(lambda store: [list(batch) for batch in store.scan(batch=700)])
    both.agree(lambda store: list(store.export_batches(EventFilter(text="tool", types=("block.added",)))))
    both.agree(lambda store: [(head.kind, head.session_id, head.head) for head in store.heads()])
    both.agree(lambda store: store.last_compaction_tokens("claude-code", ""))
    both.agree(lambda store: store.find_notes("surprise"))
    assert both.agree(lambda store: store.verify().broken) == []
