"""The record of a task by itself: what a status becomes, what a model is shown of it, what it is bounded by."""

from __future__ import annotations

from windowpane.manager.plans.task_record import LINE_CHARACTERS, MAXIMUM_ENTRIES, SHOWN_DONE, Choice, TaskRecord


def test_planning_again_changes_no_status() -> None:
    record = TaskRecord()
    record.plan(["one", "two", "three"])
    record.done("one")
    record.start("two")
    record.plan(["one", "two", "three", "four"])

    assert record.subtasks == {"one": "done", "two": "in_progress", "three": "planned", "four": "planned"}
    assert record.unfinished == ["two", "three", "four"]


def test_of_many_finished_steps_the_last_are_named_and_the_others_counted() -> None:
    record = TaskRecord()
    for n in range(SHOWN_DONE):
        record.done(f"step {n}")
    assert record.lines() == [f"[done] step {n}" for n in range(SHOWN_DONE)]

    record.done("one more")
    assert record.lines()[0] == "[done] 1 more"
    assert record.lines()[1:] == [*(f"[done] step {n}" for n in range(1, SHOWN_DONE)), "[done] one more"]


def test_repeated_entries_are_stored_once() -> None:
    record = TaskRecord()
    for text in ("b", "a", "b"):
        record.learn(text)
        record.watch([text, text])

    assert record.learnings == record.paths == ["b", "a"]


def test_watched_files_are_bounded_and_the_latest_stay() -> None:
    record = TaskRecord()
    record.watch(f"f{n}" for n in range(MAXIMUM_ENTRIES + 5))

    assert (len(record.paths), record.paths[0]) == (MAXIMUM_ENTRIES, "f5")


def test_every_entry_is_one_bounded_line() -> None:
    record = TaskRecord()
    long = "x" * (LINE_CHARACTERS + 100)
    record.plan([long])
    record.learn("first\n\n   second" + " " * LINE_CHARACTERS + "third")
    record.choose(Choice(long, long, (long,)))

    assert list(record.subtasks) == ["x" * LINE_CHARACTERS]
    assert record.learnings == ["first second third"]
    assert {len(part) for part in (record.choices[0].what, record.choices[0].why)} == {LINE_CHARACTERS}
    assert len(record.choices[0].instead_of[0]) == LINE_CHARACTERS
