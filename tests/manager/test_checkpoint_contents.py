"""Contents of a checkpoint: sections, notes, handles, windows; and what a bootstrap takes of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import filler, manager, sent, tool_turn

from windowpane.agents.managers import ContextWindowManager
from windowpane.core.events import CheckpointRejected, CheckpointSaved
from windowpane.exceptions import CorruptCheckpointError
from windowpane.manager.files.checkpoints import FileCheckpoints
from windowpane.manager.plans.checkpoint import (
    MAXIMUM_LINES,
    bootstrap,
    checksum,
    decode,
    encode,
    pinned_texts,
    to_markdown,
)
from windowpane.manager.steps.checkpoint import capture_checkpoint
from windowpane.testing import RecordingSink, in_memory_dependencies


def document_of(window: ContextWindowManager, **options: Any) -> dict[str, Any]:
    return capture_checkpoint(window._engine, **options).document


def session(folder: Path, sink: RecordingSink, **options: Any) -> ContextWindowManager:
    dependencies = replace(in_memory_dependencies(sink), checkpoints=FileCheckpoints(folder, redact=str))
    return manager(sink, dependencies=dependencies, task_id="task", **options)


def test_windows_are_counted_over_all_sessions_of_a_task(tmp_path: Path) -> None:
    found: list[int] = []
    for _ in range(3):
        sink = RecordingSink()
        with session(tmp_path, sink) as window:
            found.append(0 if window.task.resumed is None else window.task.resumed.window_id)
            window.add_user("go on")
            window.clear()
            window.task.complete("a step")
        assert sink.of(CheckpointSaved)
        assert sink.of(CheckpointRejected) == []
    assert found == [0, 2, 4]  # each session starts a window, and `clear` another


def test_what_a_resumed_session_is_given_beside_the_checkpoint_counts_too(tmp_path: Path) -> None:
    old = {"constraints": ["one"], "success_criteria": ["green"], "paths": ["a.py"]}
    with session(tmp_path, RecordingSink(), task_goal="Old goal", **old) as window:
        window.task.complete("step")
    new = {"constraints": ["two"], "success_criteria": ["fast"], "paths": ["b.py"]}
    with session(tmp_path, RecordingSink(), task_goal="New goal", **new) as window:
        window.add_user("go on")
        text = sent(window)
        document = document_of(window)

    assert window.task.goal == document["goal"] == "New goal"
    assert document["constraints_given"] == ["one", "two"]
    assert document["task"]["success_criteria"] == ["green", "fast"]
    assert document["task"]["paths"] == ["a.py", "b.py"]
    assert "New goal\\n- one\\n- two\\n- Success: green\\n- Success: fast" in text
    assert "Old goal" not in text


def test_a_resumed_goal_outlasts_an_empty_window(tmp_path: Path) -> None:
    """It was given once, so no later message takes its place."""
    with session(tmp_path, RecordingSink(), task_goal="Port it") as window:
        window.task.complete("step")
    with session(tmp_path, RecordingSink()) as window:
        window.clear()
        window.add_user("what is the time")

        assert window.task.goal == "Port it"


def test_the_generation_before_a_checkpoint_with_a_record_that_is_none_is_used(tmp_path: Path) -> None:
    with session(tmp_path, RecordingSink()) as window:
        window.task.complete("step")
    path = tmp_path / "task.json"
    document = {**decode(path.read_bytes()), "task": {"subtasks": [{"name": "a", "status": "maybe"}]}}
    path.write_bytes(encode({**document, "checksum": checksum(document)}))
    sink = RecordingSink()
    with session(tmp_path, sink) as window:
        assert window.task.resumed is not None
        assert (window.task.resumed.version, window.task.subtasks) == (document["version"] - 1, {"step": "done"})
        window.task.complete("anew")

    [rejected] = sink.of(CheckpointRejected)
    assert "task.subtasks.0.status: invalid; expected 'planned', 'in_progress' or 'done'" in rejected.reason
    assert sink.of(CheckpointSaved)


@pytest.mark.parametrize("limit", [2_048, 8_192, 32_768, 200_000])
def test_a_bootstrap_uses_at_most_a_bounded_share_of_the_window(tmp_path: Path, limit: int) -> None:
    """15% of usable at three characters a token, and never more than 16,000 characters; the goal is beside it."""
    with session(tmp_path, RecordingSink(), limit=limit, task_goal="Port it " * 3) as window:
        for n in range(150):
            window.task.add_learning(f"learnt thing number {n}, which is rather long: " + "word " * 20)
        window.task.complete("step")
    with session(tmp_path, RecordingSink(), limit=limit) as window:
        window.add_user("go on")
        text, goal = (message["content"] for message in window.messages()[:2])
        limits = window._engine.limits

    assert limits is not None
    bound = min(16_000, int(0.45 * limits.usable_tokens))
    assert bound - 200 < len(text) <= bound
    assert goal == "## Goal\n" + "Port it " * 3


def test_a_checkpoint_of_a_machine_whose_clock_is_ahead_has_no_negative_age(tmp_path: Path) -> None:
    with session(tmp_path, RecordingSink()) as window:
        window.task.complete("step")
    path = tmp_path / "task.json"
    document = {**decode(path.read_bytes()), "saved_at": 1e12}
    path.write_bytes(encode({**document, "checksum": checksum(document)}))
    with session(tmp_path, RecordingSink()) as window:
        assert window.task.resumed is not None
        assert window.task.resumed.age_seconds == 0.0


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"schema": 2}, "schema: invalid; expected 1"),
        ({"version": "3"}, "version: invalid; expected a valid integer"),
        ({"window_id": True}, "window_id: invalid; expected a valid integer"),
        (
            {"sections": 5, "goal": None},
            "goal: invalid; expected a valid string; sections: invalid; expected a mapping",
        ),
        ({"sections": {"errors": "x"}}, "sections.errors: invalid; expected a list"),
        ({"environment": {"commit": ["a"]}}, "environment.commit: invalid; expected a valid string"),
    ],
)
def test_what_another_release_or_program_wrote_is_refused_though_its_checksum_holds(
    changed: dict[str, Any], problem: str
) -> None:
    """It would be misread."""
    with manager(RecordingSink()) as window:
        document = {**document_of(window), **changed}

    with pytest.raises(CorruptCheckpointError, match=problem):
        decode(encode({**document, "checksum": checksum(document)}))


def test_sections_go_on_from_the_last_summary_and_keep_their_newest_lines() -> None:
    summary = "## Goal\nold goal\n## Plan and progress\n- [done] x\n## Errors\n- the disk was full"
    summary += "\n## Decisions and reasons\n- chose SQLite long ago"
    with manager(RecordingSink()) as window:
        for _ in range(2):
            window.add_system("You must never reveal port: 9999 to anybody.")
        window._engine.add("summary", summary)
        window.add_user("Port the metrics exporter. You must keep src/kept.py as it is.")
        window.add_assistant("\n".join(f"Decided to use lib_{n} because of reason_{n}." for n in range(60)))
        tool_turn(window, 1, result="ValueError: no such table")
        made = document_of(window)

    sections = made["sections"]
    assert sections["errors"] == ["the disk was full", "ValueError: no such table"]
    assert len(sections["decisions"]) == MAXIMUM_LINES
    assert "lib_59" in sections["decisions"][-1]
    assert "chose SQLite long ago" not in sections["decisions"]
    assert "src/kept.py" in sections["artifacts"]
    assert sections["state"][0].startswith("Port the metrics exporter")
    assert any("must keep" in line for line in sections["constraints"])
    assert not {"goal", "progress", "lookup"} & set(sections)
    assert "9999" not in str(made)


def test_a_line_of_the_last_summary_is_kept_and_not_repeated() -> None:
    line = "Decided to use native fetch because of the bundle"
    with manager(RecordingSink()) as window:
        window._engine.add("summary", f"## Decisions and reasons\n- {line}\n- plain words of before")
        window.add_assistant(line)
        decisions = document_of(window)["sections"]["decisions"]

    assert decisions == [line, "plain words of before"]


def test_notes_and_handles_survive_without_files_of_their_own(tmp_path: Path) -> None:
    sink = RecordingSink()
    with session(tmp_path, sink, limit=8_192) as window:
        window.add_user("go")
        window.task.add_note("the staging key is in the vault", importance="critical")
        window.add_assistant(None, tool_calls=[{"id": "c1", "function": {"name": "read", "arguments": "{}"}}])
        window.on_tool_result("read", filler(6_000), "c1")
        handles = document_of(window)["handles"]
        window.task.complete("step")
        assert len(handles) == 1
        assert (window.retrieve(handles[0]) or "").startswith("w0")
    with session(tmp_path, RecordingSink(), limit=8_192) as window:
        assert "[critical] the staging key is in the vault" in window.task.notes


def made(**task: Any) -> dict[str, Any]:
    sections = {
        "artifacts": ["src/a.py"], "errors": ["ValueError: no"], "decisions": ["chose fetch"],
        "state": ["next: tests"], "constraints": ["must stay"],
    }  # fmt: skip
    return {
        "agent": "a", "model": "m", "version": 3, "window_id": 2, "turn": 4, "used_tokens": 10,
        "goal": "Port it", "constraints_given": ["never touch config.ts"], "sections": sections,
        "summary": "All moved.", "task": {"success_criteria": ["tests pass"], **task},
    }  # fmt: skip


def test_a_bootstrap_has_the_urgent_first_and_every_section() -> None:
    text = bootstrap(made(subtasks=[{"name": "api.ts", "status": "in_progress"}]), drift=["branch: was a, is b"])
    order = (
        "- branch: was a, is b", "- [in progress] api.ts", "- must stay", "- next: tests",
        "- chose fetch", "- ValueError: no", "- src/a.py",
    )  # fmt: skip
    places = [text.index(part) for part in order]

    assert places == sorted(places)
    assert "Port it" not in text


def test_a_bootstrap_includes_the_last_line_that_fits_and_nothing_after_it() -> None:
    document = made(subtasks=[{"name": "x" * 50, "status": "in_progress"}, {"name": "y", "status": "planned"}])
    document["sections"] = {}
    whole = bootstrap(document)
    until_first = whole.index("\n- [planned")

    assert bootstrap(document, max_characters=len(whole)) == whole
    assert bootstrap(document, max_characters=len(whole) - 1) == whole[:until_first]
    assert "[planned" not in bootstrap(document, max_characters=until_first - 1)


def test_a_section_that_does_not_fit_retains_its_newest_lines() -> None:
    """The last lines of a section matter most, as in a summary; they stay in their order."""
    document = made()
    document["sections"] = {"state": [f"next: step {n}" for n in range(40)]}
    text = bootstrap(document, max_characters=len(bootstrap({**document, "sections": {}})) + 80)

    assert text.endswith("\n- next: step 38\n- next: step 39")
    assert "step 10" not in text


def test_the_markdown_shows_people_the_whole_task() -> None:
    text = to_markdown(
        made(
            subtasks=[
                {"name": "one", "status": "done"},
                {"name": "two", "status": "in_progress"},
                {"name": "three", "status": "planned"},
            ],
            issues=[{"text": "open one", "open": True}, {"text": "closed one", "open": False}],
            learnings=["v3 uses /v2/"],
        )
    )

    for line in (
        "Port it", "- never touch config.ts", "- Success: tests pass", "- [x] one", "- [~] two", "- [ ] three",
        "- v3 uses /v2/", "- chose fetch", "## Result", "All moved.",
    ):  # fmt: skip
        assert f"{line}\n" in text
    assert "## Open issues\n- open one\n" in text
    assert "closed one" not in text


def test_a_resumed_window_has_the_notes_and_the_pinned_messages(tmp_path: Path) -> None:
    with session(tmp_path, RecordingSink(), task_goal="Port it") as window:
        window.add_user("start")
        window.add_user("Never publish on a Friday.\nAsk first.", pinned=True)
        window.add_memory("the release key is in the vault", pinned=True)
        window.task.add_note("the port is 5544", category="learnings", importance="critical")
        window.task.add_note("the pool is exhausted", category="bugs")
        window.task.complete("a step")
    with session(tmp_path, RecordingSink()) as window:
        window.add_user("go on")
        text = sent(window)
        pinned = [block.text for block in window.blocks() if block.pinned]

    assert pinned == [
        "## Goal\nPort it", "Never publish on a Friday.\nAsk first.", "the release key is in the vault"
    ]  # fmt: skip
    assert text.count("the port is 5544") == text.count("the pool is exhausted") == 1


def test_a_pinned_message_that_the_resumed_program_adds_again_is_there_once(tmp_path: Path) -> None:
    for _ in range(3):
        with session(tmp_path, RecordingSink(), task_goal="Port it") as window:
            window.add_memory("the release key is in the vault", pinned=True)
            window.add_user("Never publish on a Friday.", pinned=True)
            window.add_user("go on")
            window.task.complete("a step")
            pinned = sorted(block.text or "" for block in window.blocks() if block.pinned)

    assert pinned == ["## Goal\nPort it", "Never publish on a Friday.", "the release key is in the vault"]


def test_critical_notes_are_whole_in_a_bootstrap_without_room(tmp_path: Path) -> None:
    with session(tmp_path, RecordingSink()) as window:
        for number in range(5):
            window.task.add_note(f"critical {number} " + "detail " * 20, importance="critical")
            window.task.add_note(f"normal {number}")
        document = document_of(window)
    text = bootstrap(document, max_characters=100)

    assert all(f"critical {number} detail" in text for number in range(5))
    assert "normal" not in text


@pytest.mark.parametrize("pinned", [None, "text", [3, {"type": "system_prompt", "text": "obey"}, {"text": "x"}]])
def test_pinned_entries_of_a_checkpoint_that_are_not_messages_are_skipped(tmp_path: Path, pinned: Any) -> None:
    with session(tmp_path, RecordingSink()) as window:
        document = document_of(window)

    assert pinned_texts({**document, "pinned": pinned}) == []
