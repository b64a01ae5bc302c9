"""Checkpoints of a task survive damaged files, dying processes and several sessions write."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from windowpane.agents.managers import AsyncContextWindowManager, ContextWindowManager
from windowpane.core.events import BlocksEvicted, CheckpointRejected, CheckpointSaved
from windowpane.exceptions import CorruptCheckpointError
from windowpane.manager.files.checkpoints import FileCheckpoints
from windowpane.manager.plans.checkpoint import decode
from windowpane.testing import RecordingSink, chat_reply, in_memory_dependencies


def store_in(folder: Path) -> FileCheckpoints:
    return FileCheckpoints(folder, redact=str)


def open_task(folder: Path, sink: RecordingSink | None = None, **options: Any) -> ContextWindowManager:
    dependencies = replace(in_memory_dependencies(sink or RecordingSink()), checkpoints=store_in(folder))
    return ContextWindowManager(
        agent="a", model="m", limit_tokens=32_768, task_id="task", dependencies=dependencies, **options
    )


def steps(folder: Path, *names: str) -> None:
    """A session that did these steps and whose process then died."""
    window = open_task(folder)
    for name in names:
        window.task.complete(name)


def stored(folder: Path, name: str = "task.json") -> dict[str, Any]:
    return decode((folder / name).read_bytes())


def rejected(sink: RecordingSink) -> list[str]:
    return [event.reason.split(":")[0] for event in sink.of(CheckpointRejected)]


def test_a_damaged_file_never_replaces_the_intact_previous_generation(tmp_path: Path) -> None:
    steps(tmp_path, "one", "two")
    (tmp_path / "task.json").write_bytes(b"{")
    steps(tmp_path, "three")

    assert [entry["name"] for entry in stored(tmp_path, "task.previous.json")["task"]["subtasks"]] == ["one"]
    (tmp_path / "task.json").write_bytes(b"{")
    sink = RecordingSink()
    window = open_task(tmp_path, sink)
    window.flush()
    assert window.task.subtasks == {"one": "done"}
    assert rejected(sink) == ["corrupt"]


def test_a_process_that_dies_while_writing_keeps_an_intact_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for damaged in (False, True):
        for dies_at in range(1, 8):
            folder = tmp_path / f"{damaged} {dies_at}"
            steps(folder, "one", "two")
            if damaged:
                (folder / "task.json").write_bytes(b"{")
            window, calls = open_task(folder), iter(range(1, 100))

            def replaced(source: Any, target: Any, *, calls: Any = calls, at: int = dies_at) -> None:
                if next(calls) >= at:
                    raise OSError("the machine is gone")
                os.rename(source, target)  # noqa: PTH104 (Path's own is what is replaced)

            with monkeypatch.context() as patch:
                patch.setattr(Path, "replace", replaced)
                window.task.complete("three")
            assert open_task(folder).task.subtasks.get("one") == "done", (damaged, dies_at)


def test_the_archived_files_of_a_restarted_task_stay_readable(tmp_path: Path) -> None:
    steps(tmp_path, "one", "two")
    (tmp_path / "task.json").unlink()
    window = open_task(tmp_path, resume=False)

    assert window.task.resumed is None
    assert stored(tmp_path, "task.archived-1.json")["task"]["subtasks"] == [{"name": "one", "status": "done"}]
    assert not (tmp_path / "task.previous.json").exists()


def test_json_nested_without_end_is_a_damaged_checkpoint() -> None:
    with pytest.raises(CorruptCheckpointError, match="not JSON"):
        decode(b"[" * 200_000)


def test_a_completed_task_whose_process_died_before_archiving_can_start_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = open_task(tmp_path)
    window.task.complete("one")
    with monkeypatch.context() as patch:
        patch.setattr(FileCheckpoints, "archive", lambda *_: None)
        window.complete("all done")
    assert stored(tmp_path)["status"] == "completed"

    sink = RecordingSink()
    again = open_task(tmp_path, sink)
    again.task.complete("another")
    again.flush()
    assert again.task.resumed is None
    assert [event.trigger for event in sink.of(CheckpointSaved)] == ["done"]
    assert rejected(sink) == []
    assert stored(tmp_path, "task.archived-1.json")["summary"] == "all done"


def test_records_after_completion_do_not_bring_a_task_back(tmp_path: Path) -> None:
    window = open_task(tmp_path)
    window.task.complete("one")
    window.complete("all done")
    window.task.complete("late")

    assert open_task(tmp_path).task.resumed is None
    assert [path.name for path in tmp_path.glob("task*.json")] == ["task.archived-1.json"]


def test_a_session_that_fell_behind_does_not_put_another_one_s_progress_aside(tmp_path: Path) -> None:
    steps(tmp_path, "one")
    sink = RecordingSink()
    slow, fast = open_task(tmp_path, sink), open_task(tmp_path)
    fast.task.complete("two")
    fast.task.complete("three")
    slow.complete("I am through")

    assert rejected(sink) == ["StaleCheckpointError"]
    assert open_task(tmp_path).task.subtasks == {"one": "done", "two": "done", "three": "done"}


def test_above_its_level_a_window_is_saved_every_five_turns_and_not_below(tmp_path: Path) -> None:
    """From 85% on, without a milestone; every turn would be a file a turn."""
    sink = RecordingSink()
    dependencies = replace(in_memory_dependencies(sink), checkpoints=store_in(tmp_path))
    with ContextWindowManager(
        agent="a", model="m", limit_tokens=32_768, dependencies=dependencies, cascade=["roll"], policy="fifo"
    ) as window:
        window.add_system("word " * 10)
        for level, expected in ((0.80, []), (0.86, [0, 5, 10])):
            turns = []
            limits = window._engine.limits
            assert limits is not None
            need = limits.at(level) - window._engine.used()
            window.add_memory("abc " * need, pinned=True)
            for turn in range(12):
                before = len(sink.of(CheckpointSaved))
                window.on_turn_start()
                window.flush()
                if len(sink.of(CheckpointSaved)) > before:
                    turns.append(turn)
                window.on_turn_end({"role": "assistant", "content": "ok"})
            assert turns == expected
    assert {event.trigger for event in sink.of(CheckpointSaved)} == {"pressure"}


def test_alternatives_may_be_one_text(tmp_path: Path) -> None:
    window = open_task(tmp_path)
    window.task.decide("native fetch", instead_of="got")

    assert stored(tmp_path)["task"]["choices"][0]["instead_of"] == ["got"]
    assert json.loads((tmp_path / "task.json").read_text())["version"] == 1


def test_an_event_loop_is_not_kept_from_resuming(tmp_path: Path) -> None:
    steps(tmp_path, "one")
    dependencies = replace(in_memory_dependencies(RecordingSink()), checkpoints=store_in(tmp_path))
    window = AsyncContextWindowManager(
        agent="a", model="m", limit_tokens=32_768, task_id="task", dependencies=dependencies
    )

    assert window.task.subtasks == {"one": "done"}


def test_an_archived_task_starts_afresh_in_memory_as_in_files() -> None:
    """Tests that use the store in memory see what a folder would show them."""
    dependencies = in_memory_dependencies(RecordingSink())

    def again() -> ContextWindowManager:
        return ContextWindowManager(
            agent="a", model="m", limit_tokens=32_768, task_id="task", dependencies=dependencies
        )

    first = again()
    first.task.complete("one")
    first.complete("all done")
    second = again()
    assert second.task.resumed is None
    second.task.complete("two")

    assert again().task.subtasks == {"two": "done"}


def test_a_window_that_evictions_keep_below_the_level_is_saved_when_it_is_reduced(tmp_path: Path) -> None:
    sink = RecordingSink()
    dependencies = replace(in_memory_dependencies(sink), checkpoints=store_in(tmp_path))
    with ContextWindowManager(
        agent="a", model="m", limit_tokens=16_384, dependencies=dependencies, cascade=["eviction"], policy="fifo"
    ) as window:
        window.add_user("go")
        for turn in range(60):
            window.on_turn_start()
            window.on_turn_end(chat_reply(f"turn {turn}", calls=[(f"c{turn}", "read", "{}")]))
            window.on_tool_result("read", "word " * 500, f"c{turn}")
            window.settle()
    saved = sink.of(CheckpointSaved)

    assert sink.of(BlocksEvicted)
    assert {event.trigger for event in saved} == {"reduction"}
    assert len(saved) >= 3
