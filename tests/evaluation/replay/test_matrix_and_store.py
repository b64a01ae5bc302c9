"""Many sessions under many setups, and their stored results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from windowpane.core.redaction import redact
from windowpane.evaluation.replay import (
    FileSource,
    ReplaySetup,
    StoreSource,
    combine_setups,
    run_matrix,
    summarize_runs,
    to_stored_replay,
)
from windowpane.sources.imports.importer import import_paths
from windowpane.sources.imports.pipeline import AlertingStore, playback_settings
from windowpane.sources.transcripts.discovery import all_readers
from windowpane.store.embedded import SqliteStore
from windowpane.store.replays import MAXIMUM_REPLAYS

WriteLoop = Any
SETUPS = (ReplaySetup(8_192), ReplaySetup(8_192, policy="fifo"), ReplaySetup(8_192, "truncate"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "windowpane.db", clock=lambda: 1_700_000_000.0)
    yield opened
    opened.close()


def imported(path: Path, database: Path, *, capture: bool) -> StoreSource:
    store = SqliteStore(database, capture=capture, redact=lambda text: redact(text).text)
    import_paths(
        [path], AlertingStore(store), playback=playback_settings(store.digester()), readers=all_readers()
    )
    session_id = store.sessions()[0].session_id
    store.close()
    return StoreSource(database, session_id)


def test_several_processes_give_the_results_of_one(write_loop: WriteLoop) -> None:
    sources = [write_loop(rounds, name=f"{rounds}.json") for rounds in (12, 20)]
    reported: list[tuple[str, int, int]] = []
    alone = run_matrix(sources, SETUPS, workers=1)
    shared = run_matrix(
        sources, SETUPS, workers=2, progress=lambda name, done, total: reported.append((name, done, total))
    )

    assert shared == alone
    assert [run.session for run in alone.runs] == [source.name for source in sources for _ in SETUPS]
    assert sorted(done for _, done, _ in reported) == [1, 2]


def test_an_unreadable_session_does_not_stop_the_others(write_loop: WriteLoop, tmp_path: Path) -> None:
    missing = FileSource(tmp_path / "gone.json", "k", "gone")
    matrix = run_matrix([missing, write_loop(12)], SETUPS, workers=1)

    assert len(matrix.runs) == len(SETUPS)
    assert [(failure.session, failure.setup) for failure in matrix.failures] == [("gone", "")]


def test_a_window_smaller_than_the_static_content_is_rejected(tmp_path: Path) -> None:
    import json

    path = tmp_path / "large.json"
    messages = [
        {"role": "system", "content": "rule " * 9_000},
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "gone"},
    ]
    path.write_text(json.dumps(messages), encoding="utf-8")
    from windowpane.evaluation.replay import find_recordings

    matrix = run_matrix(list(find_recordings([path])), [ReplaySetup(8_192), ReplaySetup(32_768)], workers=1)

    assert [run.setup.limit_tokens for run in matrix.runs] == [32_768]
    assert "system prompt and tools alone" in matrix.failures[0].reason


def test_a_captured_session_of_the_store_replays_like_its_file(write_loop: WriteLoop, tmp_path: Path) -> None:
    """The texts are the same, so the decisions are."""
    source = write_loop(30)
    stored = imported(source.path, tmp_path / "captured.db", capture=True)
    from_file = run_matrix([source], SETUPS, workers=1)
    from_store = run_matrix([stored], SETUPS, workers=1)

    assert [run.measures for run in from_store.runs] == [run.measures for run in from_file.runs]
    assert not from_store.failures


def test_without_content_only_setups_that_read_none_are_replayed(write_loop: WriteLoop, tmp_path: Path) -> None:
    source = write_loop(30)
    stored = imported(source.path, tmp_path / "bare.db", capture=False)
    matrix = run_matrix([stored], combine_setups(limits=[8_192], policies=["all"], baselines=True), workers=1)
    exact = run_matrix([source], [ReplaySetup(8_192, "truncate")], workers=1).runs[0].measures
    names = {run.setup.name for run in matrix.runs}

    assert {"fifo", "type_based", "truncation", "keep last 20"} == names
    reasons = {failure.reason.split(";")[0] for failure in matrix.failures}
    assert reasons == {"it reads content, which was not captured"}
    assert all(run.note and run.measures.fidelity is None for run in matrix.runs)
    truncated = next(run.measures for run in matrix.runs if run.setup.name == "truncation")
    assert (truncated.tokens_sent, truncated.removed_tokens) == (exact.tokens_sent, exact.removed_tokens)


def test_a_stored_replay_is_read_back_whole(write_loop: WriteLoop, store: SqliteStore) -> None:
    matrix = run_matrix([write_loop(12)], SETUPS, workers=1)
    stored = to_stored_replay(matrix, name="loop", at=1_700_000_000.0)
    store.save_replay(stored)
    store.save_replay(to_stored_replay(matrix, name="loop", at=1_700_000_500.0))
    (row,) = store.replays()
    found = store.replay(row.id)

    assert (row.name, row.at, row.sessions, row.runs) == ("loop", 1_700_000_500.0, 1, 3)
    assert found is not None
    assert found.runs == stored.runs
    assert found.runs[0].timeline == matrix.runs[0].timeline
    assert "policy: hybrid" in found.runs[0].config
    assert store.replay("nosuch") is None


def test_replays_are_invisible_to_everything_else(write_loop: WriteLoop, store: SqliteStore) -> None:
    matrix = run_matrix([write_loop(30)], SETUPS, workers=1)
    store.save_replay(to_stored_replay(matrix, name="loop", at=1_700_000_000.0))

    assert any(run.measures.evicted_blocks for run in matrix.runs)
    assert store.size().events == 0
    assert list(store.sessions()) == []
    assert store.heads() == []
    assert store.verify().intact
    assert all(not batch for batch in store.scan())


def test_the_oldest_replays_are_deleted(write_loop: WriteLoop, store: SqliteStore) -> None:
    matrix = run_matrix([write_loop(3)], [ReplaySetup(8_192, "truncate")], workers=1)
    for number in range(MAXIMUM_REPLAYS + 5):
        store.save_replay(to_stored_replay(matrix, name=f"n{number}", at=float(number)))
    stored_ids = store.replays(limit=1_000)

    assert len(stored_ids) == MAXIMUM_REPLAYS
    assert stored_ids[0].name == f"n{MAXIMUM_REPLAYS + 4}"
    assert stored_ids[-1].name == "n5"


def test_summaries_add_up_the_sessions(write_loop: WriteLoop) -> None:
    matrix = run_matrix([write_loop(12, name="a.json"), write_loop(20, name="b.json")], SETUPS, workers=1)
    found = summarize_runs(matrix.runs)

    assert [one.setup for one in found] == list(SETUPS)
    for one in found:
        runs = [run.measures for run in matrix.runs if run.setup == one.setup]
        assert one.sessions == 2
        assert one.tokens_sent == sum(measures.tokens_sent for measures in runs)
        assert one.regret_ratio == pytest.approx(sum(measures.regret_ratio or 0 for measures in runs) / 2)
