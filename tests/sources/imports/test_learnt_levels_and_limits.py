"""Compaction levels and window sizes that a store learns from recordings."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from windowpane.core.agents import EarlierSessions, EvidentWindow
from windowpane.core.events import Event, PressureMeasured, Usage
from windowpane.core.tracking import SessionInfo
from windowpane.sources.imports.importer import import_paths
from windowpane.sources.imports.pipeline import playback_settings
from windowpane.sources.transcripts.discovery import all_readers
from windowpane.sources.transcripts.playback import session_events
from windowpane.sources.transcripts.records import (
    Compacted,
    ContentAdded,
    ModelCalled,
    Record,
    SessionDescribed,
    SessionOpened,
)
from windowpane.store.embedded import SqliteStore
from windowpane.store.records import SessionRow

KEYS = tuple(f"{number}0000000-0000-4000-8000-000000000000" for number in range(1, 4))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    """A new store."""
    opened = SqliteStore(tmp_path / "windowpane.db")
    yield opened
    opened.close()


def records(
    key: str, *, compacted: bool = False, calls: int = 4, agent: str = "reviewer", start: float = 1_000.0
) -> list[Record]:
    """Return a session of calls that grow by 10,000 tokens, with a compaction at 80,000 before the last one."""
    made: list[Record] = [SessionOpened(key, agent, "gpt-5", at=start)]
    for call in range(calls):
        if compacted and call == calls - 1:
            made.append(Compacted("auto", tokens_before=80_000, summary="a summary", at=start + call))
        made.append(ContentAdded("user_message", f"question {call}", at=start + call))
        made.append(ModelCalled(Usage(10_000 * (call + 1), 10), "gpt-5", at=start + call))
    return made


def stored(store: SqliteStore, key: str, recording: list[Record]) -> list[Event]:
    """Import a recording and return its events."""
    playback = playback_settings(store.digester(), history=store.earlier_sessions)

    def events() -> Iterator[Event]:
        return session_events(recording, key=key, source="test", playback=playback)

    made = list(events())
    store.import_session(events)
    store.flush()
    return made


def last_level(events: list[Event]) -> tuple[int | None, str | None]:
    """Return the compaction level of the last measurement, and its evidence."""
    measured = [event.data for event in events if isinstance(event.data, PressureMeasured)]
    return measured[-1].compaction_tokens, measured[-1].compaction_evidence


def test_a_later_session_of_the_agent_and_model_starts_with_the_recorded_level(store: SqliteStore) -> None:
    first, second, third = KEYS

    assert last_level(stored(store, first, records(first))) == (None, None)
    assert last_level(stored(store, second, records(second, compacted=True))) == (80_000, "recorded")
    assert last_level(stored(store, third, records(third, start=2_000.0))) == (80_000, "earlier")
    assert last_level(stored(store, "other", records("other", agent="writer", start=2_000.0))) == (None, None)


def test_a_session_learns_nothing_from_later_ones_that_were_imported_before_it(store: SqliteStore) -> None:
    late, early, _ = KEYS
    stored(store, late, records(late, compacted=True, start=9_000.0))
    stored(store, "s9", with_system_prompt("s9", 50_000, start=9_000.0))

    assert last_level(stored(store, early, records(early))) == (None, None)
    assert first_estimate(stored(store, "s1", with_system_prompt("s1", 20_000, start=500.0))) < 100


def test_recordings_are_imported_in_the_order_of_time(tmp_path: Path) -> None:
    """The file of the later session comes first by name; both are of the same moment on disk."""
    folder = tmp_path / "recordings"
    folder.mkdir()
    for name, day, total in (("a", "2026-02-02", 20_500), ("b", "2026-01-01", 20_000)):
        (folder / f"{name}.jsonl").write_text(
            "".join(f"{json.dumps(row)}\n" for row in claude_rows(name, day, total)), encoding="utf-8"
        )
        os.utime(folder / f"{name}.jsonl", (1_700_000_000, 1_700_000_000))
    with closing(SqliteStore(tmp_path / "windowpane.db")) as store:
        reports = import_paths(
            [folder], store, playback=playback_settings(store.digester(), history=store.earlier_sessions),
            readers=all_readers(),
        )  # fmt: skip
        errors = [store.turns(report.outcomes[0].session_id)[0].used_before for report in reports]

    assert [report.path.name for report in reports] == ["a.jsonl", "b.jsonl"]
    assert errors == [pytest.approx(20_000, abs=100), pytest.approx(10, abs=10)]


def claude_rows(session: str, day: str, total: int) -> list[dict[str, Any]]:
    """Return the rows of a session of one call."""
    message = {"id": f"m{session}", "role": "assistant", "model": "claude-sonnet-4-5", "stop_reason": "end_turn"}
    usage = {"input_tokens": total, "output_tokens": 5}
    row = {"sessionId": session, "version": "2.1.200"}
    asked = {"role": "user", "content": "hello"}
    reply = message | {"usage": usage, "content": [{"type": "text", "text": "good day"}]}
    return [
        row | {"type": "user", "uuid": "u1", "timestamp": f"{day}T10:00:00Z", "message": asked},
        row | {"type": "assistant", "uuid": "u2", "timestamp": f"{day}T10:00:09Z", "message": reply},
    ]


def first_estimate(events: list[Event]) -> int:
    """Return the size of the first call as it was estimated."""
    measured = [event.data for event in events if isinstance(event.data, PressureMeasured)]
    return next(one.used_tokens for one in measured if one.phase == "before")


def test_a_stored_session_keeps_what_it_started_with(store: SqliteStore) -> None:
    first, second, _ = KEYS
    before = stored(store, first, records(first))
    stored(store, second, records(second, compacted=True))
    after = stored(store, first, records(first, calls=6))

    assert after[: len(before)] == before
    assert last_level(after) == (None, None)
    session = store.session(first)
    assert session is not None
    assert session.revision == 1


def test_a_call_above_an_assumed_window_refutes_the_zones_measured_against_it(store: SqliteStore) -> None:
    """A session that was in red of 200k and then sent 240k was never above 24% of its million."""
    key = KEYS[0]
    recording: list[Record] = [SessionOpened(key, "claude-code", "claude-opus-4-6", at=1_000.0)]
    for call, total in enumerate((150_000, 195_000, 240_000, 241_000)):
        recording.append(ContentAdded("user_message", f"question {call}", at=1_000.0 + call))
        recording.append(ModelCalled(Usage(total, 10), "claude-opus-4-6", at=1_000.0 + call))
    stored(store, key, recording)
    session = store.session(key)

    assert session is not None
    assert (session.limit_tokens, session.limit_source) == (1_000_000, "observed_floor")
    assert session.worst_zone == "green"
    assert session.peak_utilization == pytest.approx(0.241, abs=0.001)


def claude_session(
    store: SqliteStore, key: str, *totals: int, start: float, folder: str = "/home/ada/project"
) -> SessionRow:
    """Import a session of Claude Code with calls of these totals, and return its row."""
    playback = playback_settings(store.digester(), history=store.earlier_sessions)
    model = "claude-sonnet-4-6"
    opened = SessionOpened(key, "claude-code", model, at=start, agent_version="2.1.100", folder=folder)
    recording: list[Record] = [opened, SessionDescribed(folder=folder)]
    for call, total in enumerate(totals):
        recording.append(ContentAdded("user_message", f"question {call}", at=start + call))
        recording.append(ModelCalled(Usage(total, 10), model, at=start + call))
    store.import_session(lambda: session_events(recording, key=key, source="test", playback=playback))
    store.flush()
    row = store.session(key)
    assert row is not None
    return row


def test_a_session_starts_with_the_window_that_an_earlier_one_of_the_project_showed(store: SqliteStore) -> None:
    """The larger window of Sonnet 4.6, which only a call above 200,000 tokens shows."""
    first, second, third = KEYS
    assert limit_of(claude_session(store, first, 20_000, start=1_000.0)) == (200_000, "assumed")
    shown = claude_session(store, second, 150_000, 240_000, start=2_000.0)
    assert limit_of(shown) == (1_000_000, "observed_floor")
    later = claude_session(store, third, 20_000, start=3_000.0)
    assert limit_of(later) == (1_000_000, "earlier")
    assert limit_of(claude_session(store, third, 20_000, 30_000, start=3_000.0)) == (1_000_000, "earlier")
    assert limit_of(claude_session(store, first, 20_000, 30_000, start=1_000.0)) == (200_000, "assumed")

    elsewhere = claude_session(store, f"4{KEYS[0][1:]}", 20_000, start=4_000.0, folder="/home/ada/other")
    assert limit_of(elsewhere) == (200_000, "assumed")


def test_a_session_of_another_default_shows_no_later_one_its_window(store: SqliteStore) -> None:
    claude_session(store, KEYS[0], 240_000, start=1_000.0)
    model, folder = "claude-sonnet-4-6", "/home/ada/project"
    window = store.earlier_sessions("next", agent="claude-code", model=model, folder=folder).window
    assert window == EvidentWindow(1_000_000, "earlier", "2.1.100")
    opened = SessionOpened("next", "claude-code", "claude-opus-4-6", agent_version="2.1.300")
    info = SessionInfo("next", "claude-code", "claude-opus-4-6", "test", "next")
    playback = playback_settings(store.digester())

    def used(version: str) -> EvidentWindow | None:
        earlier = EarlierSessions(window=EvidentWindow(1_000_000, version=version))
        return playback.evident_window(info, opened, earlier)

    assert used("2.1.100") is None
    assert used("2.1.290") == EvidentWindow(1_000_000, version="2.1.290")


def limit_of(row: SessionRow) -> tuple[int | None, str | None]:
    """Return the size of a session's window and its source."""
    return row.limit_tokens, row.limit_source


