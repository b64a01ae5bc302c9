"""Notes and sub-agents: what is carried on instead of the conversation, bounded and reported."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.core.events import NoteWritten, SubagentDelegated, SubagentReturned
from windowpane.exceptions import ConfigurationError
from windowpane.manager.plans.notes import (
    CATEGORIES,
    IMPORTANCES,
    Importance,
    Note,
    NoteBook,
    notes_from_data,
    notes_to_data,
)
from windowpane.manager.plans.subagent_delegation import Subtask, bounded_result, plan_delegation
from windowpane.testing import CharacterCounter

COUNTER = CharacterCounter()


class MemoryNotes:
    def __init__(self, *, broken: bool = False) -> None:
        self.kept: tuple[Note, ...] = ()
        self._broken = broken

    def load(self) -> Sequence[Note]:
        return self.kept

    def save(self, notes: Sequence[Note]) -> None:
        if self._broken:
            raise OSError("disk full")
        self.kept = tuple(notes)


def book(
    *, events: list[NoteWritten] | None = None, store: MemoryNotes | None = None, room: int = 2_000
) -> NoteBook:
    heard: list[NoteWritten] = [] if events is None else events
    return NoteBook(COUNTER, str.upper, record=heard.append, store=store, max_tokens=room)


class TestNotes:
    def test_a_note_is_reported_without_its_text(self) -> None:
        events: list[NoteWritten] = []

        book(events=events).write("decisions", "Use fetch because the bundle stays small")

        assert [(event.category, event.tokens) for event in events] == [("decisions", 10)]

    def test_categories_come_in_order_and_critical_ones_first(self) -> None:
        notes = book()
        notes.write("bugs", "older bug")
        notes.write("bugs", "newer bug")
        notes.write("bugs", "bad bug", importance="high")
        notes.write("bugs", "worst bug", importance="critical")
        notes.write("constraints", "no new dependency")

        text = notes.text()

        order = ["no new dependency", "worst bug", "bad bug", "newer bug", "older bug"]
        assert [text.index(note) for note in order] == sorted(text.index(note) for note in order)

    def test_an_unknown_category_is_kept_under_misc(self) -> None:
        notes = book()
        notes.write("ideas", "try a cache")

        assert "## Misc\n- try a cache" in notes.text()

    def test_room_is_made_by_the_least_important_and_oldest(self) -> None:
        notes = book(room=120)
        notes.write("misc", "first " + "a" * 150)
        notes.write("misc", "kept " + "b" * 100, importance="high")

        written = notes.write("misc", "third " + "c" * 150)

        assert [note.text[:5] for note in written.dropped] == ["first"]
        assert [note.text[:5] for note in notes.notes] == ["kept ", "third"]

    def test_a_normal_note_never_pushes_out_a_more_important_one(self) -> None:
        notes = book(room=120)
        notes.write("misc", "a" * 300, importance="high")

        written = notes.write("misc", "b" * 300)

        assert written.note is None
        assert "more important" in written.refused
        assert len(notes.notes) == 1

    def test_the_same_note_again_is_one_note(self) -> None:
        notes = book()
        notes.write("bugs", "503 on /users", turn=1)
        notes.write("bugs", "503 on /users", turn=9)

        assert [note.turn for note in notes.notes] == [9]

    def test_notes_survive_in_the_store(self) -> None:
        store = MemoryNotes()
        notes = book(store=store)
        notes.write("task_progress", "api.ts is done", importance="critical", turn=4)

        assert book(store=store).text() == notes.text()
        assert notes_from_data(notes_to_data(store.kept)) == store.kept
        assert notes_from_data([{"text": 4}, None, {"text": "x", "turn": "late"}])[0].category == "misc"

    def test_a_store_that_fails_does_not_cost_the_note(self, caplog: pytest.LogCaptureFixture) -> None:
        notes = book(store=MemoryNotes(broken=True))

        assert notes.write("misc", "x is y").note is not None
        assert "could not be saved" in caplog.text

    @pytest.mark.parametrize(
        ("room", "importance", "key"), [(50, "normal", "max_tokens"), (500, "urgent", "importance")]
    )
    def test_values_out_of_range_are_refused(self, room: int, importance: Importance, key: str) -> None:
        with pytest.raises(ConfigurationError, match=key):
            book(room=room).write("misc", "x", importance=importance)

    @given(
        st.lists(
            st.tuples(
                st.sampled_from([*CATEGORIES, "other"]), st.text(max_size=400), st.sampled_from(IMPORTANCES)
            ),
            max_size=40,
        )
    )
    def test_notes_are_bounded_and_accepted_critical_ones_stay(
        self, entries: list[tuple[str, str, Importance]]
    ) -> None:
        notes = book(room=400)
        critical = set()
        for category, text, importance in entries:
            written = notes.write(category, text, importance=importance)
            if written.note is not None and importance == "critical":
                critical.add(written.note.text)
            assert COUNTER.count(notes.text()) <= 400
            assert not [note for note in written.dropped if note.importance == "critical"]
            assert critical <= {note.text for note in notes.notes}


class TestSubagents:
    TASK = Subtask(
        "Find every bypass of the authentication middleware.",
        constraints=("never write a file",),
        expected_tool_calls=30,
    )

    def test_a_large_subtask_is_delegated_with_its_rules(self) -> None:
        plan = plan_delegation(self.TASK, child_session_id="child", digest=str.upper)

        assert plan is not None
        assert "never write a file" in plan.assignment
        assert self.TASK.task in plan.assignment
        assert plan.delegated == SubagentDelegated("child", self.TASK.task.upper())

    @pytest.mark.parametrize(
        "subtask",
        [
            Subtask("Read one file.", expected_tool_calls=2),
            Subtask("Go on as discussed.", expected_tool_calls=30, needs_history=True),
            Subtask("  ", expected_tool_calls=30),
        ],
    )
    def test_a_small_subtask_or_one_that_needs_the_conversation_is_not_delegated(self, subtask: Subtask) -> None:
        assert plan_delegation(subtask, child_session_id="child", digest=str) is None

    def test_a_result_is_never_larger_than_the_cap(self) -> None:
        plan = plan_delegation(self.TASK, child_session_id="child", digest=str, max_tokens=300)
        assert plan is not None
        filler = "\n\n".join(f"I looked at handler {n} and it is fine." for n in range(400))
        text = f"{filler}\n\nDecided that src/auth/legacy.py is open because skip_auth: 1 is set.\n\n{filler}"

        result = bounded_result(plan, text, counter=COUNTER, child_tokens=50_000)

        assert result.tokens <= 300
        assert "src/auth/legacy.py" in result.text
        assert result.event == SubagentReturned("child", result.tokens, "truncated")
        assert result.compressed is not None
        assert (result.compressed.strategy, result.compressed.tokens_before) == ("subagent_delegation", 50_000)
        assert result.compressed.ratio is not None
        assert result.compressed.ratio > 100

    def test_a_short_result_is_returned_unchanged(self) -> None:
        plan = plan_delegation(self.TASK, child_session_id="child", digest=str)
        assert plan is not None

        result = bounded_result(plan, " Three files. ", counter=COUNTER)

        assert result.text == "Three files."
        assert result.event.outcome == "completed"
        assert result.compressed is None

    @pytest.mark.parametrize(
        ("text", "failed", "outcome"), [("", "", "empty"), ("oops", "TimeoutError", "failed")]
    )
    def test_a_failure_adds_no_content(self, text: str, failed: str, outcome: str) -> None:
        plan = plan_delegation(self.TASK, child_session_id="child", digest=str)
        assert plan is not None

        result = bounded_result(plan, text, counter=COUNTER, failed=failed)

        assert (result.text, result.tokens, result.event.outcome) == ("", 0, outcome)
