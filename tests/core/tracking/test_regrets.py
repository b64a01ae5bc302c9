"""Regret: content is fetched again after it was removed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from windowpane.core.events import BlocksEvicted, ContentCompressed, ContentRegretted
from windowpane.core.limits import TrackerSettings

Make = Callable[..., Any]


def fetched(play: Any, *, call_tokens: int = 5) -> tuple[Any, Any]:
    """A call and its result, in two turns."""
    play.add_user(10)
    call = play.call("c1", "read one.py", tokens=call_tokens)
    play.tracker.end_turn()
    result = play.result("c1", "the file")
    play.turn(0, 5)
    return call, result


def test_fetching_evicted_content_again_is_a_regret(session: Make) -> None:
    play = session(10_000)
    _, result = fetched(play)
    mask = play.tracker.make_replacement("placeholder", "gone", 3, replaces=result.id)
    eviction = play.evict(result, form="mask", placeholders=(mask,))
    again = play.call("c2", "read one.py")

    assert play.of(ContentRegretted) == [
        ContentRegretted(
            "eviction", "same_call", result.id, again.id, 100, 2, eviction.event_id, "tool_result", "read"
        )
    ]


@pytest.mark.parametrize("call_tokens", [5, 50])
def test_fetching_a_dropped_group_again_is_a_regret_of_its_result(session: Make, call_tokens: int) -> None:
    play = session(10_000)
    call, result = fetched(play, call_tokens=call_tokens)
    play.evict(call, result)
    play.call("c2", "read one.py")

    assert [(regret.match, regret.block_id) for regret in play.of(ContentRegretted)] == [("same_call", result.id)]


def test_the_same_content_again_is_a_regret(session: Make) -> None:
    """The source of the repeated content does not matter."""
    play = session(10_000)
    _, result = fetched(play)
    play.evict(result)
    play.tracker.add("memory_injection", "the file", 100)

    assert [regret.match for regret in play.of(ContentRegretted)] == ["same_digest"]


def test_a_removed_block_is_regretted_once(session: Make) -> None:
    play = session(10_000)
    _, result = fetched(play)
    play.evict(result)
    play.call("c2", "read one.py")
    play.turn(0, 1)
    play.result("c2", "the file")

    assert len(play.of(ContentRegretted)) == 1


@pytest.mark.parametrize(("turns", "regrets"), [(20, 1), (21, 0)])
def test_a_regret_counts_within_twenty_turns(session: Make, turns: int, regrets: int) -> None:
    play = session(10_000)
    _, result = fetched(play)
    play.evict(result)
    removed_turn = play.tracker.turn
    while play.tracker.turn < removed_turn + turns - 1:
        play.turn(1, 1)
    call = play.call("c2", "read one.py")

    assert call.turn == removed_turn + turns
    assert len(play.of(ContentRegretted)) == regrets


def test_a_compression_can_be_regretted(session: Make) -> None:
    play = session(10_000)
    call, result = fetched(play)
    compaction = play.compact(call, result, result=10, scope="content")
    play.call("c2", "read one.py")

    assert [(regret.cause, regret.cause_event_id) for regret in play.of(ContentRegretted)] == [
        ("compression", compaction.event_id)
    ]


def test_a_rejected_compression_changes_nothing(session: Make) -> None:
    play = session(10_000)
    call, result = fetched(play)
    held = play.tracker.window.tokens
    play.tracker.compress(
        ContentCompressed("compaction", "auto", "rejected", 105, 90, removed=(call.id, result.id)), ()
    )
    play.call("c2", "read one.py")

    assert play.of(ContentRegretted) == []
    assert play.tracker.window.tokens == held + 5


def test_repeated_content_in_the_window_is_not_a_regret(session: Make) -> None:
    play = session(10_000)
    fetched(play)
    play.call("c2", "read one.py")

    assert play.of(ContentRegretted) == []
    assert play.tracker.window.duplicate_tokens == 5


def test_small_content_is_never_regretted(session: Make) -> None:
    play = session(10_000)
    for tokens in (31, 32):
        block = play.tracker.add("user_message", f"text {tokens}", tokens)
        play.evict(block)
        play.tracker.add("user_message", f"text {tokens}", tokens)

    assert [regret.tokens for regret in play.of(ContentRegretted)] == [32]


def test_evicting_unknown_blocks_is_allowed(session: Make) -> None:
    play = session(10_000)
    play.turn(10, 5)
    play.tracker.evict(BlocksEvicted("agent", (), 0, 0))
    block = play.add_user(10)
    play.evict(block)
    play.evict(block)

    assert play.tracker.window.tokens == 15


def test_the_memory_of_removed_blocks_is_bounded(session: Make) -> None:
    play = session(10**6, settings=TrackerSettings(remembered_blocks=3))
    blocks = [play.tracker.add("user_message", f"text {n}", 100) for n in range(5)]
    play.evict(*blocks)
    for n in range(5):
        play.tracker.add("user_message", f"text {n}", 100)

    assert [regret.block_id for regret in play.of(ContentRegretted)] == [block.id for block in blocks[2:]]


def test_a_shortened_call_keeps_its_result(session: Make) -> None:
    play = session(10_000)
    play.add_user(10)
    call = play.call("c1", "read a very long path", tokens=50)
    short = play.tracker.make_shortened(call, "read a v…", 5, count_source="estimate", handle=None)
    play.tracker.compress(
        ContentCompressed("truncation", "overflow", "accepted", 50, 5, "content", (call.id,), (short.id,)),
        (short,),
    )
    play.tracker.end_turn()
    result = play.result("c1", "the file")
    play.turn(0, 5)
    play.evict(result)
    play.call("c2", "read a very long path")

    assert result.group == short.group == call.group
    assert [regret.block_id for regret in play.of(ContentRegretted)] == [result.id]


def used(play: Any, tool: str, arguments: str, output: str, *, number: int) -> Any:
    """Call a tool and return its result."""
    tracker, call_id = play.tracker, f"c{number}"
    tracker.add("tool_call", arguments, 5, tool_call_id=call_id, tool_name=tool)
    tracker.end_turn()
    result = tracker.add("tool_result", output, 100, tool_call_id=call_id, tool_name=tool)
    play.turn(0, 5)
    return result


@pytest.mark.parametrize(
    ("tool", "arguments", "is_regret"),
    [
        ("Read", '{"file_path": "a.py"}', True), ("search_docs", '{"query": "how"}', True),
        ("TaskOutput", '{"task_id": "a1"}', True), ("Bash", '{"command": "cat a.py"}', True),
        ("Bash", '{"command": "cd /app\\ngit show HEAD"}', True),
        ("shell", '{"command": ["bash", "-lc", "sed -n 1,20p a.py"]}', True),
        ("exec", 'await tools.exec_command({cmd: "rg name src"})', True),
        ("str_replace_editor", '{"command": "view", "path": "a.py"}', True),
        ("str_replace_editor", '{"command": "create", "path": "a.py"}', False),
        ("Edit", '{"file_path": "a.py"}', False), ("apply_patch", "*** Update File: a.py", False),
        ("Bash", '{"command": "git status"}', False), ("Bash", '{"command": "git -C /app status"}', False),
        ("Bash", '{"command": "pytest -q"}', False), ("exec", "await tools.write_stdin({})", False),
        ("get_build_status", "{}", False),
    ],
)  # fmt: skip
def test_only_what_a_call_read_can_be_regretted(
    session: Make, tool: str, arguments: str, is_regret: bool
) -> None:
    """An edit returns the same confirmation each time, and a command the state of its time."""
    play = session(10_000)
    result = used(play, tool, arguments, "the result", number=1)
    play.evict(result)
    used(play, tool, arguments, "the result", number=2)

    assert bool(play.of(ContentRegretted)) is is_regret


def test_equal_confirmations_of_different_edits_are_not_a_regret(session: Make) -> None:
    play = session(10_000)
    result = used(play, "Edit", '{"file_path": "a.py", "old_string": "1"}', "a.py has been updated", number=1)
    play.evict(result)
    used(play, "Edit", '{"file_path": "a.py", "old_string": "2"}', "a.py has been updated", number=2)

    assert play.of(ContentRegretted) == []


@pytest.mark.parametrize(("changed", "regrets"), [("a.py", 0), ("b.py", 1)])
def test_reading_a_file_after_it_was_changed_is_not_a_regret(session: Make, changed: str, regrets: int) -> None:
    play = session(10_000)
    read = '{"file_path": "a.py"}'
    result = used(play, "Read", read, "the file", number=1)
    play.evict(result)
    used(play, "Edit", f'{{"file_path": "{changed}", "old_string": "1"}}', "updated", number=2)
    used(play, "Read", read, "the new file", number=3)

    assert len(play.of(ContentRegretted)) == regrets


def test_a_change_before_the_removal_does_not_excuse_it(session: Make) -> None:
    """The agent had the file and its edits, and needs both again."""
    play = session(10_000)
    read = '{"file_path": "a.py"}'
    other = used(play, "Read", '{"file_path": "b.py"}', "another file", number=1)
    play.evict(other)
    result = used(play, "Read", read, "the file", number=2)
    used(play, "Edit", '{"file_path": "a.py", "old_string": "1"}', "updated", number=3)
    play.evict(result)
    used(play, "Read", read, "the new file", number=4)

    assert [regret.target for regret in play.of(ContentRegretted)] == ["a.py"]


def test_what_an_agent_states_again_after_its_compaction_is_not_a_regret(session: Make) -> None:
    play = session(10_000)
    play.add_user(10)
    command = play.tracker.add("user_message", "<command-name>/compact</command-name>", 40)
    listing = play.tracker.add("memory_injection", "the agents", 100)
    play.turn(0, 5)
    removed = command.id, listing.id
    play.tracker.compress(
        ContentCompressed("compaction", "manual", "accepted", 140, 0, "window", removed, method="agent")
    )
    play.tracker.add("user_message", "<command-name>/compact</command-name>", 40)
    play.tracker.add("memory_injection", "the agents", 100)

    assert play.of(ContentRegretted) == []
