"""From one window into the next: what the roll saves, what comes along, and what `clear` removes."""

from __future__ import annotations

import pytest
from builders import filler, is_valid, manager, sent, talk

from windowpane.agents.managers import ContextWindowManager
from windowpane.core.events import CheckpointSaved, ContentCompressed, WindowRolled
from windowpane.manager.circuit_breaker import NO_PROGRESS, REFILLED
from windowpane.testing import RecordingSink, chat_reply

GOAL = "Port the exporter.\nKeep  its names."


def fill(window: ContextWindowManager, *, most: int = 60) -> bool:
    """Talk until the window rolled; return whether it did."""
    return any(talk(window, f"Question {n}?", filler(800, tag=f"a{n}x")).action == "roll" for n in range(most))


def test_the_window_is_saved_before_the_next_one_starts() -> None:
    sink = RecordingSink()
    with manager(sink, limit=32_768, cascade=["roll"], task_goal=GOAL, constraints=["never touch x"]) as window:
        window.add_system("You are careful.")
        assert fill(window)
        window.flush()
        kinds = [
            type(event.data).__name__
            for event in sink.events
            if isinstance(event.data, WindowRolled | ContentCompressed)
            or (isinstance(event.data, CheckpointSaved) and event.data.trigger == "roll")
        ]

        assert kinds == ["ContentCompressed", "CheckpointSaved", "WindowRolled"]
        assert window.status().window_id == 2
        assert "summary" in {block.content_type for block in window.blocks()}
        assert window.messages()[:2] == [
            {"role": "system", "content": "You are careful."},
            {"role": "user", "content": f"## Goal\n{GOAL}\n- never touch x"},
        ]
        assert is_valid(window)


def test_without_content_to_summarize_no_window_is_opened() -> None:
    """A new window with the same content would be no gain, and be tried again in every turn."""
    sink = RecordingSink()
    with manager(sink, limit=32_768, cascade=["roll"]) as window:
        window.before_compaction(lambda _proposal: False)
        fill(window)

    assert sink.of(WindowRolled) == []
    assert not [event for event in sink.of(CheckpointSaved) if event.trigger == "roll"]


@pytest.mark.parametrize(("reason", "windows"), [(NO_PROGRESS, 1), (REFILLED, 2)])
def test_a_breaker_opened_by_a_lack_of_progress_stops_rollovers_too(reason: str, windows: int) -> None:
    with manager(RecordingSink(), limit=32_768, cascade=["roll"]) as window:
        for n in range(34):
            talk(window, f"question {n}", filler(837, tag=f"a{n}x"))
        window._engine.reduction.breaker.open, window._engine.reduction.breaker.reason = True, reason
        assert 28_535 <= window._engine.used() <= 28_672  # where a window rolls, and a call is still possible
        window.on_turn_start()

        assert window.status().window_id == windows
        assert window.status().breaker_open == (windows == 1)


def test_what_the_provider_counted_beyond_the_content_is_not_carried_over() -> None:
    """It is measured again by the next call of the new window."""
    with manager(RecordingSink(), limit=32_768, cascade=["roll"]) as window:
        talk(window, "go", "ok")
        window.on_turn_start()
        window.on_turn_end(chat_reply("ok", input_tokens=3_000))
        assert "unattributed" in {block.content_type for block in window.blocks()}
        assert fill(window)

        assert "unattributed" not in {block.content_type for block in window.blocks()}


def test_a_waiting_call_is_carried_over_and_gets_its_result_in_the_new_window() -> None:
    sink = RecordingSink()
    with manager(sink, limit=32_768, cascade=["roll"]) as window:
        window.add_user("deploy it")
        window.on_turn_start()
        window.on_turn_end(chat_reply(None, calls=[("c1", "deploy", "{}")]))
        window.pending.hold("c1")
        assert fill(window)
        assert fill(window)
        window.on_tool_result("deploy", "DEPLOYED at last", "c1")

        assert [message["tool_call_id"] for message in window.messages() if message["role"] == "tool"] == ["c1"]
        assert sent(window).count("DEPLOYED at last") == 1
        assert is_valid(window)


@pytest.mark.parametrize("given", ["", GOAL])
def test_clear_removes_the_conversation_and_every_open_call(given: str) -> None:
    with manager(RecordingSink(), task_goal=given) as window:
        window.add_system("You are careful.")
        window.add_memory("pinned fact", pinned=True)
        window.add_user("first task")
        for call in ("c1", "c2", "c3"):
            window.on_turn_start()
            window.on_turn_end(chat_reply(None, calls=[(call, "run", "{}")]))
            if call == "c1":
                window.pending.hold(call)
            if call == "c2":
                window.on_tool_result("run", "done", call)
        window.clear()
        window.add_user("second task")
        for call in ("c1", "c2", "c3"):
            window.on_tool_result("run", "late", call)

        assert window.task.goal == (given or "second task")
        assert "first task" not in sent(window)
        assert "pinned fact" in sent(window)
        assert {*window._engine.calls.open, *window._engine.calls.held, *window._engine.calls.answered} == set()
        assert is_valid(window)


def test_critical_notes_come_along_into_a_cleared_window() -> None:
    with manager(RecordingSink(), task_goal=GOAL) as window:
        window.add_user("go")
        window.task.add_note("the port is 5544", category="learnings", importance="critical")
        window.task.add_note("a passing thought")
        window.clear()
        first = sent(window)
        window.clear()
        window.add_user("go on")

        assert first.count("the port is 5544") == sent(window).count("the port is 5544") == 1
        assert "a passing thought" not in sent(window)
        assert is_valid(window)
