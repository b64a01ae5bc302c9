"""Files on a slow disk or behind a lock delay no hook: originals, checkpoints, notes, the end of a task."""

from __future__ import annotations

import asyncio
import fcntl
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import filler, tool_turn

from windowpane.agents.managers import AsyncContextWindowManager, ContextWindowManager
from windowpane.core.events import CheckpointRejected, CheckpointSaved
from windowpane.effects import background_writer
from windowpane.effects.background_writer import BackgroundWriter
from windowpane.exceptions import UnfinishedWriteError
from windowpane.manager.files.archive import FileArchive
from windowpane.manager.files.checkpoints import FileCheckpoints
from windowpane.manager.files.notes import FileNotes
from windowpane.testing import RecordingSink, chat_reply, in_memory_dependencies

BOUND_SECONDS = 0.8
"""Longest accepted hook: one wait of 0.25 s for each kind of file, and the noise of a busy machine."""


def plain(text: str) -> str:
    return text


def options(sink: RecordingSink, folder: Path, **changes: Any) -> dict[str, Any]:
    dependencies = replace(
        in_memory_dependencies(sink),
        archive=FileArchive(folder / "archive", redact=plain),
        checkpoints=FileCheckpoints(folder, redact=plain),
        timer=time.perf_counter,
    )
    return {
        "agent": "a", "model": "m", "limit_tokens": 4_000, "task_goal": "Migrate", "task_id": "t",
        "session_id": "s", "dependencies": replace(dependencies, **changes),
    }  # fmt: skip


