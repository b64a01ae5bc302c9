"""One session has the same values in the list, the report, the metrics, its events and on the pages."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from windowpane.core.events import ContentCompressed, Event, TurnEnded, Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.ingest.importer import import_file
from windowpane.ingest.pipeline import AlertingStore, playback_settings
from windowpane.metrics import catalog
from windowpane.metrics.fold import MetricState
from windowpane.report import gather
from windowpane.sources.discovery import all_readers
from windowpane.store.interface import EventFilter
from windowpane.store.sqlite import SqliteStore
from windowpane_dashboard.queries.compressions import read_compressions

SAMPLE = ("6b6f4218", "0a93878f", "13da966e", "67d765b5", "15735695")
"""A compaction before the first call, an unexplained drop, two automatic compactions, an assumed size refuted."""


def assert_agreement(store: SqliteStore, session_id: str) -> None:
    """Hold every way of reading a session against its events."""
    row = store.session(session_id)
    assert row is not None
    stored = store.events(EventFilter(session_id=session_id, limit=1_000_000))
    events = [one.event for one in stored]
    report = gather(store, row)
    pages = read_compressions(store, session_id)
    state = MetricState()
    state.write(events)
    metrics = {family.metric.name: family for family in state.collect(now=events[-1].at or 0.0, as_of="last")}
    turns = [event.data for event in events if isinstance(event.data, TurnEnded)]
    totals = [turn.usage.input_total for turn in turns if turn.usage and turn.count_source == "usage"]
    stated = [
        one.window.tokens_before
        for one in pages
        if one.window is not None and one.window.source_before == "reported"
    ]
    accepted = [
        event.data
        for event in events
        if isinstance(event.data, ContentCompressed) and event.data.outcome == "accepted"
    ]

    assert row.turns == len(turns) == sum(point.value for point in metrics[catalog.TURNS.name].points)
    assert row.compressions == len(accepted) == sum(item.outcome == "accepted" for item in report.compressions)
    if totals:
        assert row.peak_used_tokens == max([*totals, *stated])
    for item, page in zip(report.compressions, pages, strict=True):
        sizes = page.data if page.window is None else page.window
        assert item.sizes[:2] == (sizes.tokens_before, sizes.tokens_after)
        assert item.ratio == sizes.ratio
        if page.window is not None:
            assert row.peak_used_tokens >= page.window.tokens_before
    if report.headline.startswith("Stayed green"):
        assert set(report.zone_turns) <= {"green"}
    assert row.evicted_tokens == sum(item.tokens_removed for item in report.evictions)


@pytest.mark.parametrize("number", range(12))
def test_generated_sessions(tmp_path: Path, number: int) -> None:
    """Turns with and without totals, compactions, unexplained drops and new windows, in any order."""
    random, events = Random(number), list[Event]()
    tracker = SessionTracker(
        SessionInfo("s", "agent", "gpt-4o", "live", "stream"),
        emit=events.extend,
        digest=lambda text: text,
        limits=WindowLimits.of(200_000, "given") if number % 3 else None,
    )
    tracker.start(0.0)
    total = 5_000
    for turn in range(1, 40):
        block = tracker.add("user_message", None, random.randint(10, 9_000), at=float(turn))
        tracker.add("assistant_response", None, 20, at=float(turn))
        total = min(190_000, int(total * random.choice((1.0, 1.2, 1.5, 0.4))) + 500)
        tracker.end_turn(Usage(total) if random.random() < 0.7 else None, at=float(turn))
        if random.random() < 0.2 and block.id in tracker.window:
            summary = tracker.make_replacement("summary", None, 5, replaces=block.id)
            compressed = ContentCompressed(
                "compaction", "auto", "accepted", block.tokens, 5, "content", (block.id,), (summary.id,),
                method="agent",
            )  # fmt: skip
            stated = random.choice((None, 150_000))
            tracker.compress(compressed, (summary,), at=float(turn), window_tokens_before=stated)
        elif random.random() < 0.05:
            tracker.roll("clear", float(turn))
    tracker.flush()
    with closing(SqliteStore(tmp_path / "store.db")) as store:
        store.append(events)

        assert_agreement(store, "s")


@pytest.mark.parametrize("name", SAMPLE)
def test_recorded_sessions(tmp_path: Path, name: str) -> None:
    """Recordings as imported: also their number of calls, peak and compactions as the import counted them."""
    folder = os.environ.get("WINDOWPANE_SESSIONS_DIR")
    paths = sorted((Path(folder).parent / "corpus").rglob(f"{name}*.jsonl")) if folder else []
    if not paths:
        pytest.skip("WINDOWPANE_SESSIONS_DIR has no corpus beside it: no recorded session to compare")
    with closing(SqliteStore(tmp_path / "store.db")) as store:
        playback = playback_settings(store.digester(), with_fidelity=False)
        report = import_file(
            paths[0], AlertingStore(store), playback=playback, readers=all_readers(complete=True)
        )
        store.flush()
        rows = [store.session(outcome.session_id) for outcome in report.outcomes]

        for row in rows:
            assert row is not None
            assert_agreement(store, row.session_id)
        assert sum(row.turns for row in rows if row) == report.stats.api_calls
        assert sum(row.compressions for row in rows if row) == report.stats.compactions
