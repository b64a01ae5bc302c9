"""Real recordings in the store: imported once, unchanged when imported again, the same after a rebuild."""

from __future__ import annotations

from tests.store.conformance.direct_access import PROJECTIONS, contents_of

from windowpane.sources.imports.importer import import_paths
from windowpane.sources.transcripts.discovery import all_readers
from windowpane.sources.transcripts.playback_settings import PlaybackSettings
from windowpane.store.filters import EventFilter, SessionFilter


class QuarterCounter:
    """A quarter of a token per character."""

    source = "estimate"

    def count(self, text: str) -> int:
        return len(text) // 4


def test_recordings_are_stored_once_and_read_alike(stores, sessions_dir):
    store = stores.open()
    playback = PlaybackSettings(
        digest=store.digester(),
        counter_for=lambda model: QuarterCounter(),
        limit_tokens=200_000,
    )
    folders = [sessions_dir / name for name in ("claude_code", "codex", "pi", "tau_bench")]
    first = import_paths(folders, store, playback=playback, readers=all_readers(complete=True))
    stored = contents_of(store, PROJECTIONS)

    again = import_paths(folders, store, playback=playback, readers=all_readers(complete=True))
    outcomes = [outcome for report in again for outcome in report.outcomes]

    assert sum(outcome.appended for report in first for outcome in report.outcomes) == store.size().events
    assert outcomes
    assert all(outcome.appended == 0 and not outcome.revised for outcome in outcomes)
    assert store.verify().intact
    store.rebuild_projections()
    assert contents_of(store, PROJECTIONS) == stored
    for row in store.sessions(SessionFilter(limit=1_000)):
        assert len(store.turns(row.session_id)) >= row.turns
        assert store.count_events(EventFilter(session_id=row.session_id)) == row.events
    store.close()