class Disk:
    """Holds writes up until it responds."""

    def __init__(self) -> None:
        self.is_open = threading.Event()

    def hold(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def held(*args: Any, **more: Any) -> Any:
            self.is_open.wait(20)
            return function(*args, **more)

        return held


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """Every original and every checkpoint waits for the disk."""
    disk = Disk()
    monkeypatch.setattr(FileArchive, "put", disk.hold(FileArchive.put))
    monkeypatch.setattr(FileCheckpoints, "save", disk.hold(FileCheckpoints.save))
    yield disk
    disk.is_open.set()


@contextmanager
def lasts_at_most(seconds: float) -> Iterator[None]:
    started = time.perf_counter()
    yield
    assert time.perf_counter() - started < seconds


def test_an_original_is_retrievable_before_it_is_written(tmp_path: Path, disk: Disk) -> None:
    sink = RecordingSink()
    with ContextWindowManager(**options(sink, tmp_path)) as window:
        window.add_user("Go.")
        for n in range(6):
            with lasts_at_most(BOUND_SECONDS):
                tool_turn(window, n, result=f"result {n} " + filler(900, tag=str(n)))
        handles = [block.handle for block in window.blocks() if block.handle]
        assert handles
        before = [window.retrieve(handle) for handle in handles]
        assert all(before)

        disk.is_open.set()
        assert window.settle(10)
        assert [window.retrieve(handle) for handle in handles] == before
        archive = FileArchive(tmp_path / "archive", redact=plain)
        assert [archive.get("s", handle) for handle in handles] == before


def test_done_does_not_wait_for_a_lock_that_another_process_holds(tmp_path: Path) -> None:
    sink = RecordingSink()
    window = ContextWindowManager(**options(sink, tmp_path))
    lock = os.open(tmp_path / ".t.json.lock", os.O_WRONLY | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    for step in ("one", "two", "three"):
        with lasts_at_most(BOUND_SECONDS):
            window.task.complete(step)
    assert not (tmp_path / "t.json").exists()
    os.close(lock)
    assert window.settle(10)
    window.flush()

    saved = [event.data.version for event in sink.events if isinstance(event.data, CheckpointSaved)]
    assert saved == [1, 2, 3]
    assert not [event for event in sink.events if isinstance(event.data, CheckpointRejected)]
    stored = FileCheckpoints(tmp_path, redact=plain).load("t").document
    assert stored is not None
    assert stored["version"] == 3
    window.close()


def test_only_the_first_write_of_a_fault_is_awaited(tmp_path: Path, disk: Disk) -> None:
    window = ContextWindowManager(**options(RecordingSink(), tmp_path))
    window.task.complete("one")
    with lasts_at_most(0.2):
        for step in range(5):
            window.task.complete(f"step {step}")
    assert FileCheckpoints(tmp_path, redact=plain).load("t").document is None

    disk.is_open.set()
    assert window.settle(10)
    stored = FileCheckpoints(tmp_path, redact=plain).load("t").document
    assert stored is not None
    assert stored["version"] == 6
    window.close()


def test_the_end_of_a_task_is_bounded(tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    """complete() and close() return although the disk hangs; the task then counts as complete."""
    for module in ("windowpane.manager.session", "windowpane.effects.background_writer"):
        monkeypatch.setattr(f"{module}.END_SECONDS", 0.5)
    window = ContextWindowManager(**options(RecordingSink(), tmp_path))
    window.add_user("Go.")
    with lasts_at_most(2):
        assert window.complete("All done.").summary == "All done."
    disk.is_open.set()
    assert window.settle(10)

    again = ContextWindowManager(
        **options(
            RecordingSink(),
            tmp_path,
        )
    )
    assert again.task.resumed is None
    again.close()


def test_leaving_the_block_waits_for_the_last_checkpoint(tmp_path: Path, disk: Disk) -> None:
    sink = RecordingSink()
    timer = threading.Timer(0.6, disk.is_open.set)
    with ContextWindowManager(**options(sink, tmp_path)) as window:
        window.add_user("Go.")
        timer.start()

    types = [event.type for event in sink.events]
    assert types[-2:] == ["checkpoint.saved", "session.ended"]
    assert (tmp_path / "t.json").exists()


def test_a_checkpoint_that_cannot_be_read_in_time_is_not_waited_for(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk.is_open.set()
    with ContextWindowManager(**options(RecordingSink(), tmp_path)) as window:
        window.add_user("Go.")
    disk.is_open.clear()
    monkeypatch.setattr(FileCheckpoints, "load", disk.hold(FileCheckpoints.load))
    monkeypatch.setattr("windowpane.manager.session.END_SECONDS", 0.2)

    sink = RecordingSink()
    with lasts_at_most(BOUND_SECONDS):
        window = ContextWindowManager(**options(sink, tmp_path))

    assert window.task.resumed is None
    disk.is_open.set()
    window.close()
    assert [event.reason for event in sink.of(CheckpointRejected)] == ["it could not be read in time"]


def test_notes_are_written_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk()
    monkeypatch.setattr(FileNotes, "save", disk.hold(FileNotes.save))
    notes = FileNotes(tmp_path / "notes.md", redact=plain)
    window = ContextWindowManager(**options(RecordingSink(), tmp_path, notes=notes))
    with lasts_at_most(BOUND_SECONDS):
        for n in range(5):
            window.task.add_note(f"note {n}")
    disk.is_open.set()
    assert window.settle(10)

    assert [note.text for note in notes.load()] == [f"note {n}" for n in range(5)]
    window.close()


def test_an_event_loop_is_not_blocked(tmp_path: Path, disk: Disk) -> None:
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            started = time.perf_counter()
            await asyncio.sleep(0.01)
            longest = max(longest, time.perf_counter() - started)

    async def run() -> None:
        watcher = asyncio.ensure_future(watch())
        async with AsyncContextWindowManager(**options(RecordingSink(), tmp_path)) as window:
            window.add_user("Go.")
            for n in range(4):
                await window.on_turn_start()
                await window.on_turn_end(chat_reply(f"answer {n} " + filler(900, tag=str(n))))
                window.task.complete(f"step {n}")
            threading.Timer(0.8, disk.is_open.set).start()
        watcher.cancel()

    asyncio.run(run())
    assert longest < BOUND_SECONDS
    assert (tmp_path / "t.json").exists()


_EXITS = """
import sys, time
from pathlib import Path
from windowpane.effects.background_writer import BackgroundWriter
path = Path(sys.argv[1])
writer = BackgroundWriter()
for number in range(3):
    def write(number=number):
        time.sleep(0.3)
        with path.open("a") as file:
            file.write(f"{number}\\n")
    writer.run(write)
"""


def test_pending_writes_end_with_the_process(tmp_path: Path) -> None:
    path = tmp_path / "written"
    finished = subprocess.run(
        [sys.executable, "-c", _EXITS, str(path)], capture_output=True, timeout=30, check=True
    )

    assert path.read_text().split() == ["0", "1", "2"], finished.stderr


# -- the writer -----------------------------------------------------------------------------------------------


def test_a_write_reports_its_outcome_or_is_reported_later() -> None:
    writer, disk, late = BackgroundWriter(), threading.Event(), []
    assert writer.run(lambda: 7).value == 7
    assert isinstance(writer.run(lambda: 1 / 0).error, ZeroDivisionError)

    unfinished = writer.run(lambda: disk.wait(10), on_late=late.append)
    assert isinstance(unfinished.error, UnfinishedWriteError)
    assert isinstance(writer.run(lambda: 8, on_late=late.append).error, UnfinishedWriteError)
    disk.set()
    assert writer.settle(10)

    assert [result.value for result in late] == [True, 8]
    assert writer.is_idle


def test_waiting_writes_are_bounded() -> None:
    writer, disk = BackgroundWriter(maximum_characters=10), threading.Event()
    writer.run(lambda: disk.wait(10), characters=8, wait_seconds=0.01)

    assert isinstance(writer.run(lambda: None, characters=3).error, OSError)
    disk.set()
    assert writer.settle(10)
    assert not writer.run(lambda: None, characters=3).failed


def test_a_forked_child_does_not_write_what_its_parent_has_queued(tmp_path: Path) -> None:
    """And writes its own, although the parent's thread does not exist in it."""
    writer, disk, path = BackgroundWriter(), threading.Event(), tmp_path / "written"

    def write(text: str) -> None:
        with path.open("a") as file:
            file.write(text)

    writer.run(lambda: disk.wait(10), wait_seconds=0.01)
    writer.run(lambda: write("parent "))
    child = os.fork()
    if child == 0:  # pragma: no cover  # runs in the child
        writer.run(lambda: write("child "), wait_seconds=5)
        os._exit(0 if writer.settle(5) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert path.read_text() == "child "
    disk.set()
    assert writer.settle(10)
    assert path.read_text() == "child parent "


def test_two_sessions_of_a_task_share_a_writer() -> None:
    first = background_writer.writer_named("task")

    assert background_writer.writer_named("task") is first
    assert background_writer.writer_named("another") is not first
