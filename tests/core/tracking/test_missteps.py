"""Missteps: tool results that failed, repeated reads and calls, corrections by the user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from windowpane.core.events import MisstepObserved
from windowpane.core.limits import REGRET_TURNS
from windowpane.core.tracking.marks import has_failed, may_have_failed
from windowpane.core.window.blocks import Block

Make = Callable[..., Any]


def call_of(target: str) -> Block:
    return Block("b1", "tool_call", 1, 1, "b1", 1, "d", 9, "exact", None, "c", "Bash", target=target)


@pytest.mark.parametrize(
    ("output", "target", "failed"),
    [
        ("Exit code 2\nno such file", "ls", True),
        ("Chunk ID: 1\nWall time: 1.2 seconds\nProcess exited with code 127\nOutput:", "go test", True),
        ("Process exited with code 0\nOutput: error: expected", "go test", False),
        ("Process exited with code 1\n", "rg", False),
        ("Process exited with code 1\n", "git diff", False),
        ("Process exited with code 2\n", "rg", True),
        ("<tool_use_error>String to replace not found", "/src/a.py", True),
        ("apply_patch verification failed: no such lines", "/src/a.py", True),
        ('{"output": "", "metadata": {"exit_code": 1}}', "make", True),
        ("     1\texit code 1 is an error", "/src/a.py", False),
        ("3 errors were handled", "make", False),
    ],
)
def test_a_result_has_failed_by_its_own_report(output: str, target: str, failed: bool) -> None:
    assert has_failed(output, call_of(target)) is failed
    assert may_have_failed(output) or not failed


def test_results_that_show_no_misstep_are_not_read_further() -> None:
    outputs = ("", "fine", "The tests pass", "  total 12", "src/error.py:3: return", "Examples of next steps")

    assert [output for output in outputs if may_have_failed(output)] == ["The tests pass"]


def repeated(play: Any, *steps: tuple[str, str]) -> list[str]:
    """Make one call per turn, by tool and arguments, and return the missteps."""
    play.add_user(10)
    for number, (tool, arguments) in enumerate(steps):
        play.tracker.add(
            "tool_call", arguments, 10, tool_call_id=f"c{number}", tool_name=tool, digest=tool + arguments
        )
        play.tracker.end_turn()
        play.tracker.add("tool_result", "fine", 10, tool_call_id=f"c{number}")
    return [data.misstep for data in play.of(MisstepObserved)]


READ, EDIT = ("Read", '{"file_path": "/src/a.py"}'), ("Edit", '{"file_path": "/src/a.py"}')
OTHER, TESTS = ("Edit", '{"file_path": "/src/b.py"}'), ("Bash", '{"command": "go test"}')


@pytest.mark.parametrize(
    ("steps", "missteps"),
    [
        ((READ, READ), ["repeated_read"]),
        ((READ, OTHER, READ), ["repeated_read"]),
        ((READ, EDIT, READ), []),
        ((READ, ("Read", '{"file_path": "/src/a.py", "offset": 90}')), []),
        ((TESTS, TESTS), ["repeated_call"]),
        ((TESTS, EDIT, TESTS), []),
        ((EDIT, EDIT), []),
        ((("wait_agent", '{"id": 7}'), ("wait_agent", '{"id": 7}')), []),
        ((("Bash", '{"command": "sleep 5"}'), ("Bash", '{"command": "sleep 5"}')), []),
        ((("list", "{}"), ("list", "{}")), []),
        ((READ, *[OTHER] * REGRET_TURNS, READ), []),
    ],
)
def test_a_call_is_repeated_where_nothing_it_reads_has_changed(
    session: Make, steps: tuple[tuple[str, str], ...], missteps: list[str]
) -> None:
    assert repeated(session(10_000), *steps) == missteps


@pytest.mark.parametrize(
    ("message", "corrects"),
    [
        ("no, use the other file", True),
        ("Why did you delete it?", True),
        ("[Request interrupted by user]", True),
        ("notes are in docs/", False),
        ("Stop hook feedback: lint failed", False),
        ("now add a test", False),
    ],
)
def test_the_user_corrects_the_call_before(session: Make, message: str, corrects: bool) -> None:
    play = session(10_000)
    play.tracker.add("user_message", "no, this is the first message", 100)
    play.tracker.add("assistant_response", "done", 1_900)
    play.tracker.end_turn()
    play.tracker.add("user_message", message, 10)
    play.tracker.add("user_message", message, 10)

    missteps = play.of(MisstepObserved)

    assert [(one.misstep, one.call_turn) for one in missteps] == ([("correction", 1)] if corrects else [])


def test_an_error_belongs_to_the_call_that_made_it(session: Make) -> None:
    play = session(10_000)
    play.tracker.add("user_message", "run it", 4_000)
    play.tracker.add("tool_call", '{"command": "make"}', 10, tool_call_id="c1", tool_name="Bash")
    play.tracker.end_turn()
    play.tracker.add("tool_result", "Exit code 2", 10, tool_call_id="c1")

    (misstep,) = play.of(MisstepObserved)

    assert (misstep.misstep, misstep.call_turn, misstep.utilization) == ("error", 1, pytest.approx(0.4))