def with_system_prompt(key: str, total: int, *, start: float = 1_000.0) -> list[Record]:
    """Return a session whose first call sends *total* tokens, of which the recording has one short message."""
    return [
        SessionOpened(key, "reviewer", "gpt-5", at=start),
        ContentAdded("user_message", "hello", at=start),
        ContentAdded("assistant_response", "good day", at=start + 1),
        ModelCalled(Usage(total, 10), "gpt-5", at=start + 1),
        ContentAdded("user_message", "go on", at=start + 2),
        ModelCalled(Usage(total + 100, 10), "gpt-5", at=start + 3),
    ]


def test_the_first_call_is_estimated_with_the_unrecorded_content_of_earlier_sessions(store: SqliteStore) -> None:
    estimates = []
    for number, total in enumerate((20_000, 22_000, 21_000, 30_000)):
        recording = with_system_prompt(f"s{number}", total, start=1_000.0 * (number + 1))
        events = stored(store, f"s{number}", recording)
        measured = [event.data for event in events if isinstance(event.data, PressureMeasured)]
        estimates.append(first_estimate(events))
        assert [one.used_tokens for one in measured if one.phase == "final"] == [total, total + 100]

    assert estimates[0] < 100
    assert estimates[1:] == [pytest.approx(expected, abs=100) for expected in (20_000, 20_000, 21_000)]
