"""Compaction levels and window sizes that a store learns from recordings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from windowpane.core.events import Event, PressureMeasured, Usage
from windowpane.sources.imports.pipeline import playback_settings
from windowpane.sources.transcripts.playback import session_events
from windowpane.sources.transcripts.records import Compacted, ContentAdded, ModelCalled, Record, SessionOpened
from windowpane.store.embedded import SqliteStore

KEYS = tuple(f"{number}0000000-0000-4000-8000-000000000000" for number in range(1, 4))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    """A new store."""
    opened = SqliteStore(tmp_path / "windowpane.db")
    yield opened
    opened.close()


def records(key: str, *, compacted: bool = False, calls: int = 4, agent: str = "reviewer") -> list[Record]:
    """Return a session of calls that grow by 10,000 tokens, with a compaction at 80,000 before the last one."""
    made: list[Record] = [SessionOpened(key, agent, "gpt-5", at=1_000.0)]
    for call in range(calls):
        if compacted and call == calls - 1:
            made.append(Compacted("auto", tokens_before=80_000, summary="a summary", at=1_000.0 + call))
        made.append(ContentAdded("user_message", f"question {call}", at=1_000.0 + call))
        made.append(ModelCalled(Usage(10_000 * (call + 1), 10), "gpt-5", at=1_000.0 + call))
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
    assert last_level(stored(store, third, records(third))) == (80_000, "earlier")
    assert last_level(stored(store, "other", records("other", agent="writer"))) == (None, None)


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


def with_system_prompt(key: str, total: int) -> list[Record]:
    """Return a session whose first call sends *total* tokens, of which the recording has one short message."""
    return [
        SessionOpened(key, "reviewer", "gpt-5", at=1_000.0),
        ContentAdded("user_message", "hello", at=1_000.0),
        ContentAdded("assistant_response", "good day", at=1_001.0),
        ModelCalled(Usage(total, 10), "gpt-5", at=1_001.0),
        ContentAdded("user_message", "go on", at=1_002.0),
        ModelCalled(Usage(total + 100, 10), "gpt-5", at=1_003.0),
    ]


def test_the_first_call_is_estimated_with_the_unrecorded_content_of_earlier_sessions(store: SqliteStore) -> None:
    estimates = []
    for number, total in enumerate((20_000, 22_000, 21_000, 30_000)):
        events = stored(store, f"s{number}", with_system_prompt(f"s{number}", total))
        measured = [event.data for event in events if isinstance(event.data, PressureMeasured)]
        estimates.append(next(one.used_tokens for one in measured if one.phase == "before"))
        assert [one.used_tokens for one in measured if one.phase == "final"] == [total, total + 100]

    assert estimates[0] < 100
    assert estimates[1:] == [pytest.approx(expected, abs=100) for expected in (20_000, 20_000, 21_000)]
