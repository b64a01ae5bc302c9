"""Importing files and folders: every file reported, no file stops the rest."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from reads import WordCounter, digest

from windowpane.core.events import Event
from windowpane.exceptions import StoreError, UnknownFormatError
from windowpane.sources.imports import importer
from windowpane.sources.imports.importer import import_paths
from windowpane.sources.transcripts.discovery import all_readers, files_of, reader_for
from windowpane.sources.transcripts.formats.claude_code.reader import ClaudeCodeReader
from windowpane.sources.transcripts.playback_settings import PlaybackSettings
from windowpane.sources.transcripts.reader import FileStats, Problem
from windowpane.sources.transcripts.records import Record
from windowpane.store.records import ImportOutcome

READERS = all_readers(complete=True)


class MemoryStore:
    """Keeps the longest event sequence of each session."""

    def __init__(self, *, refuse: str = "") -> None:
        self.sessions: dict[str, list[Event]] = {}
        self._refuse = refuse

    def import_session(self, events: Callable[[], Iterable[Event]]) -> ImportOutcome:
        first = list(events())
        assert [event.event_id for event in first] == [event.event_id for event in events()]
        session_id = first[0].context.session_id
        if session_id == self._refuse:
            raise StoreError("disk full")
        known = len(self.sessions.get(session_id, ()))
        self.sessions[session_id] = first
        return ImportOutcome(session_id, 1, len(first) - known, known, revised=False)


def playback() -> PlaybackSettings:
    return PlaybackSettings(
        digest=digest,
        counter_for=lambda model: WordCounter(),
    )


def transcript(session: str, *words: str) -> str:
    return "".join(
        f'{{"type":"user","sessionId":"{session}","uuid":"{session}-{number}",'
        f'"timestamp":"2026-01-01T00:00:0{number}Z","message":{{"role":"user","content":"{word}"}}}}\n'
        for number, word in enumerate(words)
    )


def test_folder_is_imported_and_foreign_files_are_not_an_error(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.jsonl").write_text(transcript("a", "one", "two"))
    (tmp_path / "b.jsonl").write_text(transcript("b", "one"))
    (tmp_path / "package.json").write_text('{"name": "x"}')
    (tmp_path / ".hidden.jsonl").write_text(transcript("c", "one"))
    store = MemoryStore()

    reports = import_paths([tmp_path], store, playback=playback(), readers=READERS)

    assert sorted(store.sessions) == ["claude_code:a", "claude_code:b"]
    assert [(report.path.name, report.unknown) for report in reports] == [
        ("b.jsonl", False),
        ("package.json", True),
        ("a.jsonl", False),
    ]
    assert not any(report.partial for report in reports)


def test_named_file_of_unknown_format_is_an_error(tmp_path: Path) -> None:
    named = tmp_path / "notes.txt"
    named.write_text("hello")

    (report,) = import_paths([named], MemoryStore(), playback=playback(), readers=READERS)

    assert report.partial
    assert "claude_code" in report.error
    assert report.unknown


def test_store_error_of_one_session_does_not_stop_the_others(tmp_path: Path) -> None:
    both = tmp_path / "both.jsonl"
    both.write_text(transcript("a", "one") + transcript("b", "one"))
    store = MemoryStore(refuse="claude_code:a")

    (report,) = import_paths([both], store, playback=playback(), readers=READERS)

    assert list(store.sessions) == ["claude_code:b~a"]
    assert "disk full" in report.error
    assert report.partial


def test_the_same_file_under_two_names_is_read_once(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(transcript("a", "one"))
    (tmp_path / "link.jsonl").symlink_to(file)

    assert list(files_of([tmp_path, file])) == [file]


def odd_paths(folder: Path) -> dict[str, str]:
    """Fill *folder* with what is not a file; return the reason why each is skipped."""
    for name, target in {
        "itself.jsonl": "itself.jsonl", "a.json": "b.json", "b.json": "a.json", "missing.json": "nowhere.json",
        "zero.jsonl": "/dev/zero", "up": "..",
    }.items():  # fmt: skip
        (folder / name).symlink_to(target)
    os.mkfifo(folder / "pipe.jsonl")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "socket.jsonl"))
    return {
        "itself.jsonl": "a symbolic link to itself", "a.json": "a symbolic link to itself",
        "b.json": "a symbolic link to itself", "missing.json": "a symbolic link to a missing file",
        "zero.jsonl": "a device", "up": "a symbolic link to a folder", "pipe.jsonl": "a pipe",
        "socket.jsonl": "a socket",
    }  # fmt: skip


@pytest.mark.timeout(20)
def test_what_is_not_a_file_is_skipped_with_its_reason(tmp_path: Path) -> None:
    reasons = odd_paths(tmp_path)
    (tmp_path / "good.jsonl").write_text(transcript("a", "one"))
    store = MemoryStore()

    reports = import_paths([tmp_path], store, playback=playback(), readers=READERS)

    skipped = {report.path.name: report.skipped for report in reports if report.skipped}
    assert list(store.sessions) == ["claude_code:a"]
    assert {name for name, reason in skipped.items() if not reason.startswith(reasons[name])} == set()
    assert set(skipped) == set(reasons)
    assert not any(report.error for report in reports)


def test_an_index_of_recordings_is_known(tmp_path: Path) -> None:
    for folder in ("indexes", "others"):
        (tmp_path / folder).mkdir()
    index = tmp_path / "indexes" / "sessions-index.json"
    index.write_text('{"version": 1, "entries": [{"sessionId": "a", "summary": "One"}], "originalPath": "/w"}')
    (tmp_path / "indexes" / "a.jsonl").write_text(transcript("a", "one"))
    (tmp_path / "others" / "sessions-index.json").write_text('{"messages": 1}')
    for folder, columns in (("indexes", "session_id TEXT, messages_path TEXT"), ("others", "id TEXT")):
        with closing(sqlite3.connect(tmp_path / folder / "sessions.db")) as database:
            database.execute(f"CREATE TABLE sessions ({columns})")
    store = MemoryStore()

    reports = import_paths([tmp_path], store, playback=playback(), readers=READERS)

    assert list(store.sessions) == ["claude_code:a"]
    assert {report.path.parent.name for report in reports if report.skipped} == {"others"}
    assert not any(report.error for report in reports)
    (named,) = import_paths([index], store, playback=playback(), readers=READERS)
    assert named.error == "an index of recordings, which has no content of a window"


@pytest.mark.timeout(20)
def test_what_is_not_a_file_is_an_error_where_it_is_named(tmp_path: Path) -> None:
    reasons = odd_paths(tmp_path)
    given = [tmp_path / name for name in reasons if name != "up"]

    reports = import_paths(given, MemoryStore(), playback=playback(), readers=READERS)

    assert len({report.path for report in reports}) == len(reports) >= 5
    assert all(report.error.startswith(reasons[report.path.name]) for report in reports)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b"", "empty"),
        (b"\xff\xfe{\0", "UTF-16"),
        (b"\x7fELF\0\0", "binary"),
        (b'{"a": 1}', "no known format"),
        (b"hello", "neither"),
    ],
)
def test_unknown_format_error_describes_the_content(tmp_path: Path, head: bytes, said: str) -> None:
    file = tmp_path / "file.jsonl"
    file.write_bytes(head)

    with pytest.raises(UnknownFormatError, match=said):
        reader_for(file, READERS)


def test_missing_file_is_reported(tmp_path: Path) -> None:
    (report,) = import_paths([tmp_path / "nowhere"], MemoryStore(), playback=playback(), readers=READERS)

    assert "No such file" in report.error


def test_progress_callback_is_called_for_every_file(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text(transcript(name, "one"))
    heard: list[str] = []

    def progress(path: Path, *, number: int, total: int) -> None:
        heard.append(f"{path.stem} {number}/{total}")

    import_paths([tmp_path], MemoryStore(), playback=playback(), readers=READERS, progress=progress)

    assert heard == ["a 1/2", "b 2/2"]


def test_large_files_are_read_again_for_each_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = tmp_path / "both.jsonl"
    both.write_text(transcript("a", "one", "two") + transcript("b", "three"))
    kept, again = MemoryStore(), MemoryStore()
    import_paths([both], kept, playback=playback(), readers=READERS)
    monkeypatch.setattr(importer, "IN_MEMORY_BYTES", 0)

    (report,) = import_paths([both], again, playback=playback(), readers=READERS)

    assert again.sessions == kept.sessions
    assert report.stats.messages == 3


def test_fault_in_one_reader_does_not_stop_the_rest(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A bug met in one file is that file's error, and the next one is imported."""

    class Faulty(ClaudeCodeReader):
        def read(self, path: Path, *, stats: FileStats, problems: list[Problem]) -> Iterator[Record]:
            if path.stem == "a":
                raise ZeroDivisionError
            return super().read(path, stats=stats, problems=problems)

    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text(transcript(name, "one"))
    store = MemoryStore()

    reports = import_paths([tmp_path], store, playback=playback(), readers=[Faulty(complete=True)])

    assert [bool(report.error) for report in reports] == [True, False]
    assert "ZeroDivisionError" in reports[0].error
    assert "a.jsonl" in caplog.text


