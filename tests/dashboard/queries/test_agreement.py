"""One session has the same values in the list, the report, the metrics, its events and on the pages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest
from tests.dashboard.drawn_pages import OpenPage, drawn_disagreements
from tests.dashboard.surfaces import StoredSession, disagreements, sums_disagreeing
from tests.sampling import sampled

from windowpane.core.events import ContentCompressed, Event, Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.sources.imports.file_report import FileReport
from windowpane.sources.imports.importer import import_file
from windowpane.sources.imports.pipeline import AlertingStore, playback_settings
from windowpane.sources.transcripts.discovery import all_readers, files_of
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import SessionFilter

SAMPLE = (
    "6b6f4218-0b12-4d55-b930-462903683bea.jsonl",  # a compaction before the first call
    "0a93878f*.jsonl",  # a drop of the total that nothing explains
    "13da966e*.jsonl",  # two automatic compactions
    "15735695*.jsonl",  # an assumed size that a total refutes
    "019f0675*.jsonl",  # calls without usage, and one more turn than calls
    "compact_micro_76*.jsonl",  # evicted blocks whose sizes the recording does not state
    "micro_ids_present_d5*.jsonl",  # masked results, whose placeholders did not enter the window
    "telecom_gpt-4o_first6.json",  # six sessions, some without usage
)


@contextmanager
def opened(path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(path)
    try:
        yield store
    finally:
        store.close()


def sessions_of(store: SqliteStore) -> list[StoredSession]:
    return [StoredSession(store, row) for row in store.sessions(SessionFilter(limit=1_000))]


def imported(path: Path, store: SqliteStore, *, with_fidelity: bool) -> FileReport:
    playback = playback_settings(store.digester(), with_fidelity=with_fidelity, history=store.earlier_sessions)
    report = import_file(path, AlertingStore(store), playback=playback, readers=all_readers(complete=True))
    store.flush()
    return report


def collections() -> tuple[Path, ...]:
    """Return the folders of recorded sessions; none where they are not named."""
    folder = os.environ.get("WINDOWPANE_SESSIONS_DIR")
    return (Path(folder), Path(folder).parent / "corpus") if folder else ()


@pytest.mark.parametrize("number", sampled(range(12), 4))
def test_generated_sessions(tmp_path: Path, number: int) -> None:
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
        priced = random.choice((None, 0.01 * turn))
        tracker.end_turn(Usage(total) if random.random() < 0.7 else None, cost_dollars=priced, at=float(turn))
        if random.random() < 0.2 and block.id in tracker.window:
            summary = tracker.make_replacement("summary", None, 5, replaces=block.id)
            compressed = ContentCompressed(
                "compaction", "auto", "accepted", block.tokens, 5, "content", (block.id,), (summary.id,),
                method="agent", cost_dollars=priced,
            )  # fmt: skip
            stated = random.choice((None, 150_000))
            tracker.compress(compressed, (summary,), at=float(turn), window_tokens_before=stated)
        elif random.random() < 0.05:
            tracker.roll("clear", float(turn))
    if number % 2:  # a call that has not ended
        tracker.add("user_message", None, 90_000, at=41.0)
        tracker.measure("before", 41.0)
    tracker.flush()
    with opened(tmp_path / "store.db") as store:
        store.append(events)
        (session,) = sessions_of(store)

        assert disagreements(session) == []
        assert sums_disagreeing(store, [session]) == []


@pytest.mark.parametrize("name", sampled(SAMPLE, 4))
def test_recorded_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_page: OpenPage, name: str
) -> None:
    paths = sorted(path for folder in collections() for path in folder.rglob(name))
    if not paths:
        pytest.skip("WINDOWPANE_SESSIONS_DIR has no corpus beside it: no recorded session to compare")
    monkeypatch.setenv("WINDOWPANE_STORE", str(tmp_path / "store.db"))
    with opened(tmp_path / "store.db") as store:
        report = imported(paths[0], store, with_fidelity=False)
        sessions = sessions_of(store)

        assert [line for session in sessions for line in disagreements(session)] == []
        assert sums_disagreeing(store, sessions) == []
        assert drawn_disagreements(sessions[0], open_page) == []
        assert sum(session.row.turns for session in sessions) == sum(one.turns for one in report.outcomes)
        assert sum(session.row.compressions for session in sessions) == report.stats.compactions


@pytest.mark.matrix
@pytest.mark.timeout(1800)
def test_every_recorded_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_page: OpenPage) -> None:
    if not collections():
        pytest.skip("WINDOWPANE_SESSIONS_DIR is not set")
    monkeypatch.setenv("WINDOWPANE_STORE", str(tmp_path / "store.db"))
    with opened(tmp_path / "store.db") as store:
        for path in files_of(collections()):
            imported(path, store, with_fidelity=True)
        sessions = sessions_of(store)

        assert [line for session in sessions for line in disagreements(session)] == []
        assert sums_disagreeing(store, sessions) == []
        assert [line for session in sessions for line in drawn_disagreements(session, open_page)] == []
        assert len(sessions) > 150
