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
from windowpane.sources.imports.pipeline import playback_settings
from windowpane.sources.transcripts import playback
from windowpane.sources.transcripts.discovery import all_readers, reader_for
from windowpane.sources.transcripts.playback import session_events
from windowpane.sources.transcripts.reader import FileStats

FEW = 12


def played(source: FileSource) -> list[Event]:
    reader = reader_for(source.path, all_readers(complete=True))
    records = reader.read(source.path, stats=FileStats(), problems=[])
    settings = playback_settings(keyed_digester(b"1" * 32))
    return list(session_events(records, key=source.key, source=reader.format, playback=settings))


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