def test_recordings_import_to_the_same_events_in_any_order(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(transcript("a", "one") + transcript("b", "half"))
    (tmp_path / "b.jsonl").write_text(transcript("b", "one", "two"))
    forth, back = MemoryStore(), MemoryStore()
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]

    import_paths(files, forth, playback=playback(), readers=READERS)
    import_paths(reversed(files), back, playback=playback(), readers=READERS)

    assert forth.sessions == back.sessions
    assert sorted(forth.sessions) == ["claude_code:a", "claude_code:b", "claude_code:b~a"]


def test_a_format_without_a_real_recording_is_named_experimental(tmp_path: Path) -> None:
    """The report states once that its reader was built from the source of the tool."""
    run = {
        "id": "r1",
        "run_type": "llm",
        "trace_id": "t",
        "inputs": {"messages": [{"role": "user", "content": "a"}]},
    }
    path = tmp_path / "runs.json"
    path.write_text(json.dumps([run, run | {"id": "r2"}]))

    (report,) = import_paths([path], MemoryStore(), playback=playback(), readers=READERS)

    assert report.format == "langsmith"
    assert len([problem for problem in report.problems if "experimental" in problem.problem]) == 1
    assert not report.partial


def test_the_newest_files_are_read_first_in_groups_that_start_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importer, "FIRST_GROUP_BYTES", 400)
    monkeypatch.setattr(importer, "GROUP_BYTES", 600)
    sizes = {"newest": 90, "huge": 5_000, "new": 90, "old": 300, "older": 300, "oldest": 300}
    for age, (name, size) in enumerate(sizes.items()):
        (tmp_path / name).write_text("x" * size)
        os.utime(tmp_path / name, (1_000 - age, 1_000 - age))

    groups = importer.groups_by_change(sorted(tmp_path.iterdir()))

    assert [[path.name for path in group] for group in groups if group] == [
        ["newest", "new"], ["huge"], ["old", "older", "oldest"],
    ]  # fmt: skip


