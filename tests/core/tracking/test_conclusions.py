"""Conclusions drawn again from the facts of a session alone, without any text."""

from __future__ import annotations

from pathlib import Path

import pytest
from concluded import Concluded
from tests.sampling import sampled

from windowpane.core.codec import encode_all
from windowpane.core.digests import keyed_digester
from windowpane.core.events import Event
from windowpane.evaluation.replay.recordings import FileSource, find_recordings
from windowpane.evaluation.replay.rerun import RerunOptions, managed_events
from windowpane.manager import session as manager_session
from windowpane.manager.plans.policies import POLICIES
from windowpane.sources.imports.pipeline import playback_settings
from windowpane.sources.transcripts import playback
from windowpane.sources.transcripts.discovery import all_readers, reader_for
from windowpane.sources.transcripts.playback import session_events
from windowpane.sources.transcripts.reader import FileStats
from windowpane.testing import CharacterCounter

FEW = 12
MANAGED_TOKENS = 8_192
"""A window in which long sessions are evicted, compressed, compacted and rolled over."""


def played(source: FileSource) -> list[Event]:
    reader = reader_for(source.path, all_readers(complete=True))
    records = reader.read(source.path, stats=FileStats(), problems=[])
    settings = playback_settings(keyed_digester(b"1" * 32))
    return list(session_events(records, key=source.key, source=reader.format, playback=settings))


def managed(source: FileSource, policy: str) -> list[Event]:
    reader = reader_for(source.path, all_readers(complete=True))
    records = reader.read(source.path, stats=FileStats(), problems=[])
    options = RerunOptions(
        "managed", MANAGED_TOKENS, CharacterCounter(), keyed_digester(b"1" * 32), policy=POLICIES[policy]
    )
    return list(managed_events(records, key=source.key, options=options))


def test_recorded_sessions_are_concluded_again_event_for_event(
    sessions_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = sampled(list(find_recordings([sessions_dir])), FEW)
    events = 0
    for source in sources:
        concluded = Concluded()
        monkeypatch.setattr(playback, "SessionTracker", concluded.tracker)
        first = played(source)

        assert encode_all(concluded.again()) == encode_all(first), source.path
        events += len(first)

    assert events > 100 * len(sources)


@pytest.mark.parametrize("policy", ["hybrid", "semantic_merge"])
def test_managed_sessions_are_concluded_again_event_for_event(
    sessions_dir: Path, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    changes: set[str] = set()
    for source in sampled(list(find_recordings([sessions_dir / "pi", sessions_dir / "swe_agent"])), FEW // 4):
        concluded = Concluded()
        monkeypatch.setattr(manager_session, "SessionTracker", concluded.tracker)
        first = managed(source, policy)

        assert encode_all(concluded.again()) == encode_all(first), source.path
        changes |= {type(fact).__name__ for fact in concluded.facts}

    assert {"BlockEviction", "Reduction"} <= changes
