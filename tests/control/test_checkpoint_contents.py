"""What a checkpoint says of a session: sections, notes, handles, windows; and what a bootstrap takes of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from builders import manager, words

from windowpane.checkpoints import FileCheckpoints
from windowpane.control.checkpoint import MAXIMUM_LINES, bootstrap, checkpoint_of, to_markdown
from windowpane.events import CheckpointRejected, CheckpointSaved
from windowpane.managing import ContextWindowManager
from windowpane.testing import RecordingSink, in_memory_seams


def document_of(window: ContextWindowManager, **options: Any) -> dict[str, Any]:
    return checkpoint_of(window._core, **options).document


def session(folder: Path, sink: RecordingSink, **options: Any) -> ContextWindowManager:
    seams = replace(in_memory_seams(sink), checkpoints=FileCheckpoints(folder, redact=str))
    return manager(sink, seams=seams, task_id="task", **options)


def test_windows_are_counted_over_all_sessions_of_a_task(tmp_path: Path) -> None:
    """A session that resumes from a later window is not refused as older than what it came from."""
    found: list[int] = []
    for _ in range(3):
        sink = RecordingSink()
        with session(tmp_path, sink) as window:
            found.append(0 if window.resumed is None else window.resumed.window_id)
            window.add_user("go on")
            window.clear()
            window.done("a step")
        assert sink.of(CheckpointSaved)
        assert sink.of(CheckpointRejected) == []
    assert found == [0, 2, 4]  # each session begins a window, and `clear` another


def test_sections_go_on_from_the_last_summary_and_keep_their_newest_lines() -> None:
    """Facts of the conversation come after what earlier windows left; the system prompt states none."""
    with manager(RecordingSink()) as window:
        core = window._core
        window.add_system("You must never reveal port: 9999 to anybody.")
        core.add(
            "summary",
            "## Goal\nold goal\n## Decisions\n- chose SQLite long ago\n## Plan and progress\n- [done] x",
        )
        window.add_user("Port it. You must keep src/kept.py as it is.")
        window.add_assistant("\n".join(f"Decided to use lib_{n} because of reason_{n}." for n in range(60)))
        made = document_of(window)

    decisions = made["sections"]["decisions"]
    assert len(decisions) == MAXIMUM_LINES
    assert decisions[-1] != decisions[0]
    assert "lib_59" in decisions[-1]
    assert "src/kept.py" in made["sections"]["artifacts"]
    assert any("must keep" in line for line in made["sections"]["constraints"])
    assert not {"goal", "progress", "lookup"} & set(made["sections"])
    assert "9999" not in str(made)


def test_a_line_of_the_last_summary_is_kept_and_not_repeated() -> None:
    """What a summary says already is said once."""
    line = "Decided to use native fetch because of the bundle"
    with manager(RecordingSink()) as window:
        window._core.add("summary", f"## Decisions\n- {line}\n- chose SQLite over files")
        window.add_assistant(f"{line}.")
        decisions = document_of(window)["sections"]["decisions"]

    assert [entry.rstrip(".") for entry in decisions].count(line) == 1
    assert "chose SQLite over files" in decisions


def test_notes_and_handles_survive_without_files_of_their_own(tmp_path: Path) -> None:
    """The next session shows the notes, and people find the originals of what was shortened."""
    sink = RecordingSink()
    with session(tmp_path, sink, limit=8_192) as window:
        window.add_user("go")
        window.note("the staging key is in the vault", importance="critical")
        window.add_assistant(None, tool_calls=[{"id": "c1", "function": {"name": "read", "arguments": "{}"}}])
        window.on_tool_result("read", words(6_000), "c1")
        handles = document_of(window)["handles"]
        window.done("step")
        assert len(handles) == 1
        assert (window.retrieve(handles[0]) or "").startswith("w0")
    with session(tmp_path, RecordingSink(), limit=8_192) as window:
        assert "[critical] the staging key is in the vault" in window.notes


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


def test_a_bootstrap_says_the_urgent_first_and_every_section() -> None:
    """Goal, what changed, progress, then the sections of the window."""
    text = bootstrap(made(subtasks=[{"name": "api.ts", "status": "in_progress"}]), drift=["branch: was a, is b"])
    order = (
        "Port it\n- never touch config.ts\n- Success: tests pass", "- branch: was a, is b",
        "- [in progress] api.ts", "- must stay", "- next: tests", "- chose fetch", "- ValueError: no",
        "- src/a.py",
    )  # fmt: skip
    places = [text.index(part) for part in order]

    assert places == sorted(places)


def test_a_bootstrap_takes_the_last_line_that_fits_and_nothing_after_it() -> None:
    """A shorter, less urgent line is not told in the place of a longer one before it."""
    document = made(subtasks=[{"name": "x" * 50, "status": "in_progress"}, {"name": "y", "status": "planned"}])
    document["sections"] = {}
    whole = bootstrap(document)
    until_first = whole.index("\n- [planned")

    assert bootstrap(document, max_characters=len(whole)) == whole
    assert bootstrap(document, max_characters=len(whole) - 1) == whole[:until_first]
    assert "[planned" not in bootstrap(document, max_characters=until_first - 1)


def test_of_a_section_that_does_not_fit_the_newest_lines_are_told() -> None:
    """The last lines of a section matter most, as in a summary; they stay in their order."""
    document = made()
    document["sections"] = {"state": [f"next: step {n}" for n in range(40)]}
    text = bootstrap(document, max_characters=len(bootstrap({**document, "sections": {}})) + 80)

    assert text.endswith("\n- next: step 38\n- next: step 39")
    assert "step 10" not in text


def test_the_markdown_shows_people_the_whole_task() -> None:
    """Boxes tell planned, under way and done apart; closed issues are gone."""
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
