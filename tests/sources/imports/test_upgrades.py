"""An upgrade between two imports: the recordings stay the same, whatever the new release derives from them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.sources.imports.test_watch import SESSION, Scene

from windowpane.core.events import Event, PressureMeasured
from windowpane.sources.imports import importer
from windowpane.sources.imports.follow import FollowedFile
from windowpane.sources.imports.importer import import_paths
from windowpane.sources.imports.pipeline import AlertingStore, playback_settings
from windowpane.sources.transcripts.discovery import all_readers
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import EventFilter, SessionFilter

FORMATS = 12
LARGEST_BYTES = 300_000


def other_values(events: Iterator[Event]) -> Iterator[Event]:
    for event in events:
        is_pressure = isinstance(event.data, PressureMeasured)
        yield event._replace(data=replace(event.data, velocity=77.0)) if is_pressure else event


def more_events(events: Iterator[Event]) -> Iterator[Event]:
    added = 0
    for event in events:
        yield event._replace(n=event.n + added)
        if isinstance(event.data, PressureMeasured):
            added += 1
            yield event._replace(n=event.n + added)


def upgrade(monkeypatch: pytest.MonkeyPatch, release: str, how: Any) -> None:
    """Derive events as another release does."""
    monkeypatch.setattr("windowpane.sources.imports.pipeline.package_version", lambda: release)
    played = importer.session_events
    monkeypatch.setattr(importer, "session_events", lambda *args, **given: how(played(*args, **given)))


def smallest_of_each_format(folder: Path) -> list[Path]:
    found = []
    for one in sorted(path for path in folder.iterdir() if path.is_dir()):
        files = sorted((path.stat().st_size, path) for path in one.rglob("*.json*") if path.is_file())
        found += [path for size, path in files if 2_000 < size < LARGEST_BYTES][:1]
    return found[:FORMATS]


def run(paths: list[Path], store: SqliteStore) -> list[Any]:
    playback = playback_settings(store.digester(), limit_tokens=200_000)
    readers = all_readers(complete=True)
    reports = import_paths(paths, AlertingStore(store), playback=playback, readers=readers)
    return [outcome for report in reports for outcome in report.outcomes]


@pytest.mark.parametrize("how", [other_values, more_events])
def test_recordings_of_every_format_stay_the_same_after_an_upgrade(
    tmp_path: Path, sessions_dir: Path, monkeypatch: pytest.MonkeyPatch, how: Any
) -> None:
    store = SqliteStore(tmp_path / "windowpane.db")
    paths = smallest_of_each_format(sessions_dir)
    first = run(paths, store)

    upgrade(monkeypatch, "999.0", how)
    second, third = run(paths, store), run(paths, store)

    assert len(first) >= len(paths) > 1
    assert all(outcome.revision == 1 and outcome.appended <= 1 for outcome in second)
    assert sum(outcome.appended for outcome in second) > len(paths) / 2
    assert all(outcome.appended == 0 for outcome in third)
    assert {row.revision for row in store.sessions(SessionFilter(limit=1_000))} == {1}
    assert store.verify().intact
    store.close()


@pytest.mark.parametrize("how", [other_values, more_events])
def test_a_watched_session_continues_after_an_upgrade(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: Any
) -> None:
    scene = Scene(tmp_path)
    scene.write(3)
    scene.poll()
    scene.write(2)
    scene.poll()

    upgrade(monkeypatch, "999.0", how)
    pieces = FollowedFile.pieces
    added: dict[int, int] = {}

    def upgraded(file: FollowedFile, until: float = math.inf) -> Iterator[list[Event]]:
        if not file.offset:
            added[id(file)] = 0
        for piece in pieces(file, until):
            events = [event._replace(n=event.n + added[id(file)]) for event in piece]
            derived = list(how(iter(events)))
            added[id(file)] += len(derived) - len(events)
            yield derived

    monkeypatch.setattr(FollowedFile, "pieces", upgraded)
    scene.watcher = scene.watch()
    scene.poll()
    for _ in range(3):
        scene.write(2)
        scene.poll()
    scene.now += 300
    os.utime(scene.path, (scene.now - 200, scene.now - 200))
    scene.poll()
    scene.poll()

    row = scene.store.session(SESSION)
    assert (row.revision, row.turns) == (1, 11)
    assert [turn.turn for turn in scene.store.turns(SESSION) if turn.turn] == list(range(1, 12))
    stated = EventFilter(session_id=SESSION, types=("session.rederived",))
    assert scene.store.count_events(stated) == 1
    items = scene.store.events(EventFilter(session_id=SESSION, limit=10_000))
    identified = [(item.event.context.stream_id, item.event.n) for item in items]
    assert len(set(identified)) == len(identified)
    assert scene.store.verify().intact
    scene.store.close()
