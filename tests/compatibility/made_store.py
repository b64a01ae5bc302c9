"""The content of a frozen store, and the rows that are compared with those of the release that wrote it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.store.conftest import make_tracker, play

from windowpane.core.events import AlertFired, AlertResolved, Event, NotificationDelivered
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import EventFilter
from windowpane.store.reads.reader import Reader
from windowpane.store.replays import ReplayRow, ReplayRunRow, StoredReplay
from windowpane.store.search.content import ContentFilter

KEY = b"a key for the store of a test"
START = 1_700_000_000.0


def session(session_id: str, turns: int, *, end: bool = True) -> list[Event]:
    """Return the events of a session."""
    events: list[Event] = []
    play(make_tracker(session_id, events.extend), turns, end=end, start=START)
    return events


def make_store(path: Path, heads: Path) -> None:
    """Write a store with something in every table, and export its heads."""
    store = SqliteStore(path, capture=True, redact=str, audit_key=KEY, clock=lambda: START + 1_000)
    store.append([event._replace(at=START - 500) for event in session("pruned", 2)])
    store.prune(before=START - 400, fold=lambda base, deleted: b"base")
    live = session("live", 8, end=False)
    store.append(live)
    context = live[-1].context
    facts = (
        AlertFired("utilization", "warning", 6, 0.91, 0.9, "the window is full"),
        NotificationDelivered("utilization", 6, "log", "firing"),
        AlertResolved("utilization", "warning", 6, 0.5, 0.9),
        AlertFired("red_imminent", "info", 7, 2.0, 3.0, "red soon"),
    )
    store.append([Event(context, live[-1].n + 1 + n, START + 20 + n, data) for n, data in enumerate(facts)])
    store.import_session(lambda: session("recorded", 4))
    store.import_session(lambda: [event._replace(at=START + 60) for event in session("recorded", 5)])
    store.add_note("live", 2, "look here")
    run = ReplayRunRow("live", "hybrid", "managed", "hybrid", "", 32_768, {"regret": 0.1}, "eviction: {}", (1, 2))
    store.save_replay(StoredReplay(ReplayRow("r1", "a replay", START, 1, 1), (run,)))
    store.admit_agent("reviewer")
    store.register_endpoint("127.0.0.1", 9464, pid=1, started_at=START, machine="host")
    while store.index_text():
        pass
    store.export_heads(heads)
    store.close()


def rows_of(store: Reader) -> Any:
    """Return the rows of a store as plain JSON types."""
    replay = store.replay("r1")
    assert replay is not None
    rows = {
        "sessions": [asdict(row) for row in store.sessions()],
        "turns": [asdict(row) for row in store.turns("live")],
        "window": [asdict(row) for row in store.blocks_at("live", 5)],
        "removed": [row.block_id for row in store.removed_blocks("live", 99)],
        "alerts": [asdict(row) for row in store.alerts()],
        "tools": [asdict(row) for row in store.tool_use("live")],
        "trends": [asdict(row) for row in store.trends(days=10)],
        "notes": [note.text for note in store.notes("live")],
        "found": [event.seq for event in store.events(EventFilter(text="utilization"))],
        "content": [hit.snippet.line for hit in store.find_content(ContentFilter("certainly 5")).hits],
        "facets": store.facets(),
        "replay": asdict(replay),
        "endpoints": [asdict(endpoint) for endpoint in store.endpoints()],
        "size": {name: value for name, value in asdict(store.size()).items() if name != "bytes"},
        "metric_base": str(store.load_metric_base()),
    }
    return json.loads(json.dumps(rows, default=dict))
