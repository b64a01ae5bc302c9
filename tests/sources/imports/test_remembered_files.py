"""Importing again: an unchanged file is not read, and a changed one gives the events that it gave before."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from windowpane.core.digests import keyed_digester
from windowpane.sources.imports.importer import FileReport, import_paths
from windowpane.sources.imports.pipeline import AlertingStore, playback_settings
from windowpane.sources.imports.remembered_files import RememberedFiles
from windowpane.sources.transcripts.formats.pi import PiReader
from windowpane.sources.transcripts.playback_settings import PlaybackSettings
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import EventFilter

PLAYBACK = playback_settings(keyed_digester(b"tests"))
HEADER = '{"type": "session", "id": "%s", "cwd": "/", "timestamp": "2026-01-01T00:00:00Z"}\n'
ENTRY = '{"type": "message", "id": "e%d", "message": {"role": "user", "content": "request %d"}}\n'


class CountingReader(PiReader):
    """Counts the files that it reads."""

    def __init__(self) -> None:
        super().__init__(complete=True)
        self.files = 0

    def read(self, path: Path, **more: Any) -> Any:
        self.files += 1
        return super().read(path, **more)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "store.db")) as opened:
        yield opened


def write(folder: Path, name: str, entries: int, *, at: float = 0) -> Path:
    """Write a session that was finished long ago."""
    path = folder / f"{name}.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text(HEADER % name + "".join(ENTRY % (number, number) for number in range(entries)))
    os.utime(path, (at, at))
    return path


def run(
    store: SqliteStore, folder: Path, reader: CountingReader, playback: PlaybackSettings = PLAYBACK
) -> list[FileReport]:
    memory = RememberedFiles(store, playback)
    return import_paths([folder], AlertingStore(store), playback=playback, readers=[reader], memory=memory)


def test_unchanged_files_are_not_read_and_reported_as_before(tmp_path: Path, store: SqliteStore) -> None:
    folder = tmp_path / "sessions"
    for number in range(5):
        write(folder, f"s{number}", 3 + number)
    (folder / "other.json").write_text("[]")
    os.utime(folder / "other.json", (0, 0))
    reader = CountingReader()
    first = run(store, folder, reader)
    again = run(store, folder, reader)

    assert reader.files == 5
    assert [(one.path, one.format, one.stats, one.skipped) for one in again] == [
        (one.path, one.format, one.stats, one.skipped) for one in first
    ]
    assert sum(outcome.appended for one in again for outcome in one.outcomes) == 0
    assert [outcome.unchanged for one in again for outcome in one.outcomes] == [
        outcome.appended for one in first for outcome in one.outcomes
    ]
    write(folder, "s2", 9, at=5)
    run(store, folder, reader)
    assert reader.files == 6


@pytest.mark.parametrize("change", ["settings", "pruned", "size", "replaced"])
def test_whatever_events_depend_on_is_compared(tmp_path: Path, store: SqliteStore, change: str) -> None:
    folder, reader, playback = tmp_path / "sessions", CountingReader(), PLAYBACK
    path = write(folder, "s", 3)
    run(store, folder, reader)
    if change == "settings":
        playback = replace(PLAYBACK, limit_tokens=5_000)
    elif change == "pruned":
        store.prune(before=10**12)
    elif change == "size":
        write(folder, "s", 4)
    else:
        other = write(tmp_path / "beside", "s", 3)
        other.replace(path)
    run(store, folder, reader, playback)

    assert reader.files == 2


def test_a_file_that_may_still_grow_is_not_remembered(tmp_path: Path, store: SqliteStore) -> None:
    """Its open end is read when it is finished, although nothing was written since."""
    folder, reader = tmp_path / "sessions", CountingReader()
    path = write(folder, "s", 3)
    os.utime(path)
    run(store, folder, reader)
    run(store, folder, reader)

    assert reader.files == 2


def test_a_changed_file_gives_the_events_of_a_first_import(tmp_path: Path, store: SqliteStore) -> None:
    folder, chance = tmp_path / "sessions", random.Random(7)  # test data
    lengths = dict.fromkeys((f"s{number}" for number in range(6)), 1)
    for step in range(30):
        name = chance.choice(list(lengths))
        lengths[name] += chance.randint(0, 4)
        write(folder, name, lengths[name], at=step)
        run(store, folder, CountingReader())
    with closing(SqliteStore(tmp_path / "once.db")) as once:
        run(once, folder, CountingReader())

        for row in once.sessions():
            query = EventFilter(session_id=row.session_id, limit=10_000)
            expected = [stored.event for stored in once.events(query)]
            assert [stored.event for stored in store.events(query)] == expected
        assert len(once.sessions()) == len(store.sessions())


def test_every_file_is_read_again_after_an_upgrade(
    tmp_path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, reader = tmp_path / "sessions", CountingReader()
    write(folder, "s", 3)
    run(store, folder, reader)
    monkeypatch.setattr("windowpane.sources.imports.remembered_files.package_version", lambda: "999.0")
    run(store, folder, reader)

    assert reader.files == 2
