"""Real recordings played into events: totals, identity of repeated content, growth of continued content."""

from __future__ import annotations

import json
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from tests.sampling import EVERYTHING

from windowpane.core.codec import encode
from windowpane.core.events import Event
from windowpane.sources.transcripts.discovery import all_readers
from windowpane.sources.transcripts.playback import session_events, session_keys
from windowpane.sources.transcripts.playback_settings import PlaybackSettings
from windowpane.sources.transcripts.reader import FileStats

FILES = (
    "claude_code/compact_micro_76-62d755ef9f-2.jsonl",
    "claude_code/compact_small_a6-e4c2a0fbd1-0.jsonl",
    "claude_code/micro_ids_present_d5-99f72ee73a-0.jsonl",
    "claude_code/new_cli_8c-b7fcfcbb16-0.jsonl",
    "claude_code/small_progress_96-6462b9a8e7-0.jsonl",
    "codex/rollout_compact2_spark_00-34f597b72d-1.jsonl",
    "codex/rollout_small_a3-92ff332928-0.jsonl",
    "pi/large-session.jsonl",
)
CUTS = 12 if EVERYTHING else 4


class QuarterCounter:
    source = "estimate"

    def count(self, text: str) -> int:
        return len(text) // 4


PLAYBACK = PlaybackSettings(
    digest=lambda text: blake2b(text.encode(), digest_size=8).hexdigest(),
    counter_for=lambda model: QuarterCounter(),
)


def played(path: Path, source: str, *, complete: bool) -> dict[str, list[Event]]:
    reader = next(reader for reader in all_readers(complete=complete) if reader.format == source)
    records = list(reader.read(path, stats=FileStats(), problems=[]))
    return {
        key: list(session_events(records, key=key, source=source, playback=PLAYBACK))
        for key in session_keys(records)
    }


def of(events: list[Event], name: str) -> list[Any]:
    return [event.data for event in events if event.type == name]


@pytest.mark.parametrize("name", FILES)
def test_growing_recording_only_ever_appends(sessions_dir: Path, tmp_path: Path, name: str) -> None:
    source = name.partition("/")[0]
    lines = (sessions_dir / name).read_bytes().splitlines(keepends=True)
    whole = {
        key: [encode(event) for event in events]
        for key, events in played(sessions_dir / name, source, complete=True).items()
    }
    cut = tmp_path / Path(name).name

    for length in range(1, len(lines), max(1, len(lines) // CUTS)):
        cut.write_bytes(b"".join(lines[:length]))
        for key, events in played(cut, source, complete=False).items():
            part = [encode(event) for event in events]
            assert part == whole[key][: len(part)], f"cut after line {length}"


@pytest.mark.parametrize("name", FILES)
def test_calls_and_largest_window_are_those_of_the_manifest(sessions_dir: Path, name: str) -> None:
    entries = json.loads((sessions_dir / "MANIFEST.json").read_text())
    usage = next(entry["stats"]["usage"] for entry in entries if entry["file"] == name)
    (events,) = played(sessions_dir / name, name.partition("/")[0], complete=True).values()

    ended = [one for one in of(events, "turn.ended") if one.usage is not None]
    final = [
        measured.used_tokens
        for measured in of(events, "pressure.measured")
        if measured.phase == "final" and measured.count_source == "usage"
    ]
    assert max(one.usage.input_total for one in ended) == usage["peak_context"] == max(final)
    outputs = [
        one.usage.output_tokens if one.recorded_output_tokens is None else one.recorded_output_tokens
        for one in ended
    ]
    assert sum(outputs) == usage.get("output_tokens", usage.get("output"))


@pytest.mark.parametrize("name", FILES)
def test_estimates_between_counts_are_close(sessions_dir: Path, name: str) -> None:
    (events,) = played(sessions_dir / name, name.partition("/")[0], complete=True).values()
    errors = sorted(
        abs(measured.estimate_error)
        for measured in of(events, "pressure.measured")
        if measured.estimate_error is not None
    )

    assert errors[len(errors) // 2] < 0.05
