"""A task from its start to its completion, across windows and sessions."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from message_rules import anthropic_faults, openai_faults

from windowpane.agents.managers import AsyncContextWindowManager, ContextWindowManager
from windowpane.core.events import (
    CheckpointLoaded,
    CheckpointRejected,
    CheckpointSaved,
    ContentCompressed,
    SessionEnded,
)
from windowpane.exceptions import CorruptCheckpointError
from windowpane.manager.dependencies import Dependencies
from windowpane.manager.files.checkpoints import FileCheckpoints
from windowpane.manager.files.environment import LocalEnvironment
from windowpane.manager.plans.checkpoint import bootstrap
from windowpane.manager.plans.task_record import Choice, TaskRecord
from windowpane.testing import RecordingSink, ScriptedModel, chat_reply, in_memory_dependencies

GOAL = "Migrate user-service from axios to fetch.\nKeep the interceptors."


def dependencies(sink: RecordingSink, folder: Path, **changes: Any) -> Dependencies:
    store = FileCheckpoints(folder, redact=lambda text: text.replace("hunter2", "[redacted:password]"))
    return replace(
        in_memory_dependencies(sink), checkpoints=store, environment=LocalEnvironment(folder), **changes
    )


def open_task(sink: RecordingSink, folder: Path, *, limit: int = 32_768, **options: Any) -> ContextWindowManager:
    window = ContextWindowManager(
        agent="a",
        model="m",
        limit_tokens=limit,
        task_id="migration",
        dependencies=options.pop("dependencies", None) or dependencies(sink, folder),
        **options,
    )
    window.add_system("You are careful.")
    return window


def work(window: ContextWindowManager, turns: int, *, size: int = 900) -> None:
    for n in range(turns):
        window.on_turn_start()
        window.on_turn_end(chat_reply(f"step_{n} " * 20, calls=[(f"c{n}", "run", "{}")]))
        window.on_tool_result("run", f"row_{n} of src/f{n}.py " * (size // 5), f"c{n}")


def first_window(folder: Path, sink: RecordingSink | None = None) -> None:
    """A session that got half-way and then broke off."""
    window = open_task(
        sink or RecordingSink(),
        folder,
        task_goal=GOAL,
        constraints=["never touch config.ts"],
        success_criteria=["npm test passes"],
    )
    window.task.plan("scan references", "migrate api.ts", "canary deploy")
    window.add_user("go")
    window.task.start("scan references")
    window.task.complete("scan references")
    window.task.start("migrate api.ts")
    window.task.decide("use native fetch", why="no new dependency", instead_of=["got"])
    window.task.add_issue("api.ts:42 type error")
    window.task.add_learning("the v3 API uses /v2/")
    work(window, 2)
    window.close("crashed")


def sent_json(window: ContextWindowManager) -> str:
    return json.dumps(window.messages(), ensure_ascii=False)


def test_a_task_is_resumed_at_its_last_step(tmp_path: Path) -> None:
    first_window(tmp_path)
    sink = RecordingSink()
    with open_task(sink, tmp_path) as window:
        window.add_user("continue")
        window.on_turn_start()
        text = "\n".join(message["content"] for message in window.messages()[1:3])

        assert window.task.resumed is not None
        assert window.task.goal == GOAL
        assert window.task.subtasks == {
            "scan references": "done",
            "migrate api.ts": "in_progress",
            "canary deploy": "planned",
        }
        for wanted in (
            GOAL,
            "- never touch config.ts",
            "- Success: npm test passes",
            "[in progress] migrate api.ts",
            "[planned, not begun] canary deploy",
            "[done] scan references",
            "[open issue] api.ts:42 type error",
            "[decided] use native fetch, because no new dependency (not: got)",
            "[learnt] the v3 API uses /v2/",
        ):
            assert wanted in text
        assert window.messages()[0]["role"] == "system"
        assert openai_faults(window.messages()) == [] == anthropic_faults(window.messages("anthropic").messages)
    loaded = sink.of(CheckpointLoaded)[0]
    assert (loaded.version, loaded.drift) == (window.task.resumed.version, 0)
    assert loaded.age_seconds == 0


def test_completed_subtasks_are_not_reopened_by_a_program_that_starts_again(tmp_path: Path) -> None:
    first_window(tmp_path)
    with open_task(RecordingSink(), tmp_path) as window:
        window.add_user("continue")
        for step in ("scan references", "migrate api.ts", "canary deploy"):
            window.task.start(step)

        assert window.task.subtasks == {
            "scan references": "done",
            "migrate api.ts": "in_progress",
            "canary deploy": "in_progress",
        }
        window.close("crashed")
    with open_task(RecordingSink(), tmp_path) as window:
        assert window.task.subtasks["scan references"] == "done"


def test_what_was_done_can_be_reopened_by_name_and_that_survives_a_crash(tmp_path: Path) -> None:
    first_window(tmp_path)
    sink = RecordingSink()
    with open_task(sink, tmp_path) as window:
        window.add_user("continue")
        window.task.reopen("scan references")
        window.task.reopen("canary deploy")

        assert window.task.subtasks["scan references"] == "in_progress"
        assert window.task.subtasks["canary deploy"] == "planned"
        window.close("crashed")
    assert sink.of(CheckpointSaved)[0].trigger == "reopen"
    stored = FileCheckpoints(tmp_path, redact=str).load("migration").document
    assert stored is not None
    assert {"name": "scan references", "status": "in_progress"} in stored["task"]["subtasks"]


def test_a_subtask_in_progress_is_not_reported_as_done(tmp_path: Path) -> None:
    first_window(tmp_path)
    sink = RecordingSink()
    with open_task(sink, tmp_path, limit=8_192) as window:
        window.add_user("continue")
        work(window, 30)

        assert [event for event in sink.of(ContentCompressed) if event.outcome == "accepted"]
        assert "[in progress] migrate api.ts" in sent_json(window)
        assert "[done] migrate api.ts" not in sent_json(window)
        window.task.complete("migrate api.ts")
        work(window, 30)
        assert "[in progress] migrate api.ts" not in sent_json(window)
    stored = FileCheckpoints(tmp_path, redact=str).load("migration").document
    assert stored is not None
    statuses = {entry["name"]: entry["status"] for entry in stored["task"]["subtasks"]}
    assert statuses["migrate api.ts"] == "done"
    assert statuses["canary deploy"] == "planned"


def test_a_drift_of_the_environment_is_reported(tmp_path: Path) -> None:
    git = tmp_path / ".git"
    (git / "refs/heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "refs/heads/main").write_text("a" * 40)
    (tmp_path / "api.ts").write_text("before")
    (tmp_path / "kept.ts").write_text("same")
    with open_task(RecordingSink(), tmp_path, paths=["api.ts", "kept.ts", "gone.ts"]) as window:
        window.add_user("go")
        window.task.complete("first step")
    (tmp_path / "api.ts").write_text("after")
    (git / "refs/heads/main").write_text("b" * 40)
    sink = RecordingSink()
    with open_task(sink, tmp_path) as window:
        window.add_user("continue")

        assert window.task.resumed is not None
        assert [line.split(":")[0] for line in window.task.resumed.drift] == ["commit", "file api.ts"]
        assert "Changed since the checkpoint" in sent_json(window)
        assert f"commit: was {'a' * 12}…, is {'b' * 12}…" in sent_json(window)
    assert sink.of(CheckpointLoaded)[0].drift == 2


def test_a_corrupt_checkpoint_is_replaced_by_the_previous_one_and_reported(tmp_path: Path) -> None:
    first_window(tmp_path)
    (tmp_path / "migration.json").write_bytes(b"{")
    sink = RecordingSink()
    with open_task(sink, tmp_path) as window:
        assert window.task.resumed is not None
        assert window.task.subtasks["scan references"] == "done"
    assert [event.reason.split(":")[0] for event in sink.of(CheckpointRejected)] == ["corrupt"]


def test_with_no_whole_checkpoint_the_task_starts_cold_and_can_save_again(tmp_path: Path) -> None:
    first_window(tmp_path)
    for file in tmp_path.glob("*.json"):
        file.write_bytes(b"{")
    sink = RecordingSink()
    with open_task(sink, tmp_path) as window:
        assert window.task.resumed is None
        window.task.complete("first step")
    assert len(sink.of(CheckpointRejected)) == 1
    assert sink.of(CheckpointSaved)
    assert (tmp_path / "migration.archived-1.json").read_bytes() == b"{"


def test_an_old_file_put_back_does_not_revert_progress(tmp_path: Path) -> None:
    first_window(tmp_path)
    older = (tmp_path / "migration.previous.json").read_bytes()
    newest = (tmp_path / "migration.json").read_bytes()
    (tmp_path / "migration.previous.json").write_bytes(newest)
    (tmp_path / "migration.json").write_bytes(older)
    sink = RecordingSink()
    with open_task(sink, tmp_path) as window:
        assert window.task.resumed is not None
        assert window.task.resumed.version == json.loads(newest)["version"]
    assert "stale" in sink.of(CheckpointRejected)[0].reason


def test_of_two_writers_one_is_refused(tmp_path: Path) -> None:
    first_window(tmp_path)
    one, other = RecordingSink(), RecordingSink()
    fast, slow = open_task(one, tmp_path), open_task(other, tmp_path)
    fast.task.complete("migrate api.ts")
    slow.task.complete("canary deploy")
    fast.close()
    slow.flush()

    assert sink_reasons(other)[0].startswith("StaleCheckpointError")
    assert sink_reasons(one) == []


def sink_reasons(sink: RecordingSink) -> list[str]:
    return [event.reason for event in sink.of(CheckpointRejected)]


def test_a_completed_task_is_summed_up_archived_and_not_resumed(tmp_path: Path) -> None:
    first_window(tmp_path)
    sink = RecordingSink()
    window = open_task(sink, tmp_path)
    window.add_user("finish it")
    work(window, 3)
    window.task.complete("migrate api.ts")
    completion = window.complete()
    window.close()

    assert "[done] migrate api.ts" in completion.summary
    assert GOAL in completion.summary
    assert "Constraint: never touch config.ts" in completion.summary
    assert "Success: npm test passes" in completion.summary
    assert completion.unfinished == ("canary deploy",)
    assert completion.report is not None
    assert completion.report.turns == 3
    assert [event.reason for event in sink.of(SessionEnded)] == ["completed"]
    assert sink.of(CheckpointSaved)[-1].trigger == "complete"
    assert not (tmp_path / "migration.json").exists()
    archived = json.loads((tmp_path / "migration.archived-1.json").read_text())
    assert (archived["status"], archived["summary"]) == ("completed", completion.summary)
    with open_task(RecordingSink(), tmp_path) as again:
        assert again.task.resumed is None


def test_the_final_summary_is_the_model_s_if_there_is_one(tmp_path: Path) -> None:
    def with_answer(answer: str | Exception, folder: Path) -> ContextWindowManager:
        own = dependencies(RecordingSink(), folder, model=ScriptedModel([answer]))
        window = open_task(RecordingSink(), folder, task_goal=GOAL, dependencies=own)
        window.add_user("go")
        return window

    good = with_answer("All 23 files moved.", tmp_path / "a")
    bad = with_answer(RuntimeError("down"), tmp_path / "b")

    assert "All 23 files moved." in good.complete().summary
    assert GOAL in bad.complete().summary
    assert bad.complete("again").report is None


def test_a_task_that_is_not_resumed_starts_afresh(tmp_path: Path) -> None:
    first_window(tmp_path)
    sink = RecordingSink()
    with open_task(sink, tmp_path, resume=False) as window:
        assert (window.task.resumed, window.task.subtasks) == (None, {})
        window.task.complete("other work")
    assert sink.of(CheckpointSaved)
    assert sink_reasons(sink) == []
    assert (tmp_path / "migration.archived-1.json").exists()


def test_on_an_event_loop_a_milestone_is_saved_with_the_next_hook(tmp_path: Path) -> None:
    async def run(sink: RecordingSink) -> Any:
        window = AsyncContextWindowManager(
            agent="a",
            model="m",
            limit_tokens=32_768,
            task_id="migration",
            dependencies=dependencies(sink, tmp_path),
        )
        window.add_user("go")
        window.task.complete("first")
        saved = list(sink.of(CheckpointSaved))
        await window.on_turn_start()
        window.flush()
        return saved, list(sink.of(CheckpointSaved)), await window.complete("done")

    before, after, completion = asyncio.run(run(RecordingSink()))
    assert before == []
    assert [event.trigger for event in after] == ["done"]
    assert completion.summary == "done"


def test_secrets_do_not_reach_the_file(tmp_path: Path) -> None:
    with open_task(RecordingSink(), tmp_path) as window:
        window.add_user("go")
        window.task.add_learning("the password is hunter2")
        window.task.complete("first")
    assert "hunter2" not in (tmp_path / "migration.json").read_text() + (tmp_path / "migration.md").read_text()
    with open_task(RecordingSink(), tmp_path) as window:
        assert window.task.resumed is not None


def test_state_and_progress_files_have_the_names_they_were_given(tmp_path: Path) -> None:
    store = FileCheckpoints(
        tmp_path / "x", redact=str, state_file=tmp_path / "agent_state.json", progress_file=tmp_path / "log.md"
    )
    own = replace(in_memory_dependencies(RecordingSink()), checkpoints=store)
    with open_task(RecordingSink(), tmp_path, dependencies=own) as window:
        window.task.complete("first")
    assert json.loads((tmp_path / "agent_state.json").read_text())["task_id"] == "migration"
    assert "[x] first" in (tmp_path / "log.md").read_text()


@pytest.mark.parametrize(
    "broken",
    [
        {"subtasks": [{"name": "a", "status": "maybe"}]},
        {"subtasks": [{"status": "done"}]},
        {"issues": ["text"]},
        {"choices": 3},
    ],
)
def test_a_task_record_that_is_not_well_formed_is_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(CorruptCheckpointError):
        TaskRecord.from_document(broken)


def test_the_record_of_a_task_is_bounded_and_keeps_open_steps() -> None:
    record = TaskRecord()
    record.plan(["the one that is left"])
    for n in range(10_000):
        record.done(f"step {n}")
        record.learn(f"fact {n}")
        record.choose(Choice(f"choice {n}"))
        record.issue(f"issue {n}")
        record.resolve(f"issue {n}")

    assert record.subtasks["the one that is left"] == "planned"
    assert max(map(len, (record.subtasks, record.learnings, record.choices, record.issues))) <= 200
    assert TaskRecord.from_document(json.loads(json.dumps(record.to_document()))) == record


def test_a_bootstrap_omits_the_least_urgent_first() -> None:
    record = TaskRecord()
    record.start("the current one")
    for n in range(100):
        record.learn(f"learnt thing number {n}")
    made = {
        "version": 3,
        "window_id": 2,
        "goal": "Goal",
        "constraints_given": [],
        "task": record.to_document(),
        "sections": {"artifacts": [f"src/f{n}.py" for n in range(500)]},
    }
    text = bootstrap(made, max_characters=700, drift=["commit: was a, is b"])

    assert len(text) <= 700
    assert "commit: was a, is b" in text
    assert "[in progress] the current one" in text
    assert "src/f499.py" not in text