@pytest.mark.parametrize("sessions", [3, 6])
def test_the_latest_sessions_are_listed_before_any_is_read_and_the_rest_after_the_first_ones(
    tmp_path: Path, sessions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(sessions):
        path = tmp_path / f"s{number}.jsonl"
        path.write_text(transcript(f"s{number}", "one", "two"))
        os.utime(path, (number, number))
    monkeypatch.setattr(importer, "FIRST_GROUP_FILES", 1)
    monkeypatch.setattr(importer, "GROUP_BYTES", 2 * path.stat().st_size)
    steps: list[str] = []

    def outline(paths: Sequence[Path], *, are_last: bool) -> None:
        steps.append(f"list {' '.join(path.stem for path in paths)}{' to the end' if are_last else ''}")

    import_paths(
        [tmp_path], MemoryStore(), playback=playback(), readers=READERS, newest_first=True, outline=outline,
        progress=lambda path, **_: steps.append(path.stem),
    )  # fmt: skip

    assert steps == {
        3: ["list s2 s1 s0 to the end", "s2", "s1", "s0"],
        6: ["list s5 s4 s3", "s5", "list s2 s1 s0 to the end", "s4", "s3", "s2", "s1", "s0"],
    }[sessions]  # fmt: skip


def test_newest_first_stores_all_that_the_order_of_time_stores(tmp_path: Path) -> None:
    for number in range(4):
        path = tmp_path / f"s{number}.jsonl"
        path.write_text(transcript(f"s{number}", "one", "two"))
        os.utime(path, (number, number))
    (tmp_path / "other.json").write_text("[]")
    visited: list[str] = []
    store = MemoryStore()

    reports = import_paths(
        [tmp_path], store, playback=playback(), readers=READERS, newest_first=True,
        progress=lambda path, *, number, total: visited.append(f"{number}/{total} {path.name}"),
    )  # fmt: skip

    assert [one.path.name for one in reports if one.format] == [f"s{number}.jsonl" for number in range(4)]
    assert len(store.sessions) == 4
    assert [line.split()[0] for line in visited] == [f"{number}/5" for number in range(1, 6)]
