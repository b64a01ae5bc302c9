"""Files read by several processes: the store is that of one process, whatever becomes of the others."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from tests.sources.imports.made_sessions import stored_rows, write_sessions

from windowpane.alerts.engine import AlertEngine
from windowpane.core.agents import SessionEvidence
from windowpane.sources.imports import worker
from windowpane.sources.imports.importer import FileReport, import_paths
from windowpane.sources.imports.pipeline import AlertingStore, playback_settings
from windowpane.sources.imports.remembered_files import RememberedFiles
from windowpane.sources.imports.workers import ReadingWorkers, _File, _Worker
from windowpane.sources.transcripts.discovery import all_readers
from windowpane.store.embedded import SqliteStore

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from windowpane.alerts.rules import Rule

Import = Callable[..., list[FileReport]]


def no_time() -> float:
    return 0.0


@pytest.fixture
def run(tmp_path: Path) -> Import:
    """Import a folder into a store of the given name with so many workers; all stores have one digest key."""
    SqliteStore(tmp_path / "empty.db").close()

    def run_import(
        name: str, folder: Path, processes: int, during: Callable[[ReadingWorkers], object] = lambda _: None
    ) -> list[FileReport]:
        file = tmp_path / f"{name}.db"
        if not file.exists():
            shutil.copy(tmp_path / "empty.db", file)
        with closing(SqliteStore(file, clock=no_time, capture=True, redact=str)) as store:
            playback = playback_settings(
                store.digester(), history=store.earlier_sessions, stored_projects=store.stored_project
            )
            with ReadingWorkers(store, playback=playback, processes=processes) as workers:
                return import_paths(
                    [folder],
                    AlertingStore(store),
                    playback=playback,
                    readers=all_readers(),
                    memory=RememberedFiles(store, playback),
                    workers=workers if processes else None,
                    progress=lambda *_, **__: during(workers),
                )

    return run_import


def reported(reports: list[FileReport]) -> list[object]:
    return [
        (one.path, one.format, one.stats, one.problems, one.outcomes, one.error, one.skipped) for one in reports
    ]


def test_the_store_is_that_of_one_process(tmp_path: Path, run: Import, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "project"  # its modules would be imported in place of the standard library's
    project.mkdir()
    for module in ("msgspec.py", "pickle.py", "windowpane.py"):
        (project / module).write_text(f"open({str(tmp_path / 'executed')!r}, 'w')\n")
    monkeypatch.chdir(project)
    sessions = write_sessions(tmp_path / "sessions", 8)

    alone = run("alone", sessions, 0)
    shared = run("shared", sessions, 2)

    assert reported(shared) == reported(alone)
    assert stored_rows(tmp_path / "shared.db") == stored_rows(tmp_path / "alone.db")
    assert "'earlier'" in "".join(stored_rows(tmp_path / "alone.db")["sessions"])  # a window that another showed
    assert not (tmp_path / "executed").exists()
    with (sessions / "00000002-0000-4000-8000-000000000000.jsonl").open("a") as file:
        file.write((sessions / "00000003-0000-4000-8000-000000000000.jsonl").read_text().splitlines()[-1] + "\n")
    os.utime(sessions / "00000002-0000-4000-8000-000000000000.jsonl", (0, 0))
    assert reported(run("shared", sessions, 2)) == reported(run("alone", sessions, 0))
    assert stored_rows(tmp_path / "shared.db") == stored_rows(tmp_path / "alone.db")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere each worker is a new interpreter")
def test_workers_have_a_lower_priority_than_the_pages_of_a_dashboard(tmp_path: Path, run: Import) -> None:
    priorities: set[int] = set()

    def look(workers: ReadingWorkers) -> None:
        pids = [one.process.pid for one in workers._workers if one.has_started]
        priorities.update(os.getpriority(os.PRIO_PROCESS, pid) for pid in pids if pid is not None)

    run("shared", write_sessions(tmp_path / "sessions", 3), 2, look)

    assert priorities
    assert min(priorities) > os.getpriority(os.PRIO_PROCESS, 0)


def test_a_session_that_was_played_before_what_it_learns_from_is_played_again(
    tmp_path: Path, run: Import, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = write_sessions(tmp_path / "sessions", 5)
    run("alone", sessions, 0)
    answer = ReadingWorkers._answer

    def mistaken(workers: ReadingWorkers) -> None:
        for file in workers._unstored:
            file.evidence.clear()
        answer(workers)

    monkeypatch.setattr(ReadingWorkers, "_answer", mistaken)
    run("shared", sessions, 2)

    assert stored_rows(tmp_path / "shared.db") == stored_rows(tmp_path / "alone.db")


def test_a_file_that_is_opened_after_a_worker_has_played_it_is_one_session_of_one_chain(
    tmp_path: Path, run: Import
) -> None:
    sessions = write_sessions(tmp_path / "sessions", 8)
    opened: list[FileReport] = []

    def open_one(workers: ReadingWorkers) -> None:
        while not opened and any(one.files and not one.is_free for one in workers._workers):
            played = [
                file for one in workers._workers for file in one.files if one.is_free or file is not one.current
            ]
            if played:
                opened.extend(run("shared", played[-1].path, 0))
                return
            workers._answer()
            for one in workers._workers:
                if one.connection.poll(0.01):
                    workers._receive_from(one)

    reports = run("shared", sessions, 2, open_one)
    (first,) = opened[0].outcomes
    (later,) = next(one for one in reports if one.path == opened[0].path).outcomes

    assert first.appended > 0
    assert later == replace(first, appended=0, unchanged=first.appended)
    with closing(SqliteStore(tmp_path / "shared.db")) as store:
        assert store.verify().intact
        assert {row.revision for row in store.sessions()} == {1}
        assert len(store.sessions()) == 8


def test_a_first_compaction_is_waited_for_where_no_level_is_known() -> None:
    file = _File(0, Path("earlier.jsonl"), None, 1)
    unknown = worker.EvidenceWanted("agent", "model", "", knows_level=False, compacts=False)
    known = unknown._replace(knows_level=True)

    assert file.may_add(unknown)
    assert file.may_add(known)  # its first turn is not played
    file.is_known = file.compacts = True
    file.evidence["s"] = evidence = SessionEvidence("s", "agent", "model", "", 1.0, 1.0, 9_000, None)
    assert file.may_add(unknown)
    assert not file.may_add(known)
    file.evidence["s"] = evidence._replace(compaction_tokens=90_000)
    assert not file.may_add(unknown)


class _NothingPending:
    """The connection of a worker that learns nothing of sessions that are not stored."""

    def send(self, message: object) -> None:
        pass

    def recv(self) -> list[SessionEvidence]:
        return []


def test_a_session_that_is_played_again_does_not_make_the_next_one_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = write_sessions(tmp_path / "sessions", 6)
    played: list[AlertEngine] = []

    def playing(rules: Sequence[Rule] | None) -> AlertEngine:
        played.append(AlertEngine(rules))
        return played[-1]

    monkeypatch.setattr(worker, "AlertEngine", playing)
    with closing(SqliteStore(tmp_path / "store.db")) as store:
        setup = worker.WorkerSetup.of(store, playback_settings(store.digester()), None)
        reading = worker._Worker(cast("Connection", _NothingPending()), setup)
        for path in sorted(sessions.glob("0*"))[:3]:  # the second learns from the first
            reading.read(path, None)
        for _ in range(3):
            reading.store_next()

        assert len(store.sessions()) == 3
    assert len(played) == 4


def kill_workers(
    monkeypatch: pytest.MonkeyPatch, path: Path, kind: type[worker.ToRead | worker.Turn], *, times: int
) -> list[int]:
    """Let so many workers die at an order for the file at *path*; return their processes."""
    killed: list[int] = []
    send = ReadingWorkers._send

    def kill(workers: ReadingWorkers, one: _Worker, file: _File, order: worker.Order) -> None:
        if file.path == path and isinstance(order, kind) and len(killed) < times:
            assert one.process.pid is not None
            killed.append(one.process.pid)
            os.kill(one.process.pid, signal.SIGKILL)
            one.process.join()
        send(workers, one, file, order)

    monkeypatch.setattr(ReadingWorkers, "_send", kill)
    return killed


@pytest.mark.parametrize(("number", "kind"), [(1, worker.ToRead), (5, worker.Turn)])
def test_what_is_stored_does_not_depend_on_the_death_of_a_worker(
    tmp_path: Path,
    run: Import,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    kind: type[worker.ToRead | worker.Turn],
) -> None:
    sessions = write_sessions(tmp_path / "sessions", 8)
    alone = run("alone", sessions, 0)
    path = sessions / f"{number:08}-0000-4000-8000-000000000000.jsonl"
    killed = kill_workers(monkeypatch, path, kind, times=1)
    shared = run("shared", sessions, 2)

    assert killed
    assert reported(shared) == reported(alone)
    assert stored_rows(tmp_path / "shared.db") == stored_rows(tmp_path / "alone.db")


def test_a_file_whose_second_worker_dies_is_reported(
    tmp_path: Path, run: Import, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = write_sessions(tmp_path / "sessions", 6)
    path = sessions / "00000002-0000-4000-8000-000000000000.jsonl"
    killed = kill_workers(monkeypatch, path, worker.ToRead, times=2)
    reports = run("shared", sessions, 2)

    assert len(killed) == 2
    assert [one.path for one in reports if one.error] == [path]
    assert {one.error for one in reports if one.format} == {""}
    with closing(SqliteStore(tmp_path / "shared.db")) as store:
        assert store.verify().intact
        assert len(store.sessions()) == 5
    run("shared", sessions, 2)
    with closing(SqliteStore(tmp_path / "shared.db")) as store:
        assert len(store.sessions()) == 6


def test_an_import_ends_where_no_further_worker_starts(
    tmp_path: Path, run: Import, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = write_sessions(tmp_path / "sessions", 8)
    alone = run("alone", sessions, 0)
    started = ReadingWorkers._started

    def fail(workers: ReadingWorkers) -> _Worker:
        one = started(workers)
        if killed:
            one.process.kill()
        return one

    killed = kill_workers(
        monkeypatch, sessions / f"{1:08}-0000-4000-8000-000000000000.jsonl", worker.ToRead, times=1
    )
    monkeypatch.setattr(ReadingWorkers, "_started", fail)

    assert reported(run("shared", sessions, 2)) == reported(alone)
    assert stored_rows(tmp_path / "shared.db") == stored_rows(tmp_path / "alone.db")
