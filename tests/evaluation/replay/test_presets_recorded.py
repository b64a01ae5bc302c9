"""Recorded sessions under every preset."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from test_rerun import RECORDED, digest, recorded
from tests.sampling import sampled

from windowpane.core.events import BlocksEvicted, ContentCompressed, Event, OverflowDetected, PressureMeasured
from windowpane.evaluation.replay.rerun import RerunOptions, managed_events
from windowpane.manager.presets.registry import PRESETS
from windowpane.sources.transcripts.playback import session_keys
from windowpane.testing import CharacterCounter, MemoryArchive

LIMITS = (8_192, 32_768)


def played(folder: Path, name: str, preset: str, limit: int) -> list[Event]:
    chosen = PRESETS[preset]
    records = recorded(folder, name)
    run = RerunOptions(
        "s",
        limit,
        chosen.counter or CharacterCounter(),
        digest,
        policy=chosen.control.policy,
        archive=MemoryArchive(),
        settings=replace(chosen.settings(), background=False),
        tracking=chosen.tracking(),
    )
    return list(managed_events(records, key=session_keys(records)[0], options=run))


@pytest.mark.parametrize("name", sampled(RECORDED, 2))
@pytest.mark.parametrize("limit", sampled(LIMITS, 1))
@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_recorded_sessions_fit_under_every_preset(
    sessions_dir: Path, name: str, limit: int, preset: str, caplog: pytest.LogCaptureFixture
) -> None:
    events = played(sessions_dir, name, preset, limit)
    sent = {
        event.context.turn: event.data.used_tokens
        for event in events
        if isinstance(event.data, PressureMeasured) and event.data.phase in ("before", "after")
    }

    assert max(sent.values()) <= limit
    assert not any(
        isinstance(event.data, OverflowDetected) and event.data.outcome == "failed" for event in events
    )
    assert all(event.data.tokens_freed > 0 for event in events if isinstance(event.data, BlocksEvicted))
    assert all(
        event.data.tokens_after < event.data.tokens_before
        for event in events
        if isinstance(event.data, ContentCompressed) and event.data.outcome == "accepted"
    )
    assert "unmanaged" not in caplog.text


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_the_same_recording_under_the_same_preset_gives_the_same_events(sessions_dir: Path, preset: str) -> None:
    first = played(sessions_dir, RECORDED[1], preset, 8_192)

    assert [event.data for event in first] == [
        event.data for event in played(sessions_dir, RECORDED[1], preset, 8_192)
    ]
